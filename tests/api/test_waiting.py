"""Waiting for what was submitted: standings, conflicts, receipts, reading one's own write."""

from __future__ import annotations

import time
from typing import Any

import pytest

from schemas.positions import Position, decode_position, encode_position
from schemas.times import format_time
from stores.clock import now_ms
from tests.api.world import AUTH, HOUR_MS, World, faults, problem, wait_until

SCORE = {"match_id": "m", "leaderboard": "ranked", "player_id": "zed", "score": 10}
AN_HOUR_AGO = format_time(now_ms() - HOUR_MS)


def submit_and_apply(world: World, body: dict[str, Any], *, record: bool = True) -> Any:
    """Submit with a wait, and do meanwhile what an updater would do."""
    path = "/v1/matches" if "results" in body else "/v1/scores"
    waiting = world.api.begin("POST", f"{path}?wait=5", json=body, headers=AUTH)
    time.sleep(0.1)
    assert not waiting.done()
    if record:
        world.apply(world.event(body))
    else:
        world.skip()
    return waiting.result(10)


def test_standings_come_once_every_live_board_holds_the_result(world: World) -> None:
    at = world.board("daily").window.starts_at
    body = SCORE | {"ended_at": format_time(at)}
    response = submit_and_apply(world, body)
    assert response.status_code == 200
    found = response.json()
    assert set(found) == {"match_id", "leaderboard", "ended_at", "position", "standings"}
    names = [board.name for board in world.leaderboards["ranked"].boards_at(at)]
    assert found["standings"] == [
        {"board": name, "player_id": "zed", "rank": 1, "score": 10, "improved": True, "size": 1} for name in names
    ]


def test_improved_says_whether_the_row_shows_this_match(world: World) -> None:
    submit_and_apply(world, SCORE | {"ended_at": AN_HOUR_AGO})
    worse = {"match_id": "n", "leaderboard": "ranked", "ended_at": AN_HOUR_AGO,
             "results": [{"player_id": "amy", "score": 20}, {"player_id": "zed", "score": 5}]}  # fmt: skip
    found = [one for one in submit_and_apply(world, worse).json()["standings"] if one["board"] == "ranked:all"]
    assert [(one["player_id"], one["rank"], one["score"], one["improved"], one["size"]) for one in found] == [
        ("amy", 1, 20, True, 2),
        ("zed", 2, 10, False, 2),
    ]


def test_when_the_time_runs_out_the_event_is_accepted_all_the_same(world: World) -> None:
    began_s = time.monotonic()
    response = world.api.post("/v1/scores?wait=0.2", SCORE)
    assert (response.status_code, set(response.json())) == (202, {"match_id", "leaderboard", "ended_at", "position"})
    assert 0.2 <= time.monotonic() - began_s < 2


def test_a_match_that_is_recorded_otherwise_is_a_conflict(world: World) -> None:
    submit_and_apply(world, SCORE | {"ended_at": AN_HOUR_AGO})
    other_score = submit_and_apply(world, SCORE | {"score": 11, "ended_at": AN_HOUR_AGO}, record=False)
    other_time = submit_and_apply(world, SCORE | {"ended_at": format_time(now_ms())}, record=False)
    for response in (other_score, other_time):
        assert problem(response) == (409, "match-conflict")


def test_a_repeat_without_a_time_is_the_same_result(world: World) -> None:
    long_ago = format_time(now_ms() - 30 * 24 * HOUR_MS)
    submit_and_apply(world, SCORE | {"ended_at": long_ago})
    response = submit_and_apply(world, SCORE, record=False)
    # It counts under the first report's time: today's boards don't have it.
    assert [one["board"] for one in response.json()["standings"]] == ["ranked:all"]


def test_a_result_whose_boards_are_all_gone_has_no_standings(world: World) -> None:
    world.define("days", windows=("daily",))
    world.await_leaderboard("days")
    body = SCORE | {"leaderboard": "days", "ended_at": format_time(now_ms() - 40 * 24 * HOUR_MS)}
    response = submit_and_apply(world, body)
    assert (response.status_code, response.json()["standings"]) == (200, [])


def test_an_event_that_was_applied_without_a_receipt_was_dead_lettered(world: World) -> None:
    response = submit_and_apply(world, SCORE, record=False)
    assert faults(response) == [""]
    assert "dead letters" in response.json()["detail"]


def test_a_lane_that_is_lost_meanwhile_takes_no_acceptance_back(world: World) -> None:
    for lane in range(world.topology.lanes):
        world.begin_rebuild(lane)
    assert world.api.post("/v1/scores?wait=0.2", SCORE).status_code == 202


