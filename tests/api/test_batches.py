"""Batches: every line is answered for itself."""

from __future__ import annotations

from typing import Any

import httpx
import orjson
import pytest

from tests.api.world import AUTH, World, faults, problem

BATCH = "/v1/matches:batch"
NDJSON = AUTH | {"Content-Type": "application/x-ndjson"}


def line(match_id: str = "m", leaderboard: str = "ranked", **more: Any) -> bytes:
    results = [{"player_id": "zed", "score": 1}]
    return orjson.dumps({"match_id": match_id, "leaderboard": leaderboard, "results": results} | more)


def send(world: World, content: bytes, query: str = "", headers: dict[str, str] = NDJSON) -> httpx.Response:
    return world.api.send("POST", BATCH + query, content=content, headers=headers)


def answers(response: httpx.Response) -> list[dict[str, Any]]:
    assert response.status_code == 200, response.text
    assert response.headers["Content-Type"] == "application/x-ndjson"
    return [orjson.loads(one) for one in response.content.splitlines()]


def test_good_lines_are_taken_and_bad_ones_are_told_by_number(world: World) -> None:
    lines = [
        line("1"),
        b'{"match_id":',
        line("3", results=[{"player_id": "a", "score": "1"}]),
        line("4", "none"),
        b"",
        line("6"),
    ]
    found = answers(send(world, b"\r\n".join(lines) + b"\r\n"))
    assert [(one["line"], one["status"]) for one in found] == [
        (1, 202),
        (2, 400),
        (3, 422),
        (4, 404),
        (5, 400),
        (6, 202),
    ]
    assert set(found[0]) == {"line", "status", "position"}
    assert [one.get("type") for one in found[1:4]] == [
        "/problems/invalid-json", "/problems/invalid-request", "/problems/leaderboard-not-found",
    ]  # fmt: skip
    assert found[2]["errors"][0]["pointer"] == "/results/0/score"
    assert [key for key, _ in world.records()] == ["1", "6"]
    # The last line may lack its end.
    assert [one["status"] for one in answers(send(world, line("7") + b"\n" + line("8")))] == [202, 202]


def test_a_line_may_be_one_player_s_score_of_a_match(world: World) -> None:
    lines = [
        b'{"match_id":"a","leaderboard":"ranked","player_id":"zed","score":1}',
        b'{"match_id":"a","leaderboard":"ranked","player_id":"amy","score":"2"}',
        b"[]",
    ]
    found = answers(send(world, b"\n".join(lines) + b"\n"))
    assert [one["status"] for one in found] == [202, 422, 422]
    assert found[1]["errors"][0]["pointer"] == "/score"
    assert [value for _, value in world.records()] == [orjson.loads(lines[0])]


def test_a_limited_key_is_refused_line_by_line(shared: World) -> None:
    headers = {"Authorization": "Bearer limited-key", "Content-Type": "application/x-ndjson"}
    found = answers(send(shared, line("1") + b"\n" + line("2", "main"), headers=headers))
    assert [one["status"] for one in found] == [202, 403]


@pytest.mark.parametrize("content", [b"", b"\n", b" \r\n\n"])
def test_an_empty_batch_is_invalid(shared: World, content: bytes) -> None:
    assert faults(send(shared, content)) == [""]


def test_a_batch_has_up_to_1000_lines(world: World) -> None:
    lines = [line(str(number)) for number in range(1_001)]
    assert problem(send(world, b"\n".join(lines))) == (413, "too-large")
    assert [one["status"] for one in answers(send(world, b"\n".join(lines[:1_000]) + b"\n"))] == [202] * 1_000
    assert [key for key, _ in world.records()] == [str(number) for number in range(1_000)]


def test_a_batch_has_up_to_4_mib(shared: World) -> None:
    most = line().ljust(60_000) + b"\n"
    content = most * (4 * 1024 * 1024 // len(most))
    assert {one["status"] for one in answers(send(shared, content))} == {202}
    assert problem(send(shared, content.ljust(4 * 1024 * 1024 + 1))) == (413, "too-large")


def test_a_line_is_bounded_like_the_body_of_one_match(shared: World) -> None:
    found = answers(send(shared, line().ljust(64 * 1024) + b"\n" + line().ljust(64 * 1024 + 1)))
    assert [one["status"] for one in found] == [202, 413]


def test_a_batch_takes_no_parameters_and_no_other_content_type(shared: World) -> None:
    assert faults(send(shared, line(), "?wait=1")) == ["wait"]
    headers = AUTH | {"Content-Type": "application/json"}
    assert problem(send(shared, b"[]", headers=headers)) == (415, "unsupported-media-type")
