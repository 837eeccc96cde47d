"""Batches: cut to the limits, answered in order, and sent again where a line may pass later."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from client import ProblemError, UnexpectedReply
from client.batches import MAX_BYTES, cut
from client.errors import problem_error
from tests.client.script import Caller, Script, problem

Make = Callable[..., Caller]
REFUSED = {"type": "/problems/invalid-request", "title": "t", "status": 422, "detail": "d"}
FAULTY = REFUSED | {"errors": [{"pointer": "/results", "detail": "is required"}]}
OVERLOADED = REFUSED | {"type": "/problems/overloaded", "status": 503, "accepted": False}


def answer(request: httpx.Request, busy: frozenset[str] = frozenset()) -> httpx.Response:
    """What the service would say: a line is accepted unless its match id is `bad`, or one of the busy."""
    assert request.headers["Content-Type"] == "application/x-ndjson"
    lines = request.content.split(b"\n")
    assert len(lines) <= 1_000
    assert len(request.content) <= MAX_BYTES
    answers = []
    for number, line in enumerate(lines, 1):
        match_id = json.loads(line)["match_id"]
        said: dict[str, Any] = {"status": 202, "position": f"p-{match_id}"}
        said = FAULTY if match_id == "bad" else OVERLOADED if match_id in busy else said
        answers.append(json.dumps({"line": number} | said) + "\n")
    return httpx.Response(200, text="".join(answers), headers={"Content-Type": "application/x-ndjson"})


def match(match_id: str, **more: Any) -> dict[str, Any]:
    return {"match_id": match_id, "player_id": "zed", "score": 1} | more


def test_any_number_of_lines_is_answered_in_order(caller: Make) -> None:
    script = Script(answer)
    call = caller(script, key="k")
    found = call("submit_batch", (match("bad" if number % 7 == 0 else str(number)) for number in range(1, 2_502)))
    assert [one.line for one in found] == list(range(1, 2_502))
    assert [one.line for one in found if one.status == 422] == list(range(7, 2_502, 7))
    assert found[2_500].position == call.client.last_position == "p-2501"
    assert [request.content.count(b"\n") + 1 for request in script.requests] == [1_000, 1_000, 501]
    assert script.requests[0].headers["Authorization"] == "Bearer k"


def test_a_batch_keeps_to_the_bytes_too(caller: Make) -> None:
    line = match("m", player_id="é" * 30_000)
    script = Script(answer)
    assert len(caller(script)("submit_batch", [line] * 200)) == 200
    sizes = [len(request.content) for request in script.requests]
    assert len(sizes) == 3
    assert sizes[0] == sizes[1] > MAX_BYTES - 70_000


def test_a_batch_may_have_exactly_its_bytes() -> None:
    half = b"x" * (MAX_BYTES // 2 - 1)
    assert [len(one) for one in cut([half, half, half])] == [2, 1]
    assert [len(one) for one in cut([half, half + b"x", half])] == [1, 1, 1]


def test_lines_may_be_mappings_texts_or_bytes(caller: Make) -> None:
    script = Script(answer)
    lines = [match("é"), json.dumps(match("b")) + "\r\n", json.dumps(match("c")).encode() + b"\n"]
    assert [one.position for one in caller(script)("submit_batch", lines)] == ["p-é", "p-b", "p-c"]


@pytest.mark.parametrize("line", ["", " \n", b"\r\n", "{}\n{}"])
def test_a_line_that_is_none_or_two_is_refused_here(caller: Make, line: str | bytes) -> None:
    with pytest.raises(ValueError, match="one match"):
        caller(Script(answer))("submit_batch", [line])


def test_lines_are_taken_as_they_are_needed(caller: Make) -> None:
    taken: list[int] = []

    def lines() -> Iterator[dict[str, Any]]:
        for number in range(10_000):
            taken.append(number)
            yield match(str(number))

    script = Script(answer)
    assert len(caller(script)("submit_batch", lines(), most=1)) == 1
    assert len(taken) == 1_001
    assert caller(script)("submit_batch", []) == []
    assert len(script.requests) == 1


def test_lines_that_may_pass_later_are_sent_again_and_they_alone(caller: Make) -> None:
    busy = frozenset({"2", "4"})
    script = Script(lambda one: answer(one, busy), lambda one: answer(one, frozenset({"4"})), answer)
    found = caller(script)("submit_batch", [match(one) for one in ("1", "2", "bad", "4")])
    assert [(one.line, one.status) for one in found] == [(1, 202), (2, 202), (3, 422), (4, 202)]
    sent = [[json.loads(line)["match_id"] for line in one.content.split(b"\n")] for one in script.requests]
    assert sent == [["1", "2", "bad", "4"], ["2", "4"], ["4"]]
    assert script.pauses == [0.1, 0.2]


def test_lines_that_never_pass_are_told_at_the_deadline(caller: Make) -> None:
    script = Script(lambda one: answer(one, frozenset({"2"})))
    found = caller(script)("submit_batch", [match("1"), match("2"), match("bad")])
    assert [one.status for one in found] == [202, 503, 422]
    assert found[1].accepted is False
    assert sum(script.pauses) < 30
    refusal = problem_error(found[2].status, found[2].model_dump(mode="json", exclude_unset=True))
    assert str(refusal) == "/results: is required"


def test_a_batch_that_is_refused_whole_is_an_error(caller: Make) -> None:
    with pytest.raises(ProblemError, match="too-large"):
        caller(Script(problem("too-large", 413)))("submit_batch", [match("1")])


@pytest.mark.parametrize(
    "text", ["", '{"line": 1, "status": 202}', '{"line": 1, "status": 202, "position": "p"}\n' * 2]
)
def test_answers_that_are_not_to_these_lines_are_told(caller: Make, text: str) -> None:
    with pytest.raises(UnexpectedReply):
        caller(Script(httpx.Response(200, text=text)))("submit_batch", [match("1")])
