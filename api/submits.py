"""Submitting: a score, or a whole match, is checked, put on the log, and answered once the log has it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from api.calls import Call
from api.keyring import Keyring, check_may_write
from api.logwatch import LogWatch
from api.lookups import Lookups, no_leaderboard
from api.metrics import Metrics
from api.outbox import Letter, Outbox
from api.parameters import Parameters, invalid_request
from api.replies import Reply, json_reply
from api.standings import Standings
from schemas.errors import InvalidEvent, MalformedJson, UnknownLeaderboard
from schemas.events import MatchBody, MatchEvent, ScoreBody, parse_event
from schemas.positions import Position, encode_position
from schemas.problems import Problem
from schemas.records import encode_event
from schemas.settings import SubmitKey
from schemas.times import format_time
from schemas.wire import decode_json
from stores.log import Acknowledged

MAX_BODY_BYTES = 64 * 1024
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event that the log has: with its end time, and where it stands."""

    event: MatchEvent
    position: Position


class Acceptance:
    """From a decoded value to an event on the log. Every refusal is a Problem."""

    def __init__(self, lookups: Lookups, log: LogWatch, outbox: Outbox, metrics: Metrics) -> None:
        self._lookups = lookups
        self._log = log
        self._outbox = outbox
        self._metrics = metrics

    def read(
        self, value: Any, body: type[MatchBody | ScoreBody], key: SubmitKey, parameters: Parameters, now_at: int
    ) -> MatchEvent:
        """The event in a decoded value. Raises the problem: every fault, then the key, then the leaderboard."""
        leaderboards = self._lookups.leaderboards()
        try:
            event = parse_event(value, body, leaderboards, now_at)
        except InvalidEvent as error:
            raise invalid_request(error.faults, parameters.faults) from None
        except UnknownLeaderboard as error:
            parameters.check()
            check_may_write(key, error.leaderboard)
            raise no_leaderboard(error.leaderboard) from None
        parameters.check()
        check_may_write(key, event.leaderboard.name)
        return event

    async def append(self, events: list[MatchEvent], now_at: int) -> list[Accepted | Problem]:
        """Put the events on the log in this order; for each, where it stands, or the problem."""
        # Known before anything is sent: under an id that was learnt later, a position could claim that a
        # record of the old log was applied.
        try:
            log_id = self._log.require_log()
        except Problem as problem:
            outcomes: list[Accepted | Problem] = [problem] * len(events)
        else:
            letters = [Letter(event.match_id.encode("utf-8"), encode_event(event), now_at) for event in events]
            sent = await self._confirm(await self._outbox.send(letters), log_id)
            outcomes = [_accept(event, one, log_id) for event, one in zip(events, sent, strict=True)]
        for outcome in outcomes:
            self._metrics.count_event(_outcome_name(outcome))
        return outcomes

    async def _confirm(self, sent: list[Acknowledged | Problem], log_id: str) -> list[Acknowledged | Problem]:
        """The same, once it is certain that it was this log which acknowledged; else the problem in its place."""
        if all(isinstance(one, Problem) for one in sent):
            return sent
        try:
            await self._log.confirm(log_id)
        except Problem as problem:
            return [one if isinstance(one, Problem) else problem for one in sent]
        return sent


class Submits:
    """POST /v1/scores and /v1/matches."""

    def __init__(self, keyring: Keyring, lookups: Lookups, acceptance: Acceptance, standings: Standings) -> None:
        self._keyring = keyring
        self._lookups = lookups
        self._acceptance = acceptance
        self._standings = standings

    async def score(self, call: Call) -> Reply:
        """One player's result of a match."""
        return await self._submit(call, ScoreBody)

    async def match(self, call: Call) -> Reply:
        """A match reported whole."""
        return await self._submit(call, MatchBody)

    async def _submit(self, call: Call, body: type[MatchBody | ScoreBody]) -> Reply:
        key = self._keyring.admit(call.header(b"authorization"))
        call.check_content_type(JSON)
        raw = await call.body(MAX_BODY_BYTES)
        value = decode_body(raw)
        parameters = Parameters(call.query_string, ("wait",))
        wait_s = parameters.seconds("wait")
        now_at = self._lookups.now_at()
        event = self._acceptance.read(value, body, key, parameters, now_at)
        (outcome,) = await self._acceptance.append([event], now_at)
        if isinstance(outcome, Problem):
            raise outcome
        shown = {
            "match_id": outcome.event.match_id,
            "leaderboard": outcome.event.leaderboard.name,
            "ended_at": format_time(outcome.event.ended_at),
            "position": encode_position(outcome.position),
        }
        if wait_s is None:
            return json_reply(shown, 202)
        found = await self._standings.await_standings(outcome.event, outcome.position, wait_s)
        if found is None:
            return json_reply(shown, 202)
        # A repeat counts under the first report's time, and says so.
        recorded_at, standings = found
        return json_reply(shown | {"ended_at": format_time(recorded_at), "standings": standings})


def _accept(event: MatchEvent, sent: Acknowledged | Problem, log_id: str) -> Accepted | Problem:
    if isinstance(sent, Problem):
        return sent
    if not event.time_given:
        event = replace(event, ended_at=sent.timestamp)
    return Accepted(event, Position(log_id, sent.partition, sent.offset))


def decode_body(raw: bytes) -> Any:
    """The JSON value; raises the problem for what is not JSON."""
    try:
        return decode_json(raw)
    except MalformedJson as error:
        raise Problem("invalid-json", str(error)) from None


def _outcome_name(outcome: Accepted | Problem) -> str:
    if isinstance(outcome, Accepted):
        return "accepted"
    if outcome.name == "overloaded":
        return "overloaded"
    return "refused" if outcome.more.get("accepted") is False else "uncertain"