def test_a_read_waits_for_its_own_write(world: World) -> None:
    position = world.api.submit(score=10).json()["position"]
    for path in ("/v1/boards/ranked:all", "/v1/boards/ranked:all/top", "/v1/boards/ranked:all/players/zed",
                 "/v1/boards/ranked:all/players/zed/around", "/v1/boards/ranked:all/friends", "/v1/players/zed/boards",
                 "/v1/boards/ranked:all/player", "/v1/boards/ranked:all/around"):  # fmt: skip
        query = "id=zed&" if path.endswith(("friends", "player", "l/around")) else ""
        response = world.api.get(f"{path}?{query}after={position}&wait=0.05")
        assert problem(response) == (504, "not-applied-yet")
        assert response.headers["Retry-After"] == "1"
    waiting = world.api.begin("GET", f"/v1/boards/ranked:all/players/zed?after={position}&wait=5")
    time.sleep(0.1)
    assert not waiting.done()
    world.apply(world.event(SCORE))
    assert waiting.result(10).json()["score"] == 10
    posted = world.api.post(f"/v1/boards/ranked:all/friends?after={position}", {"player_ids": ["zed"]})
    assert posted.json()["missing"] == []


def test_a_read_waits_a_second_where_it_does_not_say_how_long(world: World) -> None:
    position = world.api.submit().json()["position"]
    began_s = time.monotonic()
    assert problem(world.api.get(f"/v1/boards/ranked:all/top?after={position}")) == (504, "not-applied-yet")
    assert 1 <= time.monotonic() - began_s < 3


def test_a_position_of_another_log_is_never_taken_as_applied(world: World) -> None:
    world.skip()
    position = decode_position(world.api.submit().json()["position"])
    assert position.log_id == world.log_id
    foreign = encode_position(Position("11111111-2222-3333-4444-555555555555", 0, 0))
    own = encode_position(Position(world.log_id, 0, 0))
    assert problem(world.api.get(f"/v1/boards/ranked:all/top?after={foreign}&wait=0.1")) == (504, "not-applied-yet")
    assert world.api.get(f"/v1/boards/ranked:all/top?after={own}&wait=0.1").status_code == 200


def test_positions_bear_the_id_of_the_log_that_is_there(world: World) -> None:
    before = world.log_id
    world.admin._client.delete_topics([world.settings.names.events])
    wait_until(lambda: world.admin.describe() is None)
    wait_until(lambda: world.api.services.log.trouble is not None)
    response = world.api.submit()
    assert problem(response) == (503, "store-unavailable")
    assert response.json()["accepted"] is False
    world.admin.create_topics(1, 1)
    wait_until(lambda: world.api.submit().status_code == 202)
    assert decode_position(world.api.submit().json()["position"]).log_id not in (before, "")


def test_a_receipt_shows_what_was_applied(world: World) -> None:
    path = "/v1/leaderboards/ranked/matches/m%2F1"
    assert problem(world.api.get(path, headers=AUTH)) == (404, "match-not-found")
    results = [{"player_id": "amy", "score": 7}, {"player_id": "zed", "score": 10}]
    world.apply(world.event({"match_id": "m/1", "leaderboard": "ranked", "ended_at": AN_HOUR_AGO, "results": results}))
    before = now_ms()
    world.apply(world.event({"match_id": "m/1", "leaderboard": "ranked", "player_id": "bob", "score": 8}))
    body = world.api.get(path, headers=AUTH).json()
    assert set(body) == {"match_id", "leaderboard", "ended_at", "applied_at", "results"}
    assert (body["match_id"], body["leaderboard"], body["ended_at"]) == ("m/1", "ranked", AN_HOUR_AGO)
    assert body["applied_at"] >= format_time(before)
    assert [(one["player_id"], one["score"]) for one in body["results"]] == [("zed", 10), ("bob", 8), ("amy", 7)]


@pytest.mark.parametrize(("path", "places"), [("m?x=1", ["x"]), ("%FF", ["match_id"]), ("x" * 129, ["match_id"])])
def test_a_receipt_of_what_can_be_no_match_is_refused(shared: World, path: str, places: list[str]) -> None:
    assert faults(shared.api.get(f"/v1/leaderboards/ranked/matches/{path}", headers=AUTH)) == places


def test_a_repeat_is_answered_with_the_time_under_which_it_counts(world: World) -> None:
    """The first report's time stays, also in the reply to the second one."""
    body = {"match_id": "again", "leaderboard": "ranked", "player_id": "zed", "score": 7}
    first = world.event(body, now_ms() - 60_000)
    world.apply(first)
    reply = world.api.post("/v1/scores?wait=5", body)
    assert reply.status_code == 200, reply.text
    assert reply.json()["ended_at"] == format_time(first.ended_at)


def test_a_worse_report_of_the_same_match_has_not_improved_anything(world: World) -> None:
    """Reported alone and as a whole, the better of both stands on the row, and the other is told so."""
    world.apply(world.event({"match_id": "both", "leaderboard": "ranked", "player_id": "zed", "score": 7}))
    whole = {"match_id": "both", "leaderboard": "ranked", "results": [{"player_id": "zed", "score": 5}]}
    world.apply(world.event(whole))
    standings = world.api.post("/v1/matches?wait=5", whole).json()["standings"]
    assert standings
    assert {(one["score"], one["improved"]) for one in standings} == {(7, False)}
