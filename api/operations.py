"""Every operation of the API, in one table: the OpenAPI document is made of it."""

from __future__ import annotations

from typing import Any

from api.batches import MAX_LINES, NDJSON
from api.contract import EVENTS, HTML, TEXT, Answer, Body, Operation, Parameter
from api.live import DEFAULT_ENTRIES as LIVE_ENTRIES
from api.parameters import MAX_WAIT_S
from api.reads import DEFAULT_ENTRIES, DEFAULT_NEIGHBOURS, MOST_ENTRIES, MOST_NEIGHBOURS
from api.waiter import DEFAULT_WAIT_S
from schemas.events import MatchBody, ScoreBody
from schemas.friends import MAX_FRIENDS, FriendsBody
from schemas.ids import ID_SCHEMA, LEADERBOARD_SCHEMA
from schemas.packing import MAX_SAFE_INTEGER
from schemas.problem_replies import BatchAccepted, BatchRefused
from schemas.replies import (
    Accepted,
    Alive,
    Applied,
    BoardInfo,
    Friends,
    LeaderboardInfo,
    LeaderboardList,
    Neighbours,
    PlayerBoard,
    PlayerBoards,
    PlayerPlace,
    Ready,
    Receipt,
    TopPage,
)

_READ_HEADERS = ("Cache-Control", "Standings-As-Of")
_FILE_HEADERS = ("Cache-Control", "ETag", "Content-Security-Policy")


def _token(says: str) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "description": says}


