"""Players, neighbours, friends, and a player's boards."""

from __future__ import annotations

from typing import Any

import pytest

from stores.clock import now_ms
from tests.api.world import HOUR_MS, World, faults, problem

BOARD = "/v1/boards/ranked:all"
LONG = "é" * 64
ODD_IDS = {"a:b": "a%3Ab", "a#b": "a%23b", "{x}": "%7Bx%7D", "../": "..%2F", "a/b": "a%2Fb", "..": "%2E%2E", "*": "*",
           "a b": "a%20b", "a?b=c&d": "a%3Fb%3Dc%26d", "🦊": "%F0%9F%A6%8A", "a+b": "a+b", "%41": "%2541",
           LONG: "%C3%A9" * 64, "x" * 128: "x" * 128}  # fmt: skip


@pytest.fixture(scope="module")
def board(shared: World) -> World:
    """Five players a..e with 50, 40, 30, 30, 10."""
    at = now_ms() - 10 * HOUR_MS
    scores = {
        name: (score, at + HOUR_MS * place)
        for place, (name, score) in enumerate(zip("abcde", (50, 40, 30, 30, 10), strict=True))
    }
    shared.put(shared.board(), scores)
    return shared


def around(world: World, query: str) -> list[str]:
    response = world.api.get(f"{BOARD}/{query}")
    assert response.status_code == 200, response.text
    return [f"{one['rank']}{one['player_id']}" for one in response.json()["entries"]]


def test_a_player_is_shown_with_place_size_and_share(board: World) -> None:
    response = board.api.get(f"{BOARD}/players/b")
    body = response.json()
    assert set(body) == {"board", "as_of", "size", "player_id", "rank", "score", "achieved_at", "top_percent"}
    assert (body["rank"], body["score"], body["size"], body["top_percent"]) == (2, 40, 5, 40)
    assert response.headers["Standings-As-Of"] == body["as_of"]
    assert response.headers["Cache-Control"] == "public, max-age=1"


@pytest.mark.parametrize(("ties", "rank"), [("unique", 4), ("shared", 3)])
def test_ties_are_ranked_the_same_in_all_reads(board: World, ties: str, rank: int) -> None:
    query = f"ties={ties}"
    assert board.api.get(f"{BOARD}/players/d?{query}").json()["rank"] == rank
    assert board.api.get(f"{BOARD}/top?from_rank=4&n=1&{query}").json()["entries"][0]["rank"] == rank
    assert around(board, f"players/d/around?k=0&{query}") == [f"{rank}d"]
    friends = board.api.get(f"{BOARD}/friends?id=d&id=c&id=e&{query}").json()["entries"]
    assert [one["rank"] for one in friends] == [3, rank, 5]
    assert [one["friend_rank"] for one in friends] == ([1, 2, 3] if ties == "unique" else [1, 1, 3])


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("players/a/around?k=1", ["1a", "2b"]),
        ("players/e/around?k=1", ["4d", "5e"]),
        ("players/c/around?k=0", ["3c"]),
        ("players/c/around", ["1a", "2b", "3c", "4d", "5e"]),
        ("players/b/around?k=100", ["1a", "2b", "3c", "4d", "5e"]),
        ("around?id=b&k=1", ["1a", "2b", "3c"]),
    ],
)
def test_neighbours_are_short_at_the_edges_and_never_wrapped(board: World, query: str, shown: list[str]) -> None:
    assert around(board, query) == shown


@pytest.mark.parametrize("k", ["-1", "101", "x", "", "1.5"])
def test_the_number_of_neighbours_is_bounded(board: World, k: str) -> None:
    assert faults(board.api.get(f"{BOARD}/players/a/around?k={k}")) == ["k"]
    assert faults(board.api.get(f"{BOARD}/around?id=a&k={k}")) == ["k"]


def test_a_player_without_a_score_is_not_found(board: World) -> None:
    for path in ("players/zed", "players/A", "players/zed/around", "player?id=zed", "around?id=zed"):
        response = board.api.get(f"{BOARD}/{path}")
        assert problem(response) == (404, "player-not-found")
        assert response.headers["Standings-As-Of"].endswith("Z")


def test_the_share_is_rounded_up_and_never_zero(world: World) -> None:
    world.put(world.board(), {f"p{number:05}": (number, now_ms()) for number in range(20_001)})
    assert world.api.get(f"{BOARD}/players/p20000").json()["top_percent"] == 0.01
    assert world.api.get(f"{BOARD}/players/p00000").json()["top_percent"] == 100
    assert world.api.get(f"{BOARD}/players/p19998").json()["top_percent"] == 0.02


def test_odd_ids_stay_apart_and_can_all_be_read(world: World) -> None:
    scores = {player_id: (place, now_ms()) for place, player_id in enumerate(ODD_IDS)}
    world.put(world.board(), scores)
    for player_id, encoded in ODD_IDS.items():
        wanted = scores[player_id][0]
        query_form = encoded.replace("+", "%2B")
        for path in (f"players/{encoded}", f"player?id={query_form}"):
            body = world.api.get(f"{BOARD}/{path}").json()
            assert (body["player_id"], body["score"]) == (player_id, wanted)
        assert world.api.get(f"{BOARD}/players/{encoded}/around?k=0").json()["entries"][0]["player_id"] == player_id
        assert world.api.get(f"{BOARD}/friends?id={query_form}").json()["missing"] == []
        assert world.api.get(f"/v1/players/{encoded}/boards").json()["player_id"] == player_id
    assert problem(world.api.get(f"{BOARD}/players/a/b")) == (404, "not-found")
    assert world.api.get(f"{BOARD}/player?id=a+b").json()["player_id"] == "a b"


