"""How boards and their entries look in a reply: the parts that several reads share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from api.replies import UNSTORED
from schemas.errors import BoardNotReady
from schemas.leaderboards import Board
from schemas.problems import Problem
from schemas.times import format_time, format_time_or_none
from stores.boards import Entry, Ties

REBUILDING = "rebuilding"
_OPEN = (b"cache-control", b"public, max-age=1")
# Late events may still change a closed window, so not for ever.
_CLOSED = (b"cache-control", b"public, max-age=60")


def board_headers(board: Board, as_of: int | None, now_at: int) -> list[tuple[bytes, bytes]]:
    """How long a read of this board may be stored, and up to when it is complete."""
    cached = _CLOSED if board.window.ends_at <= now_at else _OPEN
    return [cached, *as_of_headers(as_of)]


def as_of_headers(as_of: int | None) -> list[tuple[bytes, bytes]]:
    """Up to when a read is complete; nothing where that is not known."""
    return [] if as_of is None else [(b"standings-as-of", format_time(as_of).encode("ascii"))]


def rebuilding_headers() -> list[tuple[bytes, bytes]]:
    """For what is answered from the scorebook while its lane is not ready."""
    return [UNSTORED]


def show_entry(board: Board, entry: Entry) -> dict[str, Any]:
    """One line of a board."""
    codec = board.codec
    return {
        "rank": entry.rank,
        "player_id": entry.player_id,
        "score": codec.score(entry.packed),
        "achieved_at": format_time_or_none(codec.achieved_at(entry.packed)),
    }


def top_percent(rank: int, size: int) -> float:
    """The rank as a share of the size in percent, rounded up to two decimals: never 0."""
    hundredths = -(-10_000 * rank // size)
    return hundredths / 100


def rank_friends(board: Board, found: Sequence[tuple[int | None, str, int]], ties: Ties) -> list[dict[str, Any]]:
    """Lines of these (rank, player, packed), best first, each with its rank among them.

    The order is the board's: packed values, then the bytes of the ids, both descending.
    """
    codec = board.codec
    best_first = sorted(found, key=lambda one: (one[2], one[1].encode("utf-8")), reverse=True)
    shown: list[dict[str, Any]] = []
    for place, (rank, player_id, packed) in enumerate(best_first, 1):
        score = codec.score(packed)
        is_tied = ties == "shared" and shown and shown[-1]["score"] == score
        shown.append({
            "friend_rank": shown[-1]["friend_rank"] if is_tied else place,
            "rank": rank,
            "player_id": player_id,
            "score": score,
            "achieved_at": format_time_or_none(codec.achieved_at(packed)),
        })  # fmt: skip
    return shown


def not_on_board(board: Board, player_id: str, as_of: int | None) -> Problem:
    """The problem of a player without a score on the board."""
    headers = {} if as_of is None else {"Standings-As-Of": format_time(as_of)}
    return Problem("player-not-found", f"{player_id!r} has no score on {board.name}", headers=headers)


def not_ready(error: BoardNotReady) -> Problem:
    """The problem of a board whose lane can't prove that it is whole."""
    rows = int(error.progress) if error.progress and error.progress.isdigit() else None
    return Problem(
        "board-not-ready",
        f"the board is in lane {error.lane}, which is {error.state}; it is being brought back from the scorebook",
        headers={"Retry-After": "2"},
        more={"state": REBUILDING, "progress": None if rows is None else {"rows": rows}},
    )
