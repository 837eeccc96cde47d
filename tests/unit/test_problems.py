from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from schemas.errors import Fault, InvalidEvent
from schemas.problems import CATALOGUE, MEDIA_TYPE, Problem

# As the design of the HTTP interface lists them.
EXPECTED = {
    "invalid-json": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "leaderboard-not-found": 404,
    "board-not-found": 404,
    "player-not-found": 404,
    "match-not-found": 404,
    "not-found": 404,
    "method-not-allowed": 405,
    "match-conflict": 409,
    "board-expired": 410,
    "too-large": 413,
    "unsupported-media-type": 415,
    "invalid-request": 422,
    "overloaded": 503,
    "board-not-ready": 503,
    "store-unavailable": 503,
    "not-applied-yet": 504,
}


def test_the_catalogue_is_the_one_of_the_design() -> None:
    assert {name: status for name, (status, _) in CATALOGUE.items()} == EXPECTED


def test_every_problem_has_a_title_of_its_own() -> None:
    titles = [title for _, title in CATALOGUE.values()]
    assert all(titles)
    assert len(set(titles)) == len(titles)


@pytest.mark.parametrize(("name", "status"), EXPECTED.items())
def test_a_problem_says_its_type_title_status_and_detail(name: str, status: int) -> None:
    problem = Problem(name, "what happened")
    assert problem.status == status
    assert problem.body() == {
        "type": f"/problems/{name}",
        "title": CATALOGUE[name][1],
        "status": status,
        "detail": "what happened",
    }
    assert MEDIA_TYPE == "application/problem+json"


def test_faults_are_listed_by_pointer_or_parameter() -> None:
    pointers = [Fault("/results/0/score", "must be an integer")]
    problem = Problem("invalid-request", "no", pointers, parameters=[Fault("n", "must be 1 to 1000")], more={"line": 3})
    body = problem.body()
    assert body["errors"] == [
        {"pointer": "/results/0/score", "detail": "must be an integer"},
        {"parameter": "n", "detail": "must be 1 to 1000"},
    ]
    assert body["line"] == 3


def test_a_problem_passes_through_context_managers_unharmed() -> None:
    @contextlib.contextmanager
    def span() -> Iterator[None]:
        yield

    def answer() -> None:
        with contextlib.ExitStack() as stack:
            stack.enter_context(span())
            raise Problem("not-found", "no such path")

    with pytest.raises(Problem) as caught:
        answer()
    assert caught.value.name == "not-found"


def test_an_invalid_event_says_all_of_its_faults_in_one_line() -> None:
    error = InvalidEvent([Fault("/match_id", "is required"), Fault("/results", "is required")])
    assert str(error) == "/match_id: is required; /results: is required"
