"""Every reply of the HTTP API as a model: what the client hands out, and what the OpenAPI document is made of.

A model says exactly what the API sends: a field that is missing here, or of another type, is an
error. Who reads replies of a newer service validates with `extra="ignore"`. A field with a default
may be absent; then the default holds. Times are RFC 3339 in UTC with milliseconds;
`schemas.times.parse_time` makes epoch ms of them, `datetime.fromisoformat` a datetime.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from schemas.packing import MAX_SAFE_INTEGER
from schemas.windows import Kind

_AT = "2026-12-01T00:41:27.953Z"
_ZED: dict[str, Any] = {"rank": 2, "player_id": "zed", "score": 10, "achieved_at": "2026-12-01T00:41:27.878Z"}
_BO: dict[str, Any] = {"rank": 1, "player_id": "bo", "score": 12, "achieved_at": _AT}
_OF_BOARD: dict[str, Any] = {"board": "main:weekly:2026-W49", "as_of": "2026-12-01T00:41:27.997Z", "size": 4}
_POSITION = "fcm1eKikAt0Boi8MVfJBVJ9TGzFqR4r2AAAAAAAAAAAAAAAB"

Time = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$",
        description="RFC 3339, UTC, with milliseconds",
        examples=[_AT],
        json_schema_extra={"format": "date-time"},
    ),
]
AsOf = Annotated[
    Time | None, Field(description="Everything that the log accepted before this moment is in; null where not known")
]
AchievedAt = Annotated[
    Time | None, Field(description="When the score was reached, cut to the board's tick; null where ties have no time")
]
Id = Annotated[str, Field(min_length=1, max_length=128, description="At most 128 bytes of UTF-8", examples=["zed"])]
LeaderboardName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", examples=["main"])]
BoardName = Annotated[
    str, Field(description="The board itself, also where an alias was asked for", examples=["main:weekly:2026-W49"])
]
Score = Annotated[int, Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER, examples=[10])]
Rank = Annotated[int, Field(ge=1, description="From 1, the best", examples=[2])]
MaybeRank = Annotated[Rank | None, Field(description="From 1, the best; null while the board is being rebuilt")]
Size = Annotated[int, Field(ge=0, description="How many players are on the board", examples=[4])]
MaybeSize = Annotated[Size | None, Field(description="How many players; null while the board is being rebuilt")]
TopPercent = Annotated[
    Annotated[float, Field(gt=0, le=100)] | None,
    Field(description="100 · rank / size, two decimals, rounded up; null while the board is being rebuilt"),
]
State = Annotated[
    Literal["ready", "rebuilding"],
    Field(description="rebuilding: exact scores from the scorebook, without ranks. Absent from rows: ready"),
]
Token = Annotated[
    str, Field(min_length=1, description="Opaque: for `after=`, to read your own write", examples=[_POSITION])
]


def _example(**values: Any) -> ConfigDict:
    """The part of a model's settings that shows one reply."""
    return ConfigDict(json_schema_extra={"examples": [values]})


class ReplyBody(BaseModel):
    """What all replies have in common: nothing is converted, nothing is unknown, nothing changes."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


# ---- submit


class Accepted(ReplyBody):
    """202: the log has it. `ended_at` is when the log took it, unless the submission said another time."""

    model_config = _example(match_id="m-2", leaderboard="main", ended_at=_AT, position=_POSITION)
    match_id: Id
    leaderboard: LeaderboardName
    ended_at: Time
    position: Token


class Standing(ReplyBody):
    """Where a player of the submission stands on one live board. `improved`: the row now shows this match."""

    model_config = _example(board="main:all", player_id="bo", rank=1, score=12, improved=True, size=4)
    board: BoardName
    player_id: Id
    rank: Rank
    score: Score
    improved: bool
    size: Size


class Applied(Accepted):
    """200 to a submission with `wait`: every live board holds it. No standings where no board is live any more."""

    model_config = _example(
        match_id="m-2", leaderboard="main", ended_at=_AT, position=_POSITION,
        standings=[{"board": "main:all", "player_id": "bo", "rank": 1, "score": 12, "improved": True, "size": 4}],
    )  # fmt: skip
    standings: list[Standing]


class Result(ReplyBody):
    """One player's score in a match."""

    model_config = _example(player_id="zed", score=10)
    player_id: Id
    score: Score


class Receipt(ReplyBody):
    """What of a match was applied: each player's best, best first, and when the last of it was applied."""

    model_config = _example(
        match_id="m-1", leaderboard="main", ended_at=_AT, applied_at="2026-12-01T00:41:27.997Z",
        results=[{"player_id": "zed", "score": 10}, {"player_id": "amy", "score": 7}],
    )  # fmt: skip
    match_id: Id
    leaderboard: LeaderboardName
    ended_at: Time
    applied_at: Time
    results: Annotated[list[Result], Field(min_length=1)]


# ---- read


