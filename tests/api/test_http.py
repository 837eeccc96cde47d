"""What holds for all paths: methods, other origins, unknown paths, route sets; and the definitions."""

from __future__ import annotations

import pytest

from api.services import connect
from stores.clock import now_ms
from tests.api.world import AUTH, HOUR_MS, Api, World, problem

PUBLIC = {
    "/v1/leaderboards": "GET, HEAD, OPTIONS",
    "/v1/leaderboards/ranked": "GET, HEAD, OPTIONS",
    "/v1/boards/ranked:all": "GET, HEAD, OPTIONS",
    "/v1/boards/ranked:all/top": "GET, HEAD, OPTIONS",
    "/v1/boards/ranked:all/players/zed": "GET, HEAD, OPTIONS",
    "/v1/boards/ranked:all/players/zed/around": "GET, HEAD, OPTIONS",
    "/v1/boards/ranked:all/player": "GET, HEAD, OPTIONS",
    "/v1/boards/ranked:all/around": "GET, HEAD, OPTIONS",
    "/v1/boards/ranked:all/friends": "GET, POST, HEAD, OPTIONS",
    "/v1/players/zed/boards": "GET, HEAD, OPTIONS",
}
INTERNAL = {
    "/v1/scores": "POST, OPTIONS",
    "/v1/matches": "POST, OPTIONS",
    "/v1/matches:batch": "POST, OPTIONS",
    "/v1/leaderboards/ranked/matches/m": "GET, HEAD, OPTIONS",
    "/livez": "GET, HEAD, OPTIONS",
    "/readyz": "GET, HEAD, OPTIONS",
    "/metrics": "GET, HEAD, OPTIONS",
}


@pytest.mark.parametrize(("path", "allow"), list((PUBLIC | INTERNAL).items()))
def test_a_method_that_a_path_lacks_is_told_with_those_it_has(shared: World, path: str, allow: str) -> None:
    for method in {"DELETE", "PUT", "PATCH", "BREW", "GET", "POST"} - set(allow.split(", ")):
        response = shared.api.send(method, path)
        assert problem(response) == (405, "method-not-allowed")
        assert response.headers["Allow"] == allow


@pytest.mark.parametrize(("path", "allow"), list((PUBLIC | INTERNAL).items()))
def test_options_tells_the_methods(shared: World, path: str, allow: str) -> None:
    response = shared.api.send("OPTIONS", path)
    assert (response.status_code, response.content, response.headers["Allow"]) == (204, b"", allow)


def test_any_origin_may_read_and_none_may_submit(shared: World) -> None:
    asked = {"Origin": "https://game.example", "Access-Control-Request-Method": "POST"}
    for path, allow in PUBLIC.items():
        preflight = shared.api.send("OPTIONS", path, headers=asked)
        assert preflight.headers["Access-Control-Allow-Origin"] == "*"
        assert preflight.headers["Access-Control-Allow-Methods"] == allow
        assert "content-type" in preflight.headers["Access-Control-Allow-Headers"]
        reply = shared.api.get(path, headers={"Origin": "https://game.example"})
        assert reply.headers["Access-Control-Allow-Origin"] == "*"
        assert "standings-as-of" in reply.headers["Access-Control-Expose-Headers"]
    for path in INTERNAL:
        for response in (shared.api.send("OPTIONS", path, headers=asked), shared.api.get(path, headers=asked)):
            assert "Access-Control-Allow-Origin" not in response.headers


def test_head_is_get_without_the_body(shared: World) -> None:
    shared.put(shared.board(), {"zed": (10, now_ms())})
    for path in ("/v1/boards/ranked:all/players/zed", "/v1/boards/ranked:all/players/ghost", "/livez", "/v1/nothing"):
        got, head = shared.api.get(path), shared.api.send("HEAD", path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        assert head.headers == got.headers


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/nothing",
        "/V1/leaderboards",
        "//v1/leaderboards",
        "/v2/boards/ranked:all",
        "/v1/boards//top",
        "/v1/boards/ranked:all/",
        "/v1/boards/ranked:all/bottom",
        "/v1/boards/ranked:all/players/",
        "/v1/players/zed",
        "/v1/scores/",
    ],
)
def test_a_path_that_is_none_is_not_found(shared: World, path: str) -> None:
    for method in ("GET", "POST", "OPTIONS", "DELETE"):
        assert problem(shared.api.send(method, f"http://test{path}")) == (404, "not-found")


