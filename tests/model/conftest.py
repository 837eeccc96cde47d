"""One Valkey for all examples of all machines."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import redis
import structlog

from tests.fakes.deployment import valkey_client


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with valkey_client(tmp_path_factory.mktemp("valkey")) as client:
        yield client


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of outages on purpose need not be logged."""
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)
