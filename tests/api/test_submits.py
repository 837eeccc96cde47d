"""Submitting scores and matches: what is refused, in which order, and what goes onto the log."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.times import format_time
from stores.clock import now_ms
from tests.api.world import AUTH, HOUR_MS, World, faults, problem

SCORES = "/v1/scores"
JSON = {"Content-Type": "application/json"}
LIMITED = {"Authorization": "Bearer limited-key"}


def test_an_accepted_score_stands_on_the_log_as_it_was_given(world: World) -> None:
    ended_at = format_time(now_ms() - HOUR_MS)
    response = world.api.submit(match_id="a", score=10, ended_at=ended_at.replace("Z", "+00:00"))
    body = response.json()
    assert response.status_code == 202
    assert set(body) == {"match_id", "leaderboard", "ended_at", "position"}
    assert (body["match_id"], body["leaderboard"], body["ended_at"]) == ("a", "ranked", ended_at)
    before = now_ms()
    body = world.api.submit(match_id="b", player_id="🦊", score=7).json()
    assert format_time(before) <= body["ended_at"] <= format_time(now_ms())
    match = {"match_id": "c", "leaderboard": "ranked", "results": [{"player_id": "zed", "score": 1}]}
    assert world.api.post("/v1/matches", match).status_code == 202
    assert world.records() == [
        ("a", {"match_id": "a", "leaderboard": "ranked", "ended_at": ended_at, "player_id": "zed", "score": 10}),
        ("b", {"match_id": "b", "leaderboard": "ranked", "player_id": "🦊", "score": 7}),
        ("c", match),
    ]


@pytest.mark.parametrize(
    "value", [None, "Bearer wrong", "Basic eDp5", "Bearer ", "Bearer", "", "Bearer Löwe", "a-test-key"]
)
def test_without_a_known_key_nothing_is_taken(shared: World, value: str | None) -> None:
    headers = {} if value is None else {"Authorization": value.encode()}
    calls = [
        ("POST", SCORES),
        ("POST", "/v1/matches"),
        ("POST", "/v1/matches:batch"),
        ("GET", "/v1/leaderboards/ranked/matches/m"),
    ]
    for method, path in calls:
        response = shared.api.send(method, path, headers=headers, content=b"{}" if method == "POST" else None)
        assert problem(response) == (401, "unauthorized")
        assert response.headers["WWW-Authenticate"] == "Bearer"


def test_the_scheme_of_a_key_may_be_written_in_any_case(shared: World) -> None:
    headers = {"Authorization": "bearer a-test-key"}
    assert (
        shared.api.post(
            SCORES, {"match_id": "m", "leaderboard": "ranked", "player_id": "z", "score": 1}, headers=headers
        ).status_code
        == 202
    )


def test_a_limited_key_writes_and_sees_its_own_leaderboards_alone(world: World) -> None:
    world.define("other")
    world.await_leaderboard("other")
    body = {"match_id": "m", "player_id": "zed", "score": 1}
    assert world.api.post(SCORES, body | {"leaderboard": "ranked"}, headers=LIMITED).status_code == 202
    for leaderboard in ("other", "none"):
        assert problem(world.api.post(SCORES, body | {"leaderboard": leaderboard}, headers=LIMITED)) == (
            403,
            "forbidden",
        )
        path = f"/v1/leaderboards/{leaderboard}/matches/m"
        assert problem(world.api.get(path, headers=LIMITED)) == (403, "forbidden")


def test_an_unknown_leaderboard_is_not_found(shared: World) -> None:
    assert problem(shared.api.submit(leaderboard="none")) == (404, "leaderboard-not-found")
    assert problem(shared.api.get("/v1/leaderboards/none/matches/m", headers=AUTH)) == (404, "leaderboard-not-found")


def test_checks_come_in_their_order(shared: World) -> None:
    def send(headers: dict[str, str], content: bytes, query: str = "") -> tuple[int, str]:
        return problem(shared.api.send("POST", SCORES + query, headers=headers, content=content))

    big, broken = b" " * 70_000, b'{"match_id":'
    limited = LIMITED | JSON
    invalid = b'{"leaderboard": "none", "match_id": "m", "player_id": "z", "score": true}'
    unknown = b'{"leaderboard": "none", "match_id": "m", "player_id": "z", "score": 1}'
    assert send(JSON, big) == (401, "unauthorized")
    assert send(LIMITED, big) == (415, "unsupported-media-type")
    assert send(limited, big, "?wait=9") == (413, "too-large")
    assert send(limited, broken, "?wait=9") == (400, "invalid-json")
    assert send(limited, invalid) == (422, "invalid-request")
    assert send(limited, unknown, "?wait=9") == (422, "invalid-request")
    assert send(limited, unknown) == (403, "forbidden")
    assert send(AUTH | JSON, unknown) == (404, "leaderboard-not-found")


@pytest.mark.parametrize("sent", ["text/plain", "application/x-www-form-urlencoded", "application/x-ndjson", ""])
def test_a_body_must_say_that_it_is_json(shared: World, sent: str) -> None:
    headers = AUTH | ({"Content-Type": sent} if sent else {})
    assert problem(shared.api.send("POST", SCORES, content=b"{}", headers=headers)) == (415, "unsupported-media-type")


@pytest.mark.parametrize("sent", ["application/json; charset=utf-8", "Application/JSON", "application/json;x"])
def test_the_parameters_of_a_content_type_do_no_harm(shared: World, sent: str) -> None:
    content = b'{"match_id": "m", "leaderboard": "ranked", "player_id": "zed", "score": 1}'
    assert shared.api.send("POST", SCORES, content=content, headers=AUTH | {"Content-Type": sent}).status_code == 202


@pytest.mark.parametrize(
    "content", [b"", b"{", b"match_id=a", b'{"\xff":1}', b"{} x", b"[NaN]", b"007", b"[Infinity]", b"[" * 5_000]
)
def test_what_is_not_json_is_told_so(shared: World, content: bytes) -> None:
    for path in (SCORES, "/v1/matches"):
        assert problem(shared.api.send("POST", path, content=content, headers=AUTH | JSON)) == (400, "invalid-json")


def test_json_that_is_no_object_is_invalid(shared: World) -> None:
    for content in (b"[]", b"null", b'"zed"', b"7", b"1e400"):
        assert faults(shared.api.send("POST", SCORES, content=content, headers=AUTH | JSON)) == [""]


def test_a_body_of_64_kib_is_read_and_one_byte_more_is_not(shared: World) -> None:
    content = b'{"match_id": "m", "leaderboard": "ranked", "player_id": "zed", "score": 1}'.ljust(64 * 1024)

    async def chunks(body: bytes) -> Any:
        for start in range(0, len(body), 1_000):
            yield body[start : start + 1_000]

    headers = AUTH | JSON
    assert shared.api.send("POST", SCORES, content=content, headers=headers).status_code == 202
    assert shared.api.send("POST", SCORES, content=chunks(content), headers=headers).status_code == 202
    for body in (content + b" ", chunks(content + b" ")):
        assert problem(shared.api.send("POST", SCORES, content=body, headers=headers)) == (413, "too-large")


@pytest.mark.parametrize(
    ("score", "place"),
    [
        ({"score": -1}, "/score"),
        ({"score": 1_000_001}, "/score"),
        ({"score": True}, "/score"),
        ({"score": "1"}, "/score"),
        ({"score": 1.0}, "/score"),
        ({"score": None}, "/score"),
        ({"score": [1]}, "/score"),
        ({"match_id": ""}, "/match_id"),
        ({"player_id": 7}, "/player_id"),
        ({"player_id": "x" * 129}, "/player_id"),
        ({"player_id": "cafe\u0301"}, "/player_id"),
        ({"leaderboard": 7}, "/leaderboard"),
        ({"leaderboard": None}, "/leaderboard"),
        ({"leaderboard": "No_Such"}, "/leaderboard"),
        ({"ended_at": "2026-10-24T12:00:00"}, "/ended_at"),
        ({"ended_at": None}, "/ended_at"),
        ({"ended_at": 1}, "/ended_at"),
        ({"ended_at": "1969-12-31T23:59:59.999Z"}, "/ended_at"),
        ({"endedAt": "x"}, "/endedAt"),
    ],
)
def test_a_fault_is_told_with_its_place(shared: World, score: dict[str, Any], place: str) -> None:
    assert faults(shared.api.submit(**score)) == [place]


def test_an_end_time_may_be_5_minutes_ahead(shared: World) -> None:
    assert shared.api.submit(ended_at=format_time(now_ms() + 299_000)).status_code == 202
    assert faults(shared.api.submit(ended_at=format_time(now_ms() + 310_000))) == ["/ended_at"]


def test_faults_of_the_body_and_of_the_query_are_listed_together(shared: World) -> None:
    response = shared.api.post(f"{SCORES}?waits=1&wait=0", {"leaderboard": "ranked", "match_id": 1, "player_id": "a"})
    assert faults(response) == ["/match_id", "/score", "waits", "wait"]


def test_a_match_has_1_to_200_results_and_nobody_twice(shared: World) -> None:
    def send(results: list[Any]) -> Any:
        return shared.api.post("/v1/matches", {"match_id": "m", "leaderboard": "ranked", "results": results})

    many = [{"player_id": f"p{number}", "score": number} for number in range(201)]
    assert send(many[:200]).status_code == 202
    assert faults(send(many)) == ["/results"]
    assert faults(send([])) == ["/results"]
    assert faults(send([many[0], many[1], many[0]])) == ["/results/2/player_id"]
    assert faults(send([many[0], {"player_id": "", "score": 1.5}, {"score": 1, "team": "red"}])) == [
        "/results/1/player_id", "/results/1/score", "/results/2/player_id", "/results/2/team",
    ]  # fmt: skip


def test_of_very_many_faults_the_first_50_are_listed_and_all_are_counted(shared: World) -> None:
    body = {"match_id": "m", "leaderboard": "ranked", "results": [{"player_id": "", "score": "1"}] * 200}
    response = shared.api.post("/v1/matches?a=1", body)
    assert len(faults(response)) == 50
    assert response.json()["detail"].endswith("; and 599 more, see errors for the first 50")


@pytest.mark.parametrize("wait", ["0", "0.0", "5.1", "-1", "nan", "soon", "", "1&wait=1", "inf"])
def test_a_wait_outside_its_bounds_is_refused(shared: World, wait: str) -> None:
    body = {"match_id": "m", "leaderboard": "ranked", "player_id": "zed", "score": 1}
    assert faults(shared.api.post(f"{SCORES}?wait={wait}", body)) == ["wait"]
