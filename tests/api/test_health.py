"""Health and metrics."""

from __future__ import annotations

from api.metrics import Metrics
from tests.api.world import World, problem


def test_readiness_lists_each_store_and_each_lane(world: World) -> None:
    body = world.api.get("/readyz").json()
    assert body["status"] == "ready"
    assert body["stores"] == {"redis": "ok", "kafka": "ok", "dynamodb": "ok"}
    assert [(one["lane"], one["state"]) for one in body["lanes"]] == [(0, "ready"), (1, "ready")]
    assert all(one["as_of"].endswith("Z") for one in body["lanes"])


def test_a_lane_that_is_not_ready_is_told(world: World) -> None:
    world.begin_rebuild(1)
    response = world.api.get("/readyz")
    assert problem(response) == (503, "board-not-ready")
    assert response.json()["detail"] == "lane 1 is rebuilding"
    assert [one["state"] for one in response.json()["lanes"]] == ["ready", "rebuilding"]


def test_a_redis_that_may_evict_is_not_ready(world: World) -> None:
    world.redis.execute_command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        response = world.api.get("/readyz")
    finally:
        world.redis.execute_command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert problem(response) == (503, "store-unavailable")
    assert "noeviction" in response.json()["detail"]


def test_metrics_count_requests_and_events(world: World) -> None:
    world.api.submit()
    world.api.get("/v1/boards/ranked:all/players/ghost")
    response = world.api.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain")
    lines = response.text.splitlines()
    assert 'standings_api_events_total{outcome="accepted"} 1.0' in lines
    assert "standings_api_events_in_flight 0.0" in lines
    route = "/v1/boards/{board}/players/{player_id}"
    assert f'standings_api_requests_total{{method="GET",route="{route}",status="404"}} 1.0' in lines
    # Another app in the same process counts for itself.
    assert 'outcome="accepted"} 0.0' in Metrics().render().decode()
