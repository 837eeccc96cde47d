"""Lanes that can't prove that they are whole: what is told, and what the scorebook answers instead."""

from __future__ import annotations

import pytest

from schemas.times import format_time
from stores.clock import now_ms
from tests.api.world import HOUR_MS, World, problem

BOARD = "/v1/boards/ranked:all"
ORDERED = ("/top", "/players/zed/around", "/around?id=zed")


@pytest.fixture
def recorded(world: World) -> World:
    """Three results, all of the same moment."""
    ended_at = format_time(now_ms() - HOUR_MS)
    results = [{"player_id": "zed", "score": 10}, {"player_id": "amy", "score": 20}, {"player_id": "bob", "score": 10}]
    world.apply(world.event({"match_id": "m", "leaderboard": "ranked", "ended_at": ended_at, "results": results}))
    return world


def check_answers_from_scorebook(world: World) -> None:
    player = world.api.get(f"{BOARD}/players/zed")
    body = player.json()
    assert (body["score"], body["rank"], body["size"], body["as_of"], body["top_percent"], body["state"]) == (
        10, None, None, None, None, "rebuilding",
    )  # fmt: skip
    assert player.headers["Cache-Control"] == "no-store"
    assert "Standings-As-Of" not in player.headers
    assert world.api.get(f"{BOARD}/player?id=zed").json() == body
    assert problem(world.api.get(f"{BOARD}/players/ghost")) == (404, "player-not-found")
    friends = world.api.get(f"{BOARD}/friends?id=ghost&id=bob&id=zed&id=amy&ties=shared").json()
    assert [(one["friend_rank"], one["rank"], one["player_id"], one["score"]) for one in friends["entries"]] == [
        (1, None, "amy", 20),
        (2, None, "zed", 10),
        (2, None, "bob", 10),
    ]
    assert (friends["missing"], friends["state"], friends["size"]) == (["ghost"], "rebuilding", None)


def test_a_lane_under_rebuild_tells_its_progress(recorded: World) -> None:
    shown = {one["achieved_at"] for one in recorded.api.get(f"{BOARD}/top").json()["entries"]}
    lane = recorded.lane_of(recorded.board())
    recorded.begin_rebuild(lane)
    for path in ORDERED:
        response = recorded.api.get(BOARD + path)
        assert problem(response) == (503, "board-not-ready")
        assert response.headers["Retry-After"] == "2"
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert (response.json()["state"], response.json()["progress"]) == ("rebuilding", {"rows": 0})
    check_answers_from_scorebook(recorded)
    assert {recorded.api.get(f"{BOARD}/players/zed").json()["achieved_at"]} == shown
    board = recorded.api.get(BOARD)
    assert (board.status_code, board.headers["Cache-Control"]) == (200, "no-store")
    assert [board.json()[name] for name in ("state", "size", "as_of")] == ["rebuilding", None, None]


@pytest.mark.parametrize("key", ["meta", "applied", "boards"])
def test_a_lane_that_lost_a_key_is_not_served_as_truth(recorded: World, key: str) -> None:
    keys = recorded.settings.names.lane(recorded.lane_of(recorded.board()))
    recorded.redis.execute_command("DEL", getattr(keys, key))
    for path in ORDERED:
        response = recorded.api.get(BOARD + path)
        assert problem(response) == (503, "board-not-ready")
        assert response.json()["progress"] is None
    check_answers_from_scorebook(recorded)


def test_a_board_whose_key_was_deleted_is_not_served_as_empty(recorded: World) -> None:
    board = recorded.board()
    recorded.redis.execute_command("DEL", recorded.settings.names.lane(recorded.lane_of(board)).board(board.name))
    for path in ORDERED:
        assert problem(recorded.api.get(BOARD + path)) == (503, "board-not-ready")
    assert recorded.api.get(BOARD).json()["state"] == "rebuilding"
    check_answers_from_scorebook(recorded)


def test_a_lane_of_another_truth_is_not_served(recorded: World) -> None:
    keys = recorded.settings.names.lane(recorded.lane_of(recorded.board()))
    recorded.redis.execute_command("HSET", keys.meta, "truth_id", "another")
    assert problem(recorded.api.get(f"{BOARD}/top")) == (503, "board-not-ready")
    check_answers_from_scorebook(recorded)


def test_a_players_boards_of_lanes_that_are_not_ready_have_no_rank(recorded: World) -> None:
    unready = recorded.lane_of(recorded.board())
    recorded.begin_rebuild(unready)
    response = recorded.api.get("/v1/players/zed/boards")
    body = response.json()
    assert (body["as_of"], response.headers["Cache-Control"]) == (None, "no-store")
    found = {one["board"]: (one["rank"], one["score"], one.get("state")) for one in body["boards"]}
    boards = recorded.leaderboards["ranked"].boards_at(now_ms() - HOUR_MS)
    assert found == {
        board.name: (None, 10, "rebuilding") if recorded.lane_of(board) == unready else (2, 10, None)
        for board in boards
    }


def test_a_lane_that_is_whole_again_is_served_again(recorded: World) -> None:
    lane = recorded.lane_of(recorded.board())
    recorded.begin_rebuild(lane)
    assert recorded.api.get(f"{BOARD}/top").status_code == 503
    recorded.open_lane(lane)
    assert recorded.api.get(f"{BOARD}/top").json()["entries"] == []
