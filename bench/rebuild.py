"""How fast a lane is rebuilt, beside how fast the scorebook alone gives the same rows.

Argument: how many rows, 100,000 by default.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from embedded.environment import describe_emulator_access
from embedded.single import running_dynamodb, running_valkey
from rebuild.rows import RowStream
from rebuild.runner import Runner
from rebuild.world import World
from schemas.leaderboards import Board, Definition, define
from schemas.rows import Candidate, Row, Topology
from schemas.settings import load_settings
from stores.catalogue import Catalogue
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.deadline import Deadline
from stores.dynamodb import QUERY_TIMEOUT_S, Dynamo, connect_dynamodb
from stores.lanes import Lanes
from stores.log import Committed, LogDescription
from stores.scorebook import Scorebook

LOG = LogDescription("bench", 1)
ROUNDS = 3
_BATCH = 2_000


class QuietLog:
    """A log in which nothing happens."""

    def describe(self) -> LogDescription:
        """Always the same."""
        return LOG

    def committed(self, _log_id: str) -> dict[int, Committed]:
        """Nothing."""
        return {}

    def log_starts(self, partitions: int) -> dict[int, int]:
        """All at 0."""
        return dict.fromkeys(range(partitions), 0)


def main() -> None:
    """Fill a board, then read it bare and rebuild it, in turns."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    os.environ.update(describe_emulator_access())
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis_url = stack.enter_context(running_valkey(folder / "redis"))
        dynamodb_url = stack.enter_context(running_dynamodb(folder / "dynamodb"))
        settings = load_settings({
            "STANDINGS_REDIS_URL": redis_url, "STANDINGS_DYNAMODB_URL": dynamodb_url,
            "STANDINGS_REBUILD_QUERIES": "2",  # as the embedded stack has it
        })  # fmt: skip
        dynamo = Dynamo(connect_dynamodb(settings))
        catalogue = Catalogue(dynamo, settings.names, time.sleep)
        catalogue.create_tables()
        leaderboard = define("bench", Definition(order="higher", min=0, max=2_097_151, windows=("all",)), now_ms())
        world = World(LOG, Topology(1, 1, "truth"), {"bench": leaderboard})
        queries = Dynamo(connect_dynamodb(settings, QUERY_TIMEOUT_S))
        scorebook = Scorebook(queries, settings.names, settings.rebuild_queries)
        board = leaderboard.board(leaderboard.all_window)
        _write(scorebook, board, rows)
        runner = Runner(
            scorebook, catalogue, Lanes(connect_redis(settings), settings.names), QuietLog(), now_ms  # type: ignore[arg-type]
        )  # fmt: skip
        for _ in range(ROUNDS):
            bare_s = _read(scorebook, board, rows)
            began_s = time.perf_counter()
            if runner.rebuild(0, world).rows != rows:
                raise SystemExit("rows are missing")
            ours_s = time.perf_counter() - began_s
            sys.stdout.write(
                f"{rows} rows: the scorebook alone {rows / bare_s:,.0f}/s, rebuilt {rows / ours_s:,.0f}/s, "
                f"ratio {bare_s / ours_s:.2f}\n"
            )
        dynamo.close()
        queries.close()


def _write(scorebook: Scorebook, board: Board, rows: int) -> None:
    for first in range(0, rows, _BATCH):
        candidates = [
            Candidate(board, Row(f"player-{n:013d}", n % 2_000_000, board.codec.pack(n % 2_000_000, n), n, f"m{n}"))
            for n in range(first, min(first + _BATCH, rows))
        ]
        scorebook.write_rows(candidates, set(), Deadline.after(600_000))


def _read(scorebook: Scorebook, board: Board, rows: int) -> float:
    began_s = time.perf_counter()
    if sum(len(chunk) for _, chunk in RowStream(scorebook, [board], now_ms())) != rows:
        raise SystemExit("rows are missing")
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
