"""The real Lua on a real server and the reference lane get the same calls, and hold the same after each."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
import redis
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from embedded.single import running_valkey
from schemas.settings import load_settings
from stores.connections import connect_redis
from tests.protocol.lane_machine import ScriptsAgainstReference


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with running_valkey(tmp_path_factory.mktemp("valkey")) as url:
        connected = connect_redis(load_settings({"STANDINGS_REDIS_URL": url}))
        assert isinstance(connected, redis.Redis)
        yield connected
        connected.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_lua_does_what_the_reference_does(client: redis.Redis) -> None:
    """STANDINGS_TEST_SEED replays a run, STANDINGS_TEST_EXAMPLES asks for more of them."""
    chosen = int(os.environ.get("STANDINGS_TEST_SEED") or random.randrange(2**32))
    print(f"STANDINGS_TEST_SEED={chosen}")  # noqa: T201 - shown where the test fails
    profile = settings(
        max_examples=int(os.environ.get("STANDINGS_TEST_EXAMPLES") or 200), stateful_step_count=40, deadline=None,
        suppress_health_check=list(HealthCheck), database=None,
    )  # fmt: skip

    class Machine(ScriptsAgainstReference):
        def __init__(self) -> None:
            super().__init__(client)

    run_state_machine_as_test(seed(chosen)(Machine), settings=profile)