def _integer(least: int, most: int, default: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def _wait(**more: Any) -> dict[str, Any]:
    return {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_WAIT_S, **more}


# ---- parameters

_BOARD = Parameter(
    "board", "path", "leaderboard:window, such as ranked:weekly:2026-W43. Without a date it is the current one, "
    "without a leaderboard main's", {"type": "string", "minLength": 1}, "main:all", required=True,
)  # fmt: skip
_LEADERBOARD = Parameter("leaderboard", "path", "The leaderboard", LEADERBOARD_SCHEMA, "main", required=True)
_MATCH = Parameter("match_id", "path", "The match", ID_SCHEMA, "m-1", required=True)
_PLAYER = Parameter(
    "player_id", "path", "The player, percent-encoded: a/b travels as a%2Fb", ID_SCHEMA, "zed", required=True
)
_ID = Parameter("id", "query", "The player", ID_SCHEMA, "zed", required=True)
_IDS = Parameter(
    "id", "query", f"A player; repeat it for more, up to {MAX_FRIENDS} different ones",
    {"type": "array", "items": ID_SCHEMA, "minItems": 1}, ["amy", "zed"], required=True,
)  # fmt: skip
_TIES = Parameter(
    "ties", "query", "How equal scores are ranked: 1, 2, 3 or 1, 1, 3",
    {"type": "string", "enum": ["unique", "shared"], "default": "unique"},
)  # fmt: skip
_AFTER = Parameter(
    "after", "query", "Answer once this position of a submission is applied: read your own write",
    _token("What a submission answered as its position"),
)  # fmt: skip
_WAIT = Parameter(
    "wait", "query", "How many seconds to wait for `after`. A plain decimal, no exponent", _wait(default=DEFAULT_WAIT_S)
)
_SUBMIT_WAIT = Parameter(
    "wait", "query", "Wait as many seconds until the event is applied, and be told the standings. A plain decimal, "
    "no exponent", _wait(),
)  # fmt: skip
_KNOWN = Parameter("If-None-Match", "header", "The ETag of what you have", {"type": "string"})
_WAITING = (_AFTER, _WAIT)
_N = Parameter("n", "query", "How many entries", _integer(1, MOST_ENTRIES, DEFAULT_ENTRIES))
_K = Parameter("k", "query", "How many neighbours on either side", _integer(0, MOST_NEIGHBOURS, DEFAULT_NEIGHBOURS))
_TOP = (
    _N,
    Parameter("from_rank", "query", "Where the page begins", _integer(1, MAX_SAFE_INTEGER, 1)),
    Parameter(
        "cursor", "query", "The `next` of a page: continue behind its last entry. Not beside from_rank",
        _token("Good for its board and its ties alone"),
    ),
    _TIES,
)  # fmt: skip

# ---- bodies and answers

_SCORE = {"match_id": "m-2", "player_id": "bo", "score": 12}
_MATCHED = {"match_id": "m-1", "results": [{"player_id": "zed", "score": 10}, {"player_id": "amy", "score": 7}]}
_FULL = {"leaderboard": "main", "ended_at": "2026-12-01T00:41:27.953Z"}
_SUBMITTED = (
    Answer(202, "The log has it", (Accepted,)),
    Answer(200, "With `wait`: every live board holds it", (Applied,)),
)
_TOP_PAGE = Answer(200, "The page", (TopPage,), headers=("Cache-Control", "Standings-As-Of", "ETag"))
_UNCHANGED = Answer(304, "You have it already", media=None, headers=("Cache-Control", "ETag"))
_PLACE = (Answer(200, "The player's place", (PlayerPlace,), headers=_READ_HEADERS),)
_AROUND = (Answer(200, "The player with neighbours", (Neighbours,), headers=_READ_HEADERS),)
_FRIENDS = (Answer(200, "Those on the board, best first, and who is missing", (Friends,), headers=_READ_HEADERS),)


def _first(model: Any) -> Any:
    return model.model_config["json_schema_extra"]["examples"][0]


# ---- problems

_SUBMITTING = (
    "invalid-json", "unauthorized", "forbidden", "leaderboard-not-found", "match-conflict", "too-large",
    "unsupported-media-type", "invalid-request", "overloaded", "store-unavailable",
)  # fmt: skip
_OF_BOARD = ("leaderboard-not-found", "board-not-found", "board-expired", "invalid-request", "store-unavailable")
_ASKED = (*_OF_BOARD, "not-applied-yet")
_ORDERED = (*_ASKED, "board-not-ready")
_POSTED = ("invalid-json", "too-large", "unsupported-media-type")


def _submit() -> tuple[Operation, ...]:
    return (
        Operation(
            "POST", "/v1/scores", "submitScore", "Submit one player's score", "submit", _SUBMITTED,
            (_SUBMIT_WAIT,), _SUBMITTING,
            Body("One player of a match", (ScoreBody,), {"short": _SCORE, "full": _SCORE | _FULL}),
            "Safe to repeat: the same report changes nothing.",
        ),
        Operation(
            "POST", "/v1/matches", "submitMatch", "Submit a whole match", "submit", _SUBMITTED,
            (_SUBMIT_WAIT,), _SUBMITTING,
            Body("A match, no player twice", (MatchBody,), {"short": _MATCHED, "full": _MATCHED | _FULL}),
            "Safe to repeat: the same report changes nothing.",
        ),
        Operation(
            "POST", "/v1/matches:batch", "submitBatch", "Submit many matches", "submit",
            (Answer(
                200, "A line for each line, in order", (BatchAccepted, BatchRefused),
                [_first(BatchAccepted), _first(BatchRefused) | {"line": 2}], NDJSON,
            ),),
            (), ("unauthorized", "too-large", "unsupported-media-type", "invalid-request", "store-unavailable"),
            Body(
                f"1 to {MAX_LINES} lines: matches, and scores of one player",
                (MatchBody, ScoreBody), {"two lines": [_MATCHED, _SCORE]}, NDJSON,
            ),
            "Each line is answered for itself. A retry of the whole is harmless.",
        ),
        Operation(
            "GET", "/v1/leaderboards/{leaderboard}/matches/{match_id}", "getReceipt", "What of a match was applied",
            "submit", (Answer(200, "The receipt", (Receipt,)),), (_LEADERBOARD, _MATCH),
            ("unauthorized", "forbidden", "leaderboard-not-found", "match-not-found", "invalid-request",
             "store-unavailable"),
        ),
    )  # fmt: skip


def _leaderboards() -> tuple[Operation, ...]:
    return (
        Operation(
            "GET", "/v1/leaderboards", "listLeaderboards", "All leaderboards", "read",
            (Answer(200, "By name", (LeaderboardList,), {"leaderboards": [_first(LeaderboardInfo)]}),),
            (), ("invalid-request", "store-unavailable"),
        ),
        Operation(
            "GET", "/v1/leaderboards/{leaderboard}", "getLeaderboard", "One leaderboard", "read",
            (Answer(200, "The leaderboard", (LeaderboardInfo,)),), (_LEADERBOARD,),
            ("leaderboard-not-found", "invalid-request", "store-unavailable"),
        ),
        Operation(
            "GET", "/v1/players/{player_id}/boards", "listPlayerBoards", "All live boards that a player is on", "read",
            (Answer(
                200, "The boards; none of an unknown player", (PlayerBoards,),
                {"player_id": "zed", "as_of": "2026-12-01T00:41:27.997Z", "boards": [_first(PlayerBoard)]},
                headers=_READ_HEADERS,
            ),),
            (_PLAYER, _TIES, *_WAITING), ("invalid-request", "store-unavailable", "not-applied-yet"),
        ),
    )  # fmt: skip


def _boards() -> tuple[Operation, ...]:
    return (
        Operation(
            "GET", "/v1/boards/{board}", "getBoard", "A board: its window, order and size", "read",
            (Answer(200, "The board", (BoardInfo,), headers=_READ_HEADERS),), (_BOARD, *_WAITING), _ORDERED,
        ),
        Operation(
            "GET", "/v1/boards/{board}/top", "getTop", "One page of a board, best first", "read",
            (_TOP_PAGE, _UNCHANGED), (_BOARD, *_TOP, *_WAITING, _KNOWN), _ORDERED,
        ),
        Operation(
            "GET", "/v1/boards/{board}/live", "watchTop", "The top list as server-sent events", "read",
            (Answer(
                200, "Event `top` with the body of a page: at once, then on every change, at most 4 a second. "
                "A comment every 15 s", (TopPage,), media=EVENTS,
            ),),
            (_BOARD, Parameter("n", "query", "How many entries", _integer(1, MOST_ENTRIES, LIVE_ENTRIES))),
            (*_OF_BOARD, "board-not-ready"),
        ),
        Operation(
            "GET", "/v1/boards/{board}/players/{player_id}", "getPlayer", "A player's place", "read", _PLACE,
            (_BOARD, _PLAYER, _TIES, *_WAITING), (*_ORDERED, "player-not-found"),
        ),
        Operation(
            "GET", "/v1/boards/{board}/players/{player_id}/around", "getAround", "A player with neighbours", "read",
            _AROUND, (_BOARD, _PLAYER, _K, _TIES, *_WAITING), (*_ORDERED, "player-not-found"),
        ),
        Operation(
            "GET", "/v1/boards/{board}/player", "findPlayer", "A player's place, for any id", "read", _PLACE,
            (_BOARD, _ID, _TIES, *_WAITING), (*_ORDERED, "player-not-found"),
        ),
        Operation(
            "GET", "/v1/boards/{board}/around", "findAround", "A player with neighbours, for any id", "read", _AROUND,
            (_BOARD, _ID, _K, _TIES, *_WAITING), (*_ORDERED, "player-not-found"),
        ),
        Operation(
            "GET", "/v1/boards/{board}/friends", "getFriends", "Some players of a board, ranked among themselves",
            "read", _FRIENDS, (_BOARD, _IDS, _TIES, *_WAITING), _ORDERED,
        ),
        Operation(
            "POST", "/v1/boards/{board}/friends", "postFriends", "The same, with the players in the body", "read",
            _FRIENDS, (_BOARD, _TIES, *_WAITING), (*_ORDERED, *_POSTED),
            Body(f"1 to {MAX_FRIENDS} different players", (FriendsBody,),
                 {"three": {"player_ids": ["amy", "zed", "ghost"]}}),
        ),
    )  # fmt: skip


def _service() -> tuple[Operation, ...]:
    ready = {
        "status": "ready",
        "stores": {"redis": "ok", "kafka": "ok", "dynamodb": "ok"},
        "lanes": [{"lane": 0, "state": "ready", "as_of": "2026-12-01T00:41:27.997Z", "progress": None}],
    }
    page = Answer(200, "The page", media=HTML, headers=_FILE_HEADERS)
    document = Answer(200, "The document", example={"openapi": "3.1.0"}, headers=("Cache-Control", "ETag"))
    return (
        Operation("GET", "/", "showPage", "The web page", "read", (page, _UNCHANGED), (_KNOWN,)),
        Operation("GET", "/livez", "isAlive", "Whether the process is up", None,
                  (Answer(200, "It is", (Alive,), {"status": "alive"}),)),
        Operation("GET", "/readyz", "isReady", "Whether all that is served here works", None,
                  (Answer(200, "It does", (Ready,), ready),), (), ("unready",)),
        Operation("GET", "/metrics", "getMetrics", "All counts of the process, for Prometheus", None,
                  (Answer(200, "Prometheus' text format", media=TEXT,
                          example="standings_api_requests_total 1.0\n"),)),
        Operation("GET", "/openapi.json", "getDescription", "This document", None, (document, _UNCHANGED), (_KNOWN,)),
        Operation("GET", "/docs", "showDescription", "This document, to read and to try", None,
                  (page, _UNCHANGED), (_KNOWN,)),
    )  # fmt: skip


OPERATIONS: tuple[Operation, ...] = (*_submit(), *_leaderboards(), *_boards(), *_service())
