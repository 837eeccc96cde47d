"""Waiting until lanes have applied a position."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from schemas.leaderboards import Board
from schemas.positions import Position
from schemas.problems import Problem
from stores.boards import BoardReader

STEP_S = 0.02
DEFAULT_WAIT_S = 1.0


class Waiter:
    """Asks again and again, all who wait in the same turn, so that their questions share a round trip."""

    def __init__(self, reader: BoardReader) -> None:
        self._reader = reader

    async def applied(self, boards: Sequence[Board], position: Position, timeout_s: float) -> bool:
        """True once the lanes of all these boards have applied the position; False when the time runs out first.

        Raises StoreUnavailable, later than the time by at most one call to Redis.
        """
        loop = asyncio.get_running_loop()
        ends_at_s = loop.time() + timeout_s
        waiting = list(boards)
        while True:
            found = await asyncio.gather(*(self._reader.has_applied(board, position) for board in waiting))
            waiting = [board for board, applied in zip(waiting, found, strict=True) if not applied]
            if not waiting:
                return True
            now_s = loop.time()
            if now_s >= ends_at_s:
                return False
            # All wake on the same grid of time, so that one turn serves them.
            await asyncio.sleep(min(STEP_S - now_s % STEP_S, ends_at_s - now_s))

    async def require(self, boards: Sequence[Board], position: Position | None, wait_s: float | None) -> None:
        """Waits for the position that a read wants to see, and raises the problem when it does not come in time."""
        if position is None:
            return
        timeout_s = DEFAULT_WAIT_S if wait_s is None else wait_s
        if not await self.applied(boards, position, timeout_s):
            raise Problem(
                "not-applied-yet",
                f"the position was not applied within {timeout_s:g} s; ask again, or without it",
                headers={"Retry-After": "1"},
            )