def test_a_body_that_a_read_does_not_want_is_ignored(shared: World) -> None:
    assert shared.api.send("GET", "/v1/leaderboards", content=b"{").status_code == 200


def test_a_defect_gives_nothing_away(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a secret detail")

    monkeypatch.setattr(shared.api.services.reader, "size", fail)
    response = shared.api.get("/v1/boards/ranked:all")
    body = response.json()
    assert (response.status_code, body["status"], body["type"]) == (500, 500, "about:blank")
    assert response.headers["Content-Type"] == "application/problem+json"
    assert "secret" not in response.text


def test_a_process_may_serve_one_set_of_routes_alone(shared: World) -> None:
    for serve, absent, present in (("read", INTERNAL, PUBLIC), ("submit", PUBLIC, INTERNAL)):
        settings = shared.settings.model_copy(update={"serve": frozenset({serve})})
        api = Api(connect(settings))
        try:
            for path in present:
                assert api.send("DELETE", path).status_code == 405
            for path in absent:
                response = api.send("DELETE", path)
                is_there = path in ("/livez", "/readyz", "/metrics")
                assert problem(response)[0] == (405 if is_there else 404)
        finally:
            api.close()


def test_leaderboards_are_shown_as_a_reader_needs_them(world: World) -> None:
    world.define("laps", order="lower", min=5, max=2_097_151, scale=3, windows=("all", "daily"))
    world.await_leaderboard("laps")
    body = world.api.get("/v1/leaderboards/laps").json()
    assert body == {
        "leaderboard": "laps",
        "order": "lower",
        "min": 5,
        "max": 2_097_151,
        "scale": 3,
        "windows": ["all", "daily"],
        "current_boards": ["laps:all", world.board("daily", "laps").name],
        "tie_resolution_ms": {"all": 1000, "daily": 1},
    }
    listed = world.api.get("/v1/leaderboards").json()["leaderboards"]
    assert [one["leaderboard"] for one in listed] == ["laps", "ranked"]
    assert listed[0] == body
    assert problem(world.api.get("/v1/leaderboards/none")) == (404, "leaderboard-not-found")
    assert problem(world.api.get("/v1/leaderboards/%FF")) == (404, "leaderboard-not-found")
    assert problem(world.api.get("/v1/leaderboards?page=2")) == (422, "invalid-request")
    assert problem(world.api.get("/v1/leaderboards/laps?x=")) == (422, "invalid-request")


def test_a_board_says_when_it_begins_ends_and_goes(world: World) -> None:
    world.define("season", starts_at="2020-01-01T00:00:00Z", ends_at="2120-01-01T00:00:00+01:00", windows=("all",))
    world.await_leaderboard("season")
    body = world.api.get("/v1/boards/season:all").json()
    assert body["window"] == {
        "kind": "all",
        "starts_at": "2020-01-01T00:00:00.000Z",
        "ends_at": "2119-12-31T23:00:00.000Z",
    }
    assert body["expires_at"] is None
    body = world.api.get("/v1/boards/ranked:all").json()
    assert body["window"] == {"kind": "all", "starts_at": None, "ends_at": None}
    daily = world.board("daily", at_ms=now_ms() - 24 * HOUR_MS)
    response = world.api.get(f"/v1/boards/{daily.name}")
    body = response.json()
    assert set(body) == {"board", "leaderboard", "window", "order", "size", "state", "as_of", "expires_at"}
    assert (body["board"], body["leaderboard"], body["order"], body["size"], body["state"]) == (
        daily.name, "ranked", "higher", 0, "ready",
    )  # fmt: skip
    assert body["window"]["starts_at"].endswith("T00:00:00.000Z")
    assert body["window"]["starts_at"] < body["window"]["ends_at"] < body["expires_at"]
    assert response.headers["Standings-As-Of"] == body["as_of"]


def test_without_a_leaderboard_a_board_is_mains(world: World) -> None:
    world.define("main", windows=("all", "daily"))
    world.await_leaderboard("main")
    assert world.api.get("/v1/boards/all").json()["board"] == "main:all"
    assert world.api.get("/v1/boards/daily").json()["board"] == world.board("daily", "main").name
    body = {"match_id": "m", "player_id": "zed", "score": 1}
    assert world.api.post("/v1/scores", body, headers=AUTH).json()["leaderboard"] == "main"
