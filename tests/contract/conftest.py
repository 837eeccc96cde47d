"""Both sides of each contract: the fake under the id `fake`, the real server under `real` (and `kafka`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import fakeredis
import pytest
import redis

from embedded.single import running_valkey
from schemas.settings import load_settings
from stores.connections import connect_redis
from stores.nodes import SingleNode
from tests.contract.redis_side import FakeNode, RedisSide

BOTH = ["fake", "real"]


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that all tests of this session share."""
    with running_valkey(tmp_path_factory.mktemp("valkey")) as url:
        yield url


@pytest.fixture
def real_redis(valkey: str) -> Iterator[RedisSide]:
    settings = load_settings({"STANDINGS_REDIS_URL": valkey})
    client = connect_redis(settings)
    assert isinstance(client, redis.Redis)
    yield RedisSide(client, lambda: SingleNode(settings))
    client.close()


@pytest.fixture(params=BOTH)
def redis_side(request: pytest.FixtureRequest) -> Iterator[RedisSide]:
    if request.param == "real":
        yield request.getfixturevalue("real_redis")
    else:
        server = fakeredis.FakeServer(server_type="valkey", version=(8, 0))
        fake = fakeredis.FakeRedis(server=server, protocol=2)
        yield RedisSide(fake, lambda: FakeNode(server))
        fake.close()


@pytest.fixture
def own_valkey(tmp_path: Path) -> Iterator[str]:
    """The URL of a server that is this test's alone."""
    with running_valkey(tmp_path) as url:
        yield url
