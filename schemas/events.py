"""Match events: what a game reports, as it travels in a body and on the topic.

A record on the topic is the JSON body of POST /v1/matches (a match reported whole) or of
POST /v1/scores (one player of a match), keyed by match id.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails
from pydantic_core.core_schema import ValidationInfo

from schemas.errors import Fault, InvalidEvent, UnknownLeaderboard
from schemas.ids import LeaderboardId, MatchId, PlayerId
from schemas.leaderboards import MAIN, MAX_AHEAD_MS, Leaderboard
from schemas.packing import MAX_SAFE_INTEGER
from schemas.times import parse_time

MAX_RESULTS = 200


@dataclass(frozen=True, slots=True)
class _Edge:
    """What the validators need to know of the world: the leaderboard (if known) and the clock."""

    leaderboard: Leaderboard | None
    now_at: int
    ahead_ms: int


def _check_score(score: int, info: ValidationInfo) -> int:
    edge = info.context
    if isinstance(edge, _Edge) and edge.leaderboard is not None:
        limits = edge.leaderboard.definition
        if not limits.min <= score <= limits.max:
            raise ValueError(f"must be from {limits.min} to {limits.max} on {edge.leaderboard.name}")
    return score


def _check_ended_at(value: Any, info: ValidationInfo) -> int:
    if not isinstance(value, str):
        raise ValueError(
            "must be an RFC 3339 time with an offset in quotes; leave the field out for the time of receipt"
        )
    at_ms = parse_time(value)
    edge = info.context
    if isinstance(edge, _Edge) and edge.leaderboard is not None:
        edge.leaderboard.check_time(at_ms, edge.now_at, edge.ahead_ms)
    return at_ms


PlayerScore = Annotated[int, Strict(), Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER), AfterValidator(_check_score)]
EndedAt = Annotated[
    int | None,
    BeforeValidator(_check_ended_at),
    WithJsonSchema({
        "type": "string",
        "format": "date-time",
        "maxLength": 64,
        "description": "RFC 3339 with an offset, at most 5 minutes ahead; the time of receipt where it is left out",
    }),
]  # fmt: skip


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ResultBody(_Body):
    """One player's score in a match."""

    player_id: PlayerId
    score: PlayerScore


class MatchBody(_Body):
    """A match reported whole: 1 to 200 results, no player twice; their order means nothing."""

    match_id: MatchId
    leaderboard: LeaderboardId = MAIN
    ended_at: EndedAt = None
    # That no player stands in it twice is checked by parse_event.
    results: Annotated[list[ResultBody], Field(min_length=1, max_length=MAX_RESULTS)]


class ScoreBody(_Body):
    """One player's result of a match that is reported player by player."""

    match_id: MatchId
    player_id: PlayerId
    score: PlayerScore
    leaderboard: LeaderboardId = MAIN
    ended_at: EndedAt = None


@dataclass(frozen=True, slots=True)
class MatchEvent:
    """A valid event of a known leaderboard.

    `ended_at` in epoch ms; `time_given` tells whether the publisher said it, or the time of receipt
    stands in for it. `whole` tells a match reported whole from one player of it.
    """

    match_id: str
    leaderboard: Leaderboard
    ended_at: int
    time_given: bool
    whole: bool
    results: tuple[tuple[str, int], ...]


def parse_event(
    value: Any,
    body: type[MatchBody | ScoreBody],
    leaderboards: Mapping[str, Leaderboard],
    now_at: int,
    ahead_ms: int = MAX_AHEAD_MS,
) -> MatchEvent:
    """The event in a decoded JSON value, checked against its leaderboard and the clock `now_at`.

    `now_at` also stands in for an `ended_at` that is left out. Raises InvalidEvent with every
    fault and its JSON pointer, and UnknownLeaderboard for a sound event of no known leaderboard.
    """
    name = value.get("leaderboard", MAIN) if isinstance(value, dict) else None
    leaderboard = leaderboards.get(name) if isinstance(name, str) else None
    repeated = _repeated_players(value) if body is MatchBody else []
    try:
        parsed = body.model_validate(value, context=_Edge(leaderboard, now_at, ahead_ms))
    except ValidationError as error:
        raise InvalidEvent(faults_of(error) + repeated) from None
    if repeated:
        raise InvalidEvent(repeated)
    if leaderboard is None:
        raise UnknownLeaderboard(parsed.leaderboard)
    time_given = parsed.ended_at is not None
    ended_at = now_at if parsed.ended_at is None else parsed.ended_at
    if not time_given:
        try:
            leaderboard.check_time(ended_at, now_at, ahead_ms)
        except ValueError as error:
            raise InvalidEvent([Fault("/ended_at", f"the time of receipt {error}")]) from None
    if isinstance(parsed, ScoreBody):
        results: tuple[tuple[str, int], ...] = ((parsed.player_id, parsed.score),)
    else:
        results = tuple((result.player_id, result.score) for result in parsed.results)
    return MatchEvent(parsed.match_id, leaderboard, ended_at, time_given, isinstance(parsed, MatchBody), results)


def body_of(value: Any) -> type[MatchBody | ScoreBody]:
    """Which of the two bodies a decoded record is meant to be."""
    if isinstance(value, dict) and "results" not in value and ("player_id" in value or "score" in value):
        return ScoreBody
    return MatchBody


def _repeated_players(value: Any) -> list[Fault]:
    """Outside of the model, because its validators of the whole list don't run when one result is wrong."""
    results = value.get("results") if isinstance(value, dict) else None
    if not isinstance(results, list) or len(results) > MAX_RESULTS:
        return []
    seen: set[str] = set()
    faults = []
    for index, result in enumerate(results):
        player_id = result.get("player_id") if isinstance(result, dict) else None
        if not isinstance(player_id, str):
            continue
        if player_id in seen:
            faults.append(Fault(f"/results/{index}/player_id", "this player stands in the match already"))
        seen.add(player_id)
    return faults


def faults_of(error: ValidationError) -> list[Fault]:
    """Every fault that pydantic found, each with its JSON pointer and what would be right."""
    return [_fault(one) for one in error.errors(include_url=False, include_input=False)]


def _fault(error: ErrorDetails) -> Fault:
    place = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error["loc"])
    kind = error["type"]
    context = error.get("ctx") or {}
    if kind == "value_error":
        return Fault(place, str(context["error"]))
    if kind == "too_short":
        return Fault(place, f"has {context['actual_length']} items, and needs at least {context['min_length']}")
    if kind == "too_long":
        return Fault(place, f"has more than {context['max_length']} items")
    return Fault(place, _RULES.get(kind) or error["msg"][:1].lower() + error["msg"][1:])


_RULES = {
    "missing": "is required",
    "extra_forbidden": "is not a field of this body: is it misspelt?",
    "int_type": "must be a plain JSON integer: no quotes, no point, no exponent, not true or null",
    "int_from_float": "must be a plain JSON integer: no quotes, no point, no exponent",
    "string_type": "must be a JSON string",
    "string_unicode": "must be valid Unicode, without lone surrogates",
    "model_type": "must be a JSON object",
    "model_attributes_type": "must be a JSON object",
    "dict_type": "must be a table by window, such as { daily = 7 }",
    "list_type": "must be a JSON array",
}
