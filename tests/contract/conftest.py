"""Both sides of each contract: the fake under the id `fake`, the real server under `real` (and `kafka`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import fakeredis
import pytest
import redis

from embedded.environment import clean_environment, describe_emulator_access
from embedded.single import running_broker, running_dynamodb, running_valkey
from schemas.settings import load_settings
from stores.connections import connect_redis
from stores.dynamodb import Dynamo, connect_dynamodb
from stores.nodes import SingleNode
from tests.contract.dynamo_side import DynamoSide
from tests.contract.log_side import PARTITIONS, KafkaSide, LogSide, MemorySide
from tests.contract.redis_side import FakeNode, RedisSide
from tests.fakes.dynamodb import FakeDynamoDB
from tests.servers.kafka import running_kafka
from tests.servers.missing import Missing, skip_or_fail

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


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a DynamoDB that all tests of this session share, and the access that boto3 wants to see."""
    with pytest.MonkeyPatch.context() as patch:
        for name in set(os.environ) - set(clean_environment(os.environ)):
            patch.delenv(name)
        for name, value in describe_emulator_access().items():
            patch.setenv(name, value)
        with running_dynamodb(tmp_path_factory.mktemp("dynamodb")) as url:
            yield url


@pytest.fixture
def fake_dynamodb() -> FakeDynamoDB:
    """The one behind the side `fake`: small pages, and faults to be ordered."""
    return FakeDynamoDB(page_size=7)


@pytest.fixture
def fake_dynamo(fake_dynamodb: FakeDynamoDB) -> Iterator[DynamoSide]:
    dynamo = Dynamo(fake_dynamodb.as_client(), sleep=lambda _: None)
    side = DynamoSide(fake_dynamodb.as_client(), dynamo)
    side.catalogue.create_tables()
    yield side
    dynamo.close()


@pytest.fixture
def real_dynamo(emulator: str) -> Iterator[DynamoSide]:
    client = connect_dynamodb(load_settings({"STANDINGS_DYNAMODB_URL": emulator}))
    dynamo = Dynamo(client)
    side = DynamoSide(client, dynamo)
    side.catalogue.create_tables()
    yield side
    dynamo.close()
    client.close()


@pytest.fixture(params=BOTH)
def dynamo_side(request: pytest.FixtureRequest) -> DynamoSide:
    side: DynamoSide = request.getfixturevalue(f"{request.param}_dynamo")
    return side


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an embedded broker that all tests of this session share."""
    with running_broker(tmp_path_factory.mktemp("broker")) as address:
        yield address


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an Apache Kafka that all tests of this session share."""
    settings = {"group.min.session.timeout.ms": "500"}
    try:
        with running_kafka(tmp_path_factory.mktemp("kafka"), settings=settings) as running:
            yield running.bootstrap
    except Missing as missing:
        skip_or_fail(missing)


@pytest.fixture(params=["fake", "real", pytest.param("kafka", marks=pytest.mark.kafka)])
def log_side(request: pytest.FixtureRequest) -> Iterator[LogSide]:
    if request.param == "fake":
        side: MemorySide | KafkaSide = MemorySide()
    elif request.param == "real":
        # The embedded broker waits half of it at each join.
        side = KafkaSide(request.getfixturevalue("broker"), session_timeout_ms=1_000)
    else:
        side = KafkaSide(request.getfixturevalue("kafka"), session_timeout_ms=3_000)
    side.admin().create_topics(PARTITIONS, 1)
    yield side
    if isinstance(side, KafkaSide):
        side.close()
