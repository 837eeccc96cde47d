"""What project costs beside a bare ZADD GT of the same entries: one script call against one command, in turns."""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from embedded.single import running_valkey
from schemas.keys import LaneKeys
from schemas.leaderboards import Board, Definition, Leaderboard
from schemas.settings import load_settings
from stores.connections import connect_redis
from stores.lanes import Entries, LaneIds, LaneMeta, Lanes, LaneState, Range

ENTRIES = 240
ROUNDS = 200
SIZES = (1_000, 30_000, 1_000_000)
IDS = LaneIds("log", "truth", "1/1")


def main() -> None:
    """Print a line for each size and kind of entries."""
    with tempfile.TemporaryDirectory() as folder, running_valkey(Path(folder)) as url:
        settings = load_settings({"STANDINGS_REDIS_URL": url, "STANDINGS_REDIS_TIMEOUT_S": "60"})
        client = connect_redis(settings)
        lanes = Lanes(client, settings.names)
        keys = settings.names.lane(0)
        lanes.begin(0, "epoch", IDS, 1, LaneMeta(LaneState.LOST), [])
        lanes.finish(0, "epoch", 0, {0: (0, None)})
        offset = 0
        for size in SIZES:
            for kind, improves in (("nothing improves", False), ("all improve", True)):
                offset = _measure(client, lanes, keys, size, kind, offset, improves=improves)


def _measure(client: object, lanes: Lanes, keys: LaneKeys, size: int, kind: str, offset: int, *, improves: bool) -> int:
    chance = random.Random(size)
    board = _board(f"b{size}{'u' if improves else 's'}")
    bare_key = keys.board(f"bare{size}{'u' if improves else 's'}:all")
    scores = {f"player-{number:013d}": chance.randrange(1, 1_000_000) for number in range(size)}
    for first in range(0, size, 5_000):
        entries = Entries()
        flat: list[object] = []
        for player_id in list(scores)[first : first + 5_000]:
            packed = board.codec.pack(scores[player_id], 0)
            entries.add(board, player_id, packed)
            flat += [packed, player_id]
        lanes.project(0, IDS, [Range(0, offset, offset + 1)], entries)
        offset += 1
        client.execute_command("ZADD", bare_key, "GT", *flat)  # type: ignore[attr-defined]
    ours, bare = [], []
    players = list(scores)
    for number in range(ROUNDS):
        chosen = chance.sample(players, min(ENTRIES, size))
        entries = Entries()
        flat = []
        for player_id in chosen:
            scores[player_id] += chance.randrange(1, 1_000) if improves else 0
            packed = board.codec.pack(scores[player_id], 0) - (0 if improves else 1)
            entries.add(board, player_id, packed)
            flat += [packed, player_id]
        turns: list[Callable[[], object]] = [
            lambda entries=entries, at=offset: ours.append(
                _time(lambda: lanes.project(0, IDS, [Range(0, at, at + 1)], entries))
            ),  # type: ignore[misc]
            lambda flat=flat: bare.append(_time(lambda: client.execute_command("ZADD", bare_key, "GT", *flat))),  # type: ignore[misc, attr-defined]
        ]
        for turn in turns if number % 2 else reversed(turns):
            turn()
        offset += 1
    ratio = statistics.median(ours) / statistics.median(bare)
    sys.stdout.write(
        f"{size:>9} entries, {ENTRIES} at a time, {kind:16}: project {statistics.median(ours) * 1e3:.2f} ms, "
        f"ZADD GT {statistics.median(bare) * 1e3:.2f} ms, ratio {ratio:.2f}\n"
    )
    return offset


def _time(call: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    call()
    return time.perf_counter() - began_s


def _board(name: str) -> Board:
    definition = Definition(order="higher", min=0, max=2_097_151, windows=("all",))
    leaderboard = Leaderboard(name, definition)
    return leaderboard.board(leaderboard.all_window)


if __name__ == "__main__":
    main()
