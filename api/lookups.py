"""From the names in a path to leaderboards and boards, by the definitions as last read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schemas.boards import resolve_board
from schemas.errors import BoardExpired, StoreUnavailable, UnknownBoard, UnknownLeaderboard
from schemas.leaderboards import Board, Leaderboard
from schemas.problems import Problem
from schemas.times import DAY_MS
from stores.registry import Registry

_MOST_CACHED = 10_000


class Lookups:
    """Finds what a path names, or raises the problem that says why not. Asks no store."""

    def __init__(self, registry: Registry, clock: Callable[[], int]) -> None:
        self._registry = registry
        self._clock = clock
        self._boards: dict[str, Board] = {}
        # What the cached boards were made of: these definitions, on this day.
        self._of: tuple[Mapping[str, Leaderboard], int] = ({}, 0)

    def now_at(self) -> int:
        """The time, in epoch ms."""
        return self._clock()

    def leaderboards(self) -> Mapping[str, Leaderboard]:
        """All leaderboards. StoreUnavailable before they were read for the first time."""
        if not self._registry.was_read:
            raise StoreUnavailable("the definitions of leaderboards were not read yet")
        return self._registry.leaderboards

    def leaderboard(self, name: str | None) -> Leaderboard:
        """One leaderboard; None: the name in the path was not UTF-8."""
        found = self.leaderboards().get(name) if name is not None else None
        if found is None:
            raise no_leaderboard(name)
        return found

    def board(self, name: str | None) -> Board:
        """The board of a name or an alias at this moment."""
        leaderboards = self.leaderboards()
        if name is None:
            raise Problem("board-not-found", "the name of the board is not percent-encoded UTF-8")
        now_at = self._clock()
        made_of = (leaderboards, now_at // DAY_MS)
        # An alias means another board at midnight, and only then.
        if self._of[0] is not leaderboards or self._of[1] != made_of[1] or len(self._boards) >= _MOST_CACHED:
            self._of = made_of
            self._boards.clear()
        known = self._boards.get(name)
        if known is not None and not known.is_expired(now_at):
            return known
        try:
            board = self._boards[name] = resolve_board(name, leaderboards, now_at)
        except UnknownLeaderboard as error:
            raise no_leaderboard(error.leaderboard) from None
        except UnknownBoard as error:
            raise Problem("board-not-found", str(error)) from None
        except BoardExpired as error:
            raise Problem("board-expired", str(error)) from None
        return board

    def live_boards(self) -> list[Board]:
        """All boards that can be read at this moment: opened, and not past their retention."""
        now_at = self._clock()
        return [
            board
            for leaderboard in self.leaderboards().values()
            for board in leaderboard.existing_boards(now_at)
            if is_live(board, now_at)
        ]


def is_live(board: Board, now_at: int) -> bool:
    """True while the board can be read: from its window's start until its retention ends."""
    has_opened = board.window.kind == "all" or board.window.starts_at <= now_at
    return has_opened and not board.is_expired(now_at)


def no_leaderboard(name: str | None) -> Problem:
    """The problem of an unknown leaderboard."""
    shown = "this name, which is not percent-encoded UTF-8" if name is None else repr(name)
    return Problem("leaderboard-not-found", f"no leaderboard is called {shown}")
