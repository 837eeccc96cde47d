"""Names of boards: from the text in a path to the board, with what can be wrong on the way."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.errors import BoardExpired, UnknownBoard, UnknownLeaderboard
from schemas.ids import WINDOW_KINDS
from schemas.leaderboards import MAIN, Board, Leaderboard
from schemas.windows import Kind, parse_window


def resolve_board(text: str, leaderboards: Mapping[str, Leaderboard], now_at: int) -> Board:
    """The board of a name or an alias at this moment.

    `ranked:weekly` is the current week's board of `ranked`; without a leaderboard it is `main`'s.
    Raises UnknownLeaderboard, UnknownBoard (malformed, a kind that the leaderboard lacks, a window
    that has not opened) and BoardExpired (past its retention).
    """
    parts = text.split(":")
    name = MAIN if parts[0] in WINDOW_KINDS else parts.pop(0)
    leaderboard = leaderboards.get(name)
    if leaderboard is None:
        raise UnknownLeaderboard(name)
    if not 1 <= len(parts) <= 2:
        raise UnknownBoard(f"{text!r} is not a board: name its window, such as {name}:weekly")
    kind = next((one for one in leaderboard.definition.windows if one == parts[0]), None)
    if kind is None:
        kinds = ", ".join(leaderboard.definition.windows)
        raise UnknownBoard(f"{name} has no window {parts[0]!r}; it has {kinds}")
    board = _board(leaderboard, kind, parts[1] if len(parts) == 2 else None, now_at)
    if board.window.starts_at > now_at and kind != "all":
        raise UnknownBoard(f"the window of {board.name} has not opened yet")
    if board.is_expired(now_at):
        raise BoardExpired(f"{board.name} is past its retention")
    return board


def _board(leaderboard: Leaderboard, kind: Kind, name: str | None, now_at: int) -> Board:
    if name is None:
        return next(board for board in leaderboard.boards_at(now_at) if board.window.kind == kind)
    if kind == "all":
        raise UnknownBoard(f"{leaderboard.name}:all has no name behind it")
    try:
        return leaderboard.board(parse_window(kind, name))
    except (ValueError, OverflowError):
        raise UnknownBoard(f"the calendar has no window {kind + ':' + name!r}") from None
