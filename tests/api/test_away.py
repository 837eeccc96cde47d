"""Stores that are away from the start: the API starts all the same, and says what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from api.services import connect
from embedded.ports import find_free_port
from tests.api.world import KAFKA_AWAY, Api, World, problem, settings_of, wait_until

pytestmark = [pytest.mark.usefixtures("kafka_away"), KAFKA_AWAY]


@pytest.fixture
def away(emulator_access: None) -> Iterator[Api]:
    """An API whose stores are all away."""
    del emulator_access
    nowhere = f"127.0.0.1:{find_free_port()}"
    stores = {"redis_url": f"redis://{nowhere}/0", "kafka": nowhere, "dynamodb_url": f"http://{nowhere}"}
    api = Api(connect(settings_of(stores, "away")))
    yield api
    api.close()


def test_with_all_stores_away_the_process_lives_and_everything_else_says_so(away: Api) -> None:
    assert away.get("/livez").json() == {"status": "alive"}
    response = away.get("/readyz")
    assert problem(response) == (503, "store-unavailable")
    assert all(word in response.json()["detail"] for word in ("redis: ", "kafka: ", "dynamodb: "))
    for path in ("/v1/leaderboards", "/v1/boards/all/top", "/v1/boards/all/players/zed", "/v1/players/zed/boards"):
        response = away.get(path)
        assert problem(response) == (503, "store-unavailable")
        assert response.headers["Retry-After"] == "1"
        assert "127.0.0.1" not in response.text
    assert problem(away.submit()) == (503, "store-unavailable")


def test_what_a_process_does_not_serve_does_not_make_it_unready(stores: Mapping[str, str], shared: World) -> None:
    for serve, store in (("submit", "redis_url"), ("read", "kafka")):
        nowhere = f"127.0.0.1:{find_free_port()}"
        values = dict(stores) | {store: f"redis://{nowhere}/0" if store == "redis_url" else nowhere}
        api = Api(connect(settings_of(values, shared.settings.prefix, serve=serve)))
        try:
            wait_until(lambda: api.get("/readyz").status_code == 200)  # noqa: B023 - asked within this round
            response = api.get("/readyz")
            assert response.json()["stores"]["redis" if serve == "submit" else "kafka"] != "ok"
        finally:
            api.close()