@pytest.mark.parametrize("encoded", ["%FF", "a%00b", "cafe%CC%81", "x" * 129, "%C3%A9" * 65, "%0A", "%ED%A0%80"])
def test_an_id_that_no_player_can_have_is_refused(shared: World, encoded: str) -> None:
    assert faults(shared.api.get(f"{BOARD}/players/{encoded}")) == ["player_id"]
    assert faults(shared.api.get(f"{BOARD}/players/{encoded}/around")) == ["player_id"]
    assert faults(shared.api.get(f"/v1/players/{encoded}/boards")) == ["player_id"]
    for path in ("player", "around", "friends"):
        assert faults(shared.api.get(f"{BOARD}/{path}?id={encoded}")) == ["id"]


def test_a_query_form_takes_exactly_one_id(shared: World) -> None:
    for path in ("player", "around"):
        assert faults(shared.api.get(f"{BOARD}/{path}")) == ["id"]
        assert faults(shared.api.get(f"{BOARD}/{path}?id=")) == ["id"]
        assert faults(shared.api.get(f"{BOARD}/{path}?id=a&id=b")) == ["id"]


def friends_of(world: World, player_ids: Any) -> Any:
    return world.api.post(f"{BOARD}/friends", {"player_ids": player_ids}, headers={})


def test_friends_are_ranked_among_themselves_and_ghosts_are_told(board: World) -> None:
    query = "id=ghost2&id=e&id=b&id=ghost1&id=b&id=ghost2"
    got = board.api.get(f"{BOARD}/friends?{query}")
    posted = friends_of(board, ["ghost2", "e", "b", "ghost1", "b"])
    for response in (got, posted):
        body = response.json()
        shown = [(one["friend_rank"], one["rank"], one["player_id"], one["score"]) for one in body["entries"]]
        assert shown == [(1, 2, "b", 40), (2, 5, "e", 10)]
        assert body["missing"] == ["ghost2", "ghost1"]
        assert response.headers["Standings-As-Of"] == body["as_of"]
    assert got.headers["Cache-Control"] == "public, max-age=1"
    assert posted.headers["Cache-Control"] == "no-store"


def test_1_to_500_friends_can_be_asked_for(board: World) -> None:
    many = [f"p{number}" for number in range(500)]
    assert len(friends_of(board, many).json()["missing"]) == 500
    assert friends_of(board, ["p"] * 1_000).json()["missing"] == ["p"]
    assert faults(friends_of(board, [*many, "one more"])) == ["/player_ids"]
    assert faults(friends_of(board, [])) == ["/player_ids"]
    assert faults(board.api.get(f"{BOARD}/friends")) == ["id"]
    query = "&".join(f"id={one}" for one in many)
    assert len(board.api.get(f"{BOARD}/friends?{query}").json()["missing"]) == 500
    assert faults(board.api.get(f"{BOARD}/friends?{query}&id=more")) == ["id"]


def test_a_body_of_friends_is_checked_like_any(board: World) -> None:
    path = f"{BOARD}/friends"
    assert faults(friends_of(board, "p1")) == ["/player_ids"]
    assert faults(friends_of(board, ["a", "", 7])) == ["/player_ids/1", "/player_ids/2"]
    assert faults(board.api.post(path, {}, headers={})) == ["/player_ids"]
    assert faults(board.api.post(f"{path}?n=1", {"player_ids": ["a"], "ids": []}, headers={})) == ["/ids", "n"]
    json_type = {"Content-Type": "application/json"}
    assert problem(board.api.send("POST", path, content=b"{", headers=json_type)) == (400, "invalid-json")
    assert problem(board.api.send("POST", path, content=b"{}")) == (415, "unsupported-media-type")
    most = b'{"player_ids": ["a"]}'.ljust(128 * 1024)
    assert board.api.send("POST", path, content=most, headers=json_type).status_code == 200
    assert problem(board.api.send("POST", path, content=most + b" ", headers=json_type)) == (413, "too-large")


def test_a_players_boards_are_all_that_are_live(world: World) -> None:
    at = now_ms()
    yesterday = world.board("daily", at_ms=at - 24 * HOUR_MS)
    for board in (world.board(), world.board("daily"), yesterday):
        world.put(board, {"amy": (20, board.window.starts_at), "zed": (10, board.window.starts_at)})
    body = world.api.get("/v1/players/zed/boards").json()
    shown = [(one["board"], one["rank"], one["score"], one["size"], one["top_percent"]) for one in body["boards"]]
    names = {world.board().name, world.board("daily").name, yesterday.name}
    assert sorted(shown) == [(name, 2, 10, 2, 100) for name in sorted(names)]
    assert body["as_of"] is not None
    assert world.api.get("/v1/players/nobody/boards").json()["boards"] == []


def test_a_window_that_has_not_opened_is_on_no_list(world: World) -> None:
    board = world.board("daily", at_ms=now_ms() + 24 * HOUR_MS)
    world.put(board, {"zed": (1, board.window.starts_at)})
    assert world.api.get("/v1/players/zed/boards").json()["boards"] == []
    assert problem(world.api.get(f"/v1/boards/{board.name}/players/zed")) == (404, "board-not-found")
