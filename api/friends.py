"""Friends: some players of a board, ranked among themselves."""

from __future__ import annotations

from pydantic import ValidationError

from api.calls import Call
from api.entries import REBUILDING, board_headers, rank_friends, rebuilding_headers
from api.lookups import Lookups
from api.parameters import WAITING, Parameters, invalid_request
from api.replies import UNSTORED, Reply, json_reply
from api.scores import Scores
from api.waiter import Waiter
from schemas.errors import BoardNotReady, MalformedJson
from schemas.events import faults_of
from schemas.friends import FriendsBody
from schemas.leaderboards import Board
from schemas.problems import Problem
from schemas.times import format_time_or_none
from schemas.wire import decode_json
from stores.boards import BoardReader, Ties

MAX_BODY_BYTES = 128 * 1024


class Friends:
    """GET and POST /v1/boards/{board}/friends."""

    def __init__(self, lookups: Lookups, reader: BoardReader, waiter: Waiter, scores: Scores) -> None:
        self._lookups = lookups
        self._reader = reader
        self._waiter = waiter
        self._scores = scores

    async def ask(self, call: Call) -> Reply:
        """The ids stand in the query."""
        board = self._lookups.board(call.part("board"))
        parameters = Parameters(call.query_string, ("id", "ties", *WAITING), repeatable=("id",))
        player_ids = parameters.ids("id")
        ties = parameters.ties()
        position, wait_s = parameters.position("after"), parameters.seconds("wait")
        parameters.check()
        await self._waiter.require([board], position, wait_s)
        return await self._rank(board, player_ids, ties)

    async def post(self, call: Call) -> Reply:
        """The ids stand in the body. Nobody stores this reply."""
        board = self._lookups.board(call.part("board"))
        call.check_content_type("application/json")
        raw = await call.body(MAX_BODY_BYTES)
        parameters = Parameters(call.query_string, ("ties", *WAITING))
        ties = parameters.ties()
        position, wait_s = parameters.position("after"), parameters.seconds("wait")
        try:
            body = FriendsBody.model_validate(decode_json(raw))
        except MalformedJson as error:
            raise Problem("invalid-json", str(error)) from None
        except ValidationError as error:
            raise invalid_request(faults_of(error), parameters.faults) from None
        parameters.check()
        await self._waiter.require([board], position, wait_s)
        reply = await self._rank(board, body.player_ids, ties)
        reply.headers = [UNSTORED if name == b"cache-control" else (name, value) for name, value in reply.headers]
        return reply

    async def _rank(self, board: Board, player_ids: list[str], ties: Ties) -> Reply:
        try:
            places = await self._reader.places(board, player_ids, ties)
        except BoardNotReady:
            return await self._rank_from_scorebook(board, player_ids, ties)
        found = [(entry.rank, entry.player_id, entry.packed) for entry in places.entries if entry is not None]
        shown = {
            "board": board.name,
            "as_of": format_time_or_none(places.as_of),
            "size": places.size,
            "entries": rank_friends(board, found, ties),
            "missing": [one for one, entry in zip(player_ids, places.entries, strict=True) if entry is None],
        }
        return json_reply(shown, headers=board_headers(board, places.as_of, self._lookups.now_at()))

    async def _rank_from_scorebook(self, board: Board, player_ids: list[str], ties: Ties) -> Reply:
        rows = await self._scores.rows((board, player_id) for player_id in player_ids)
        packed = {row.player_id: row.packed for row in rows.values()}
        found = [(None, player_id, value) for player_id, value in packed.items()]
        shown = {
            "board": board.name,
            "as_of": None,
            "size": None,
            "entries": rank_friends(board, found, ties),
            "missing": [player_id for player_id in player_ids if player_id not in packed],
            "state": REBUILDING,
        }
        return json_reply(shown, headers=rebuilding_headers())