class LeaderboardInfo(ReplyBody):
    """A leaderboard, as a reader needs it."""

    model_config = _example(
        leaderboard="main", order="higher", min=0, max=1_000_000, scale=0, windows=["all", "weekly"],
        current_boards=["main:all", "main:weekly:2026-W49"], tie_resolution_ms={"all": 1000, "weekly": 1},
    )  # fmt: skip
    leaderboard: LeaderboardName
    order: Literal["higher", "lower"]
    min: Score
    max: Score
    scale: Annotated[int, Field(ge=0, le=15, description="How many decimals a page shows of the integer score")]
    windows: Annotated[list[Kind], Field(min_length=1)]
    current_boards: list[BoardName]
    tie_resolution_ms: Annotated[
        dict[Kind, Annotated[int, Field(ge=1)] | None],
        Field(description="The tick of times that decide ties, by window; null: ties aren't decided by time"),
    ]


class LeaderboardList(ReplyBody):
    """All leaderboards."""

    leaderboards: list[LeaderboardInfo]


class BoardWindow(ReplyBody):
    """The time that a board covers, without its end. Of `all` the times are null unless the leaderboard sets them."""

    kind: Kind
    starts_at: Time | None
    ends_at: Time | None


class BoardInfo(ReplyBody):
    """One board. `expires_at`: when it goes from Redis; null for `all`."""

    model_config = _example(
        **_OF_BOARD, leaderboard="main", order="higher", state="ready", expires_at="2027-01-04T00:00:00.000Z",
        window={"kind": "weekly", "starts_at": "2026-11-30T00:00:00.000Z", "ends_at": "2026-12-07T00:00:00.000Z"},
    )  # fmt: skip
    board: BoardName
    leaderboard: LeaderboardName
    window: BoardWindow
    order: Literal["higher", "lower"]
    size: MaybeSize
    state: State
    as_of: AsOf
    expires_at: Time | None


class Entry(ReplyBody):
    """One line of a board."""

    model_config = _example(**_ZED)
    rank: Rank
    player_id: Id
    score: Score
    achieved_at: AchievedAt


class TopPage(ReplyBody):
    """One page of a board, best first; also the data of the live event `top`. `next` is null on the last page."""

    model_config = _example(**_OF_BOARD, entries=[_BO, _ZED], next="G3Jg1nyiS-wAAAACurOtuXplZA")
    board: BoardName
    as_of: AsOf
    size: Size
    entries: list[Entry]
    next: Annotated[str | None, Field(description="The cursor of the next page")]


class PlayerPlace(ReplyBody):
    """A player's place on a board. While that is rebuilt: the exact score, and no rank."""

    model_config = _example(**_OF_BOARD, **_ZED, top_percent=50.0)
    board: BoardName
    as_of: AsOf
    size: MaybeSize
    player_id: Id
    rank: MaybeRank
    score: Score
    achieved_at: AchievedAt
    top_percent: TopPercent
    state: State = "ready"


class Neighbours(ReplyBody):
    """A player with those above and below; short at the edges."""

    model_config = _example(**_OF_BOARD, player_id="zed", entries=[_BO, _ZED])
    board: BoardName
    as_of: AsOf
    size: Size
    player_id: Id
    entries: Annotated[list[Entry], Field(min_length=1)]


class Friend(ReplyBody):
    """One of the players that were asked for. `rank` is the board's, `friend_rank` is among them alone."""

    model_config = _example(friend_rank=1, **_ZED)
    friend_rank: Rank
    rank: MaybeRank
    player_id: Id
    score: Score
    achieved_at: AchievedAt


class Friends(ReplyBody):
    """Some players of a board, best first. `missing`: those without a score on it, in the order asked."""

    model_config = _example(**_OF_BOARD, entries=[{"friend_rank": 1, **_ZED}], missing=["ghost"])
    board: BoardName
    as_of: AsOf
    size: MaybeSize
    entries: list[Friend]
    missing: list[Id]
    state: State = "ready"


class PlayerBoard(ReplyBody):
    """A player's place on one of their boards."""

    model_config = _example(
        board="main:all", leaderboard="main", rank=2, score=10, achieved_at=_AT, size=4, top_percent=50.0
    )  # fmt: skip
    board: BoardName
    leaderboard: LeaderboardName
    rank: MaybeRank
    score: Score
    achieved_at: AchievedAt
    size: MaybeSize
    top_percent: TopPercent
    state: State = "ready"


class PlayerBoards(ReplyBody):
    """All live boards that a player is on; `as_of` is the earliest of theirs."""

    player_id: Id
    as_of: AsOf
    boards: list[PlayerBoard]


# ---- service


class Alive(ReplyBody):
    """The process is up."""

    status: Literal["alive"]


class StoreStates(ReplyBody):
    """Each store: `ok`, or what is wrong with it."""

    redis: str
    kafka: str
    dynamodb: str


class LaneInfo(ReplyBody):
    """A lane, as `/readyz` tells it. `progress`: how many rows a rebuild has brought, as text."""

    lane: Annotated[int, Field(ge=0)]
    state: Literal["ready", "rebuilding", "lost", "out of reach"]
    as_of: AsOf
    progress: str | None


class Ready(ReplyBody):
    """All that is served here works."""

    status: Literal["ready"]
    stores: StoreStates
    lanes: list[LaneInfo]
