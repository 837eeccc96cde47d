"""Real stores, once for all tests of the API; a deployment of its own for each."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from embedded.environment import describe_emulator_access
from embedded.errors import StackError
from embedded.services import require_wheels
from embedded.single import running_broker, running_dynamodb, running_valkey
from tests.api.world import World
from tests.servers.missing import Missing, skip_or_fail


@pytest.fixture(scope="session")
def emulator_access() -> Iterator[None]:
    """What boto3 wants to see."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in describe_emulator_access().items():
            patch.setenv(name, value)
        yield


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory, emulator_access: None) -> Iterator[Mapping[str, str]]:
    """Settings that lead to a Valkey, a broker and a DynamoDB."""
    del emulator_access
    try:
        require_wheels()
    except StackError as error:
        skip_or_fail(Missing(str(error)))
    folder: Path = tmp_path_factory.mktemp("stores")
    with running_valkey(folder) as redis, running_broker(folder) as kafka, running_dynamodb(folder) as dynamodb:
        yield {"redis_url": redis, "kafka": kafka, "dynamodb_url": dynamodb}


@pytest.fixture
def kafka_away(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What kafka-python leaves behind of refused connections is gone after the test, with the log that refers to it."""
    with caplog.at_level(logging.CRITICAL, logger="kafka"):
        yield
    gc.collect()


@pytest.fixture(scope="module")
def shared(stores: Mapping[str, str]) -> Iterator[World]:
    """A deployment for the tests of a module that change nothing which another looks at."""
    world = World(stores)
    yield world
    world.close()


@pytest.fixture
def world(stores: Mapping[str, str]) -> Iterator[World]:
    """A deployment for one test."""
    world = World(stores)
    yield world
    world.close()
