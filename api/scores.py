"""Rows and receipts of the scorebook, asked from the loop."""

from __future__ import annotations

from collections.abc import Iterable

from api.threads import Threads
from schemas.leaderboards import Board
from schemas.rows import Receipt, ReceiptKey, Row, RowKey
from stores.deadline import Deadline
from stores.scorebook import Scorebook

_DEADLINE_MS = 3_000
# A request that was sent just before the deadline may still take its own time-out.
_WITHIN_S = 6.0


class Scores:
    """The truth, for the few replies that need it. All raise StoreUnavailable, within a bounded time."""

    def __init__(self, scorebook: Scorebook, threads: Threads) -> None:
        self._scorebook = scorebook
        self._threads = threads

    async def rows(self, keys: Iterable[tuple[Board, str]]) -> dict[RowKey, Row]:
        """The rows that exist of these (board, player). One round trip for each 100."""
        asked = list(keys)
        return await self._threads.run(
            _WITHIN_S, lambda: self._scorebook.read_rows(asked, Deadline.after(_DEADLINE_MS))
        )

    async def receipt(self, key: ReceiptKey) -> Receipt | None:
        """The receipt under this key. One round trip."""
        found = await self._threads.run(
            _WITHIN_S, lambda: self._scorebook.read_receipts([key], Deadline.after(_DEADLINE_MS))
        )
        return found.get(key)

    async def receipts(self, match_id: str, leaderboard: str, now_at: int) -> list[Receipt]:
        """All receipts of a match on a leaderboard. Usually one round trip."""
        return await self._threads.run(
            _WITHIN_S,
            lambda: self._scorebook.find_receipts(match_id, leaderboard, now_at, Deadline.after(_DEADLINE_MS)),
        )
