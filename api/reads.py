"""Reads of one board: the board itself, its top list, a player, a player with neighbours."""

from __future__ import annotations

from typing import Any

from api.calls import Call
from api.entries import (
    REBUILDING,
    board_headers,
    not_on_board,
    rebuilding_headers,
    show_entry,
    top_percent,
)
from api.lookups import Lookups
from api.parameters import WAITING, Parameters
from api.replies import JSON_TYPE, Reply, json_reply
from api.scores import Scores
from api.toplists import encode_page
from api.waiter import Waiter
from schemas.errors import BoardNotReady
from schemas.leaderboards import Board
from schemas.rows import RowKey
from schemas.times import format_time_or_none
from stores.boards import BoardReader

MOST_ENTRIES = 1_000
DEFAULT_ENTRIES = 100
MOST_NEIGHBOURS = 100
DEFAULT_NEIGHBOURS = 5


class Reads:
    """GET /v1/boards/{board} and what stands below it."""

    def __init__(self, lookups: Lookups, reader: BoardReader, waiter: Waiter, scores: Scores) -> None:
        self._lookups = lookups
        self._reader = reader
        self._waiter = waiter
        self._scores = scores

    async def board(self, call: Call) -> Reply:
        """What the board is, and its size; answered, without a size, also while its lane is not ready."""
        board = self._lookups.board(call.part("board"))
        parameters = Parameters(call.query_string, WAITING)
        await self._when_applied(board, parameters)
        bounded = board.window.kind != "all"
        definition = self._lookups.leaderboard(board.leaderboard).definition
        shown: dict[str, Any] = {
            "board": board.name,
            "leaderboard": board.leaderboard,
            "window": {
                "kind": board.window.kind,
                "starts_at": format_time_or_none(board.window.starts_at if bounded else definition.starts_at),
                "ends_at": format_time_or_none(board.window.ends_at if bounded else definition.ends_at),
            },
            "order": board.codec.order,
        }
        expires_at = format_time_or_none(board.expires_at)
        try:
            page = await self._reader.size(board)
        except BoardNotReady:
            shown |= {"size": None, "state": REBUILDING, "as_of": None, "expires_at": expires_at}
            return json_reply(shown, headers=rebuilding_headers())
        as_of = format_time_or_none(page.as_of)
        shown |= {"size": page.size, "state": "ready", "as_of": as_of, "expires_at": expires_at}
        return json_reply(shown, headers=board_headers(board, page.as_of, self._lookups.now_at()))

    async def top(self, call: Call) -> Reply:
        """One page of the board, best first."""
        board = self._lookups.board(call.part("board"))
        parameters = Parameters(call.query_string, ("n", "from_rank", "cursor", "ties", *WAITING))
        count = parameters.integer("n", 1, MOST_ENTRIES, DEFAULT_ENTRIES)
        ties = parameters.ties()
        start = parameters.start(board.name, ties)
        await self._when_applied(board, parameters)
        page = await self._reader.top(board, count, ties, start)
        tag, body = encode_page(board, page, ties)
        headers = [(b"etag", tag), *board_headers(board, page.as_of, self._lookups.now_at())]
        if call.knows(tag):
            return Reply(304, b"", headers)
        return Reply(200, body, [JSON_TYPE, *headers])

    async def player(self, call: Call) -> Reply:
        """A player's place; the id stands in the path."""
        parameters = Parameters(call.query_string, ("ties", *WAITING))
        return await self._player(call, parameters, parameters.path_id("player_id", call.part("player_id")))

    async def player_by_id(self, call: Call) -> Reply:
        """The same for any id, also those that URL normalisers eat."""
        parameters = Parameters(call.query_string, ("id", "ties", *WAITING))
        return await self._player(call, parameters, parameters.single_id("id"))

    async def around(self, call: Call) -> Reply:
        """A player with neighbours; the id stands in the path."""
        parameters = Parameters(call.query_string, ("k", "ties", *WAITING))
        return await self._around(call, parameters, parameters.path_id("player_id", call.part("player_id")))

    async def around_by_id(self, call: Call) -> Reply:
        """The same for any id."""
        parameters = Parameters(call.query_string, ("id", "k", "ties", *WAITING))
        return await self._around(call, parameters, parameters.single_id("id"))

    async def _player(self, call: Call, parameters: Parameters, player_id: str) -> Reply:
        board = self._lookups.board(call.part("board"))
        ties = parameters.ties()
        await self._when_applied(board, parameters)
        try:
            places = await self._reader.place(board, player_id, ties)
        except BoardNotReady:
            return await self._player_from_scorebook(board, player_id)
        (entry,) = places.entries
        if entry is None:
            raise not_on_board(board, player_id, places.as_of)
        shown = {
            "board": board.name,
            "as_of": format_time_or_none(places.as_of),
            "size": places.size,
            **show_entry(board, entry),
            "top_percent": top_percent(entry.rank, places.size),
        }
        return json_reply(shown, headers=board_headers(board, places.as_of, self._lookups.now_at()))

    async def _player_from_scorebook(self, board: Board, player_id: str) -> Reply:
        row = (await self._scores.rows([(board, player_id)])).get(RowKey(board.name, player_id))
        if row is None:
            raise not_on_board(board, player_id, None)
        shown = {
            "board": board.name,
            "as_of": None,
            "size": None,
            "rank": None,
            "player_id": player_id,
            "score": row.score,
            "achieved_at": format_time_or_none(board.codec.achieved_at(row.packed)),
            "top_percent": None,
            "state": REBUILDING,
        }
        return json_reply(shown, headers=rebuilding_headers())

    async def _around(self, call: Call, parameters: Parameters, player_id: str) -> Reply:
        board = self._lookups.board(call.part("board"))
        reach = parameters.integer("k", 0, MOST_NEIGHBOURS, DEFAULT_NEIGHBOURS)
        ties = parameters.ties()
        await self._when_applied(board, parameters)
        page = await self._reader.around(board, player_id, reach, ties)
        if not page.entries:
            raise not_on_board(board, player_id, page.as_of)
        shown = {
            "board": board.name,
            "as_of": format_time_or_none(page.as_of),
            "size": page.size,
            "player_id": player_id,
            "entries": [show_entry(board, entry) for entry in page.entries],
        }
        return json_reply(shown, headers=board_headers(board, page.as_of, self._lookups.now_at()))

    async def _when_applied(self, board: Board, parameters: Parameters) -> None:
        position, wait_s = parameters.position("after"), parameters.seconds("wait")
        parameters.check()
        await self._waiter.require([board], position, wait_s)
