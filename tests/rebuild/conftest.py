"""One Valkey for all tests of this folder, and a deployment of its own for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from tests.fakes.deployment import Deployment, valkey_client


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with valkey_client(tmp_path_factory.mktemp("valkey")) as client:
        yield client


@pytest.fixture
def deploy(valkey: redis.Redis) -> Iterator[Callable[..., Deployment]]:
    """Makes deployments whose lanes nobody has opened."""
    made: list[Deployment] = []

    def make(*args: Any, **options: Any) -> Deployment:
        made.append(Deployment(valkey, *args, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def deployment(deploy: Callable[..., Deployment]) -> Deployment:
    return deploy()
