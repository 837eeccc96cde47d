"""A player's boards: all live boards are asked at once, so that no index has to be kept."""

from __future__ import annotations

import asyncio
from typing import Any

from api.calls import Call
from api.entries import REBUILDING, as_of_headers, top_percent
from api.lookups import Lookups
from api.parameters import WAITING, Parameters
from api.replies import UNSTORED, Reply, json_reply
from api.scores import Scores
from api.waiter import Waiter
from schemas.errors import BoardNotReady
from schemas.leaderboards import Board
from schemas.rows import RowKey
from schemas.times import format_time_or_none
from stores.boards import BoardReader, Places

# Others' requests need not wait for all boards of all leaderboards.
_BOARDS_PER_TURN = 50
_FRESH = (b"cache-control", b"public, max-age=1")


class Players:
    """GET /v1/players/{player_id}/boards."""

    def __init__(self, lookups: Lookups, reader: BoardReader, waiter: Waiter, scores: Scores) -> None:
        self._lookups = lookups
        self._reader = reader
        self._waiter = waiter
        self._scores = scores

    async def boards(self, call: Call) -> Reply:
        """Every live board that the player is on; those of lanes that aren't ready from the scorebook, without a rank.

        `as_of` is the earliest of the boards that were asked; null where one of them doesn't know.
        """
        parameters = Parameters(call.query_string, ("ties", *WAITING))
        player_id = parameters.path_id("player_id", call.part("player_id"))
        ties = parameters.ties()
        position, wait_s = parameters.position("after"), parameters.seconds("wait")
        parameters.check()
        boards = self._lookups.live_boards()
        await self._waiter.require(boards, position, wait_s)
        found: list[Places | BaseException] = []
        for first in range(0, len(boards), _BOARDS_PER_TURN):
            asked = [self._reader.place(board, player_id, ties) for board in boards[first : first + _BOARDS_PER_TURN]]
            found += await asyncio.gather(*asked, return_exceptions=True)
        unready = [board for board, one in zip(boards, found, strict=True) if isinstance(one, BoardNotReady)]
        rows = await self._scores.rows((board, player_id) for board in unready) if unready else {}
        shown: list[dict[str, Any]] = []
        moments: list[int | None] = [None] if unready else []
        for board, one in zip(boards, found, strict=True):
            if isinstance(one, BoardNotReady):
                row = rows.get(RowKey(board.name, player_id))
                shown += [] if row is None else [_show_unranked(board, row.packed)]
            elif isinstance(one, BaseException):
                raise one
            else:
                moments.append(one.as_of)
                shown += _show(board, one)
        known = [moment for moment in moments if moment is not None]
        as_of = min(known) if known and len(known) == len(moments) else None
        body = {"player_id": player_id, "as_of": format_time_or_none(as_of), "boards": shown}
        return json_reply(body, headers=[UNSTORED if unready else _FRESH, *as_of_headers(as_of)])


def _show(board: Board, places: Places) -> list[dict[str, Any]]:
    (entry,) = places.entries
    if entry is None:
        return []
    return [_line(board, entry.packed, entry.rank, places.size, top_percent(entry.rank, places.size))]


def _show_unranked(board: Board, packed: int) -> dict[str, Any]:
    return _line(board, packed, None, None, None) | {"state": REBUILDING}


def _line(board: Board, packed: int, rank: int | None, size: int | None, percent: float | None) -> dict[str, Any]:
    return {
        "board": board.name,
        "leaderboard": board.leaderboard,
        "rank": rank,
        "score": board.codec.score(packed),
        "achieved_at": format_time_or_none(board.codec.achieved_at(packed)),
        "size": size,
        "top_percent": percent,
    }
