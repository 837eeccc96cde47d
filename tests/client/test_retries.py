"""What is repeated, when, and for how long."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from client import (
    Client,
    ClientError,
    MatchConflict,
    NotAppliedYet,
    NotFound,
    ProblemError,
    Retries,
    Unavailable,
    UnexpectedReply,
    Unreachable,
)
from client.retries import Budget, parse_retry_after
from schemas.errors import Fault, StandingsError
from tests.client.script import Answer, Caller, Script, problem

Make = Callable[..., Caller]
ACCEPTED = {"match_id": "m", "leaderboard": "main", "ended_at": "2026-12-01T00:41:27.953Z", "position": "p-1"}


def accepted(position: str = "p-1") -> httpx.Response:
    return httpx.Response(202, json=ACCEPTED | {"position": position})


@pytest.mark.parametrize(
    "failure",
    [
        problem("overloaded", 503, accepted=False),
        problem("store-unavailable", 503, accepted=None),
        httpx.Response(502, text="<html>"),
        httpx.Response(503, text="<html>"),
        httpx.Response(504, json=["no problem"]),
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout(""),
        httpx.ReadTimeout(""),
        httpx.WriteError("reset"),
        httpx.RemoteProtocolError("gone"),
    ],
    ids=[
        "overloaded",
        "store",
        "502",
        "503",
        "504",
        "refused",
        "no connection",
        "late",
        "broken",
        "gone",
    ],
)
def test_what_may_pass_is_repeated_word_for_word(caller: Make, failure: Answer) -> None:
    script = Script(failure, failure, accepted())
    call = caller(script, key="k")
    assert call("submit_score", "m", "zed", 1).position == "p-1"
    first, *more = script.requests
    assert len(more) == 2
    assert json.loads(first.content) == {"match_id": "m", "player_id": "zed", "score": 1, "leaderboard": "main"}
    for one in more:
        assert (one.method, one.url, one.content) == (first.method, first.url, first.content)
        assert one.headers["Authorization"] == "Bearer k"


@pytest.mark.parametrize(
    ("status", "name", "kind"),
    [
        (400, "invalid-json", ProblemError),
        (401, "unauthorized", ProblemError),
        (404, "player-not-found", NotFound),
        (409, "match-conflict", MatchConflict),
        (410, "board-expired", ProblemError),
        (413, "too-large", ProblemError),
        (429, "", ProblemError),
        (500, "", ProblemError),
        (504, "not-applied-yet", NotAppliedYet),
        (301, "", ProblemError),
    ],
)
def test_what_will_not_pass_is_told_at_once(caller: Make, status: int, name: str, kind: type[ProblemError]) -> None:
    refusal = problem(name, status) if name else httpx.Response(status, text="<html>")
    script = Script(refusal, accepted())
    with pytest.raises(ProblemError) as caught:
        caller(script)("submit_score", "m", "zed", 1)
    assert type(caught.value) is kind
    assert isinstance(caught.value, StandingsError)
    assert (caught.value.status, caught.value.name) == (status, name or "about:blank")
    assert str(caught.value) == (f"{name} it is" if name else f"HTTP {status}")
    assert (len(script.requests), script.pauses) == (1, [])


def test_a_problem_tells_every_fault(caller: Make) -> None:
    errors = [{"pointer": "/score", "detail": "is required"}, {"parameter": "wait", "detail": "is empty"}]
    script = Script(problem("invalid-request", 422, errors=[*errors, {"pointer": "", "detail": "is dead"}]))
    with pytest.raises(ProblemError, match=r"^/score: is required; wait: is empty; is dead$") as caught:
        caller(script)("submit_score", "m", "zed", 1)
    assert caught.value.errors[:2] == (Fault("/score", "is required"), Fault("wait", "is empty"))
    assert caught.value.document["detail"] == "invalid-request it is"


@pytest.mark.parametrize("document", ["", "[]", '"x"', '{"type": [1], "errors": {"a": 1}}', '{"errors": [1, {}]}'])
def test_a_refusal_in_any_form_is_a_problem(caller: Make, document: str) -> None:
    with pytest.raises(ProblemError) as caught:
        caller(Script(httpx.Response(418, text=document)))("top", "all")
    assert caught.value.status == 418


def test_pauses_are_random_and_grow_up_to_a_bound(caller: Make) -> None:
    script = Script(httpx.ConnectError("refused"))
    with pytest.raises(Unreachable, match=r"no service answers at http://service \(refused\)"):
        caller(script)("top", "all")
    assert script.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5]
    assert len(script.requests) == 11
    never = Script(*[httpx.ConnectError("refused")] * 20, httpx.Response(200, json={"leaderboards": []}))
    assert caller(never, chance=0.0)("leaderboards") == []
    assert set(never.pauses) == {0}


def test_an_attempt_is_bounded_by_its_own_time_and_by_what_is_left(caller: Make) -> None:
    script = Script(httpx.ReadTimeout(""))
    with pytest.raises(Unreachable, match="ReadTimeout"):
        caller(script, timeout_s=4, retries={"deadline_s": 6})("submit_score", "m", "zed", 1, wait_s=2)
    limits = [request.extensions["timeout"]["read"] for request in script.requests]
    assert limits == pytest.approx([6, 5.9, 5.7, 5.3, 4.5, 2.9])


def test_no_deadline_is_no_retry(caller: Make) -> None:
    script = Script(problem("store-unavailable", 503), accepted())
    with pytest.raises(Unavailable, match="store-unavailable it is"):
        caller(script, retries={"deadline_s": 0})("submit_score", "m", "zed", 1)
    assert len(script.requests) == 1


def test_a_service_that_is_not_there_may_be_given_less_time_than_one_that_is_slow(caller: Make) -> None:
    retries = {"connect_deadline_s": 1}
    nobody, slow = Script(httpx.ConnectError("refused")), Script(httpx.ReadTimeout(""))
    for script in (nobody, slow):
        with pytest.raises(Unreachable):
            caller(script, retries=retries)("top", "all")
    assert sum(nobody.pauses) < 1
    assert sum(slow.pauses) > 20


def test_retry_after_is_honoured_and_spread(caller: Make) -> None:
    script = Script(
        problem("board-not-ready", 503, {"Retry-After": "2"}), httpx.Response(200, json={"leaderboards": []})
    )
    caller(script, chance=0.5)("leaderboards")
    assert script.pauses == [2.05]


def test_what_asks_for_more_time_than_there_is_is_told_at_once(caller: Make) -> None:
    script = Script(problem("board-not-ready", 503, {"Retry-After": "31"}))
    with pytest.raises(Unavailable) as caught:
        caller(script)("top", "all")
    assert (caught.value.retry_after_s, script.pauses) == (31, [])


def test_retry_after_may_be_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert parse_retry_after(later) == pytest.approx(60, abs=5)
    assert parse_retry_after("Wed, 21 Oct 2015 07:28:00 -0000") == 0
    assert [parse_retry_after(text) for text in (None, "", "soon", "-1", " 3 ")] == [None, None, None, None, 3]


@pytest.mark.parametrize(
    "error", [httpx.UnsupportedProtocol("no"), httpx.LocalProtocolError("no"), httpx.DecodingError("no")]
)
def test_what_fails_in_the_same_way_again_is_not_repeated(caller: Make, error: Exception) -> None:
    script = Script(error)
    with pytest.raises(Unreachable):
        caller(script)("top", "all")
    assert len(script.requests) == 1


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://service", "http://", "http://[::1"])
def test_what_is_no_address_is_told_at_once(url: str) -> None:
    with pytest.raises(ClientError, match="no address"):
        Client(url)


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(200, text="<html>a captive portal</html>"),
        httpx.Response(200, json={"leaderboards": [{"leaderboard": "main"}]}),
        httpx.Response(202, json=[]),
        httpx.Response(200, content=b"\xff"),
    ],
    ids=["html", "a part", "another", "bytes"],
)
def test_an_answer_of_something_else_is_told(caller: Make, reply: httpx.Response) -> None:
    with pytest.raises(UnexpectedReply, match="GET /v1/leaderboards"):
        caller(Script(reply))("leaderboards")


def test_what_a_newer_service_adds_is_no_harm(caller: Make) -> None:
    script = Script(httpx.Response(202, json=ACCEPTED | {"more": {"to": "come"}}))
    assert caller(script)("submit_score", "m", "zed", 1).model_dump() == ACCEPTED


def test_a_budget_that_is_renewed_begins_anew() -> None:
    now: list[float] = [0.0]
    budget = Budget(Retries(deadline_s=1, clock_s=lambda: now[0], chance=lambda: 1.0))
    assert [budget.pause_s(), budget.pause_s()] == [0.1, 0.2]
    now[0] = 5.0
    assert budget.pause_s() is None
    budget.renew()
    assert (budget.pause_s(), budget.limit_s(10)) == (0.1, 1)


def test_the_key_goes_with_what_needs_it_alone(caller: Make) -> None:
    script = Script(accepted(), httpx.Response(200, json={"leaderboards": []}))
    call = caller(script, key="k")
    call("submit_match", "m", {"zed": 1})
    call("leaderboards")
    keys: list[Any] = [request.headers.get("Authorization") for request in script.requests]
    assert keys == ["Bearer k", None]
