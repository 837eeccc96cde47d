"""Positions of submissions: kept, and passed to the reads that can wait for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from client import NotAppliedYet
from tests.client.script import Caller, Script, problem
from tests.client.test_retries import accepted

Make = Callable[..., Caller]
READS: list[tuple[str, tuple[Any, ...]]] = [
    ("board", ("all",)),
    ("top", ("all",)),
    ("player", ("all", "zed")),
    ("around", ("all", "zed")),
    ("friends", ("all", ["zed"])),
    ("friends", ("all", ["z" * 100] * 30)),
    ("player_boards", ("zed",)),
]


def after_of(script: Script) -> list[str | None]:
    return [request.url.params.get("after") for request in script.requests]


def call_all(call: Caller, **options: Any) -> None:
    for name, arguments in READS:
        with pytest.raises(NotAppliedYet):
            call(name, *arguments, **options)


@pytest.mark.parametrize(("reads_own", "after"), [(True, "p-1"), (False, None)])
def test_reads_wait_for_the_last_submission_where_that_is_wanted(
    caller: Make,
    reads_own: bool,  # noqa: FBT001 - a case
    after: str | None,
) -> None:
    script = Script(accepted(), problem("not-applied-yet", 504, {"Retry-After": "1"}))
    call = caller(script, read_own_writes=reads_own)
    call("submit_score", "m", "zed", 1)
    assert call.client.last_position == "p-1"
    call_all(call)
    assert after_of(script) == [None] + [after] * len(READS)


def test_before_the_first_submission_nothing_is_waited_for(caller: Make) -> None:
    script = Script(problem("not-applied-yet", 504))
    call = caller(script, read_own_writes=True)
    call_all(call)
    assert set(after_of(script)) == {None}
    call.client.last_position = "another's"
    script.requests.clear()
    call_all(call)
    assert set(after_of(script)) == {"another's"}


def test_a_position_that_is_named_goes_before(caller: Make) -> None:
    script = Script(accepted(), problem("not-applied-yet", 504))
    call = caller(script, read_own_writes=True)
    call("submit_match", "m", [("zed", 1)])
    call_all(call, after="p-0", wait_s=2.5)
    assert after_of(script)[1:] == ["p-0"] * len(READS)
    assert [request.url.params["wait"] for request in script.requests[1:]] == ["2.5"] * len(READS)
    assert {request.extensions["timeout"]["read"] for request in script.requests[1:]} == {12.5}


def test_what_no_board_answers_waits_for_nothing(caller: Make) -> None:
    script = Script(accepted(), problem("not-found", 404))
    call = caller(script, read_own_writes=True)
    call("submit_score", "m", "zed", 1)
    for name, arguments in (("leaderboards", ()), ("leaderboard", ("main",)), ("receipt", ("main", "m"))):
        with pytest.raises(Exception, match="not-found it is"):
            call(name, *arguments)
    assert after_of(script) == [None] * 4


def test_a_refused_submission_changes_no_position(caller: Make) -> None:
    script = Script(accepted(), problem("match-conflict", 409))
    call = caller(script)
    call("submit_score", "m", "zed", 1)
    with pytest.raises(Exception, match="match-conflict"):
        call("submit_score", "m", "zed", 2, wait_s=1)
    assert call.client.last_position == "p-1"


def test_friends_travel_in_the_body_once_the_query_would_be_long(caller: Make) -> None:
    reply = httpx.Response(200, json={"board": "all", "as_of": None, "size": 0, "entries": [], "missing": []})
    script = Script(reply)
    call = caller(script)
    for ids in ([], ["a b", "é"], ["🏆" * 16] * 10, ["🏆" * 16] * 11):
        call("friends", "all", iter(ids), ties="shared")
    shown = [(request.method, request.url.params.get_list("id")) for request in script.requests]
    assert shown == [("POST", []), ("GET", ["a b", "é"]), ("GET", ["🏆" * 16] * 10), ("POST", [])]
    assert {request.url.params["ties"] for request in script.requests} == {"shared"}


@pytest.mark.parametrize(
    ("part", "encoded"), [("..", "%2E%2E"), (".", "%2E"), ("a/b", "a%2Fb"), ("..a", "..a"), ("é?", "%C3%A9%3F")]
)
def test_any_id_is_one_part_of_a_path(caller: Make, part: str, encoded: str) -> None:
    script = Script(problem("not-found", 404))
    call = caller(script)
    for name, arguments in (("player_boards", (part,)), ("receipt", (part, part)), ("leaderboard", (part,))):
        with pytest.raises(Exception, match="not-found it is"):
            call(name, *arguments)
    assert [request.url.raw_path.decode().partition("?")[0] for request in script.requests] == [
        f"/v1/players/{encoded}/boards",
        f"/v1/leaderboards/{encoded}/matches/{encoded}",
        f"/v1/leaderboards/{encoded}",
    ]


def test_pages_follow_each_other_on_the_board_that_the_first_one_named(caller: Make) -> None:
    first: dict[str, Any] = {"board": "main:weekly:2026-W49", "as_of": None, "size": 0, "entries": [], "next": "c"}
    script = Script(httpx.Response(200, json=first), httpx.Response(200, json=first | {"next": None}))
    assert [page.next for page in caller(script)("pages", "weekly", 2, ties="shared")] == ["c", None]
    assert [str(request.url) for request in script.requests] == [
        "http://service/v1/boards/weekly/top?n=2&ties=shared",
        "http://service/v1/boards/main%3Aweekly%3A2026-W49/top?n=2&cursor=c&ties=shared",
    ]
