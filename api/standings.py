"""What a submission has led to, once every live board holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from api.lookups import is_live
from api.parameters import invalid_request
from api.scores import Scores
from api.waiter import Waiter
from schemas.errors import BoardNotReady, Fault, StoreUnavailable
from schemas.events import MatchEvent
from schemas.leaderboards import Board
from schemas.positions import Position
from schemas.problems import Problem
from schemas.rows import RowKey, receipt_key
from stores.boards import BoardReader


class Standings:
    """Waits for an accepted event, and tells where its players stand."""

    def __init__(self, reader: BoardReader, waiter: Waiter, scores: Scores, clock: Callable[[], int]) -> None:
        self._reader = reader
        self._waiter = waiter
        self._scores = scores
        self._clock = clock

    async def await_standings(
        self, event: MatchEvent, position: Position, timeout_s: float
    ) -> tuple[int, list[dict[str, Any]]] | None:
        """The end time under which it counts (epoch ms), and a line for each live board and player.

        None where the time ran out, or a store is away.

        The event is accepted whatever happens here. Raises the problem of a conflict, and of an
        event that was put to the dead letters.
        """
        loop = asyncio.get_running_loop()
        ends_at_s = loop.time() + timeout_s
        try:
            # Every lane gets every offset, so that any board's lane tells, also an expired one's.
            boards = event.leaderboard.boards_at(event.ended_at)
            if not await self._waiter.applied(boards, position, timeout_s):
                return None
            recorded_at = await self._recorded_at(event)
            if recorded_at != event.ended_at:
                boards = event.leaderboard.boards_at(recorded_at)
                if not await self._waiter.applied(boards, position, max(0.0, ends_at_s - loop.time())):
                    return None
            shown = await self._show([board for board in boards if is_live(board, self._clock())], event)
        except (StoreUnavailable, BoardNotReady):
            return None
        return None if shown is None else (recorded_at, shown)

    async def _recorded_at(self, event: MatchEvent) -> int:
        """The end time under which the event counts: that of the first report, where this one repeats it."""
        receipt = await self._scores.receipt(receipt_key(event))
        if receipt is None:
            raise invalid_request([Fault("", "was put to the dead letters, see `standings dlq list`")])
        if receipt.contradicts(event):
            raise Problem(
                "match-conflict",
                f"{event.match_id!r} is recorded on {event.leaderboard.name} with other results or another end time: "
                "what was recorded first stays",
            )
        return receipt.ended_at

    async def _show(self, boards: list[Board], event: MatchEvent) -> list[dict[str, Any]] | None:
        scores = dict(event.results)
        player_ids = list(scores)
        if not boards:
            return []
        rows, places = await asyncio.gather(
            self._scores.rows((board, player_id) for board in boards for player_id in player_ids),
            asyncio.gather(*(self._reader.places(board, player_ids, "unique") for board in boards)),
        )
        shown: list[dict[str, Any]] = []
        for board, found in zip(boards, places, strict=True):
            for player_id, entry in zip(player_ids, found.entries, strict=True):
                row = rows.get(RowKey(board.name, player_id))
                if entry is None or row is None:
                    return None
                shown.append({
                    "board": board.name,
                    "player_id": player_id,
                    "rank": entry.rank,
                    "score": board.codec.score(entry.packed),
                    # Of a match that was reported whole and player by player the row shows the better report.
                    "improved": row.match_id == event.match_id and row.score == scores[player_id],
                    "size": found.size,
                })  # fmt: skip
        return shown
