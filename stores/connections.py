"""Connections to Redis, and the translation of its errors, in one place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import RedisError
from redis.retry import Retry

from schemas.errors import StoreUnavailable
from schemas.settings import Settings

AnyRedis = redis.Redis | RedisCluster


def connect_redis(settings: Settings) -> AnyRedis:
    """A blocking client for scripts: raw replies, bounded calls, no retries of its own. Connects when first used."""
    options = _options(settings)
    if settings.redis_cluster:
        return RedisCluster.from_url(settings.redis_url.get_secret_value(), **options)
    return redis.Redis.from_url(settings.redis_url.get_secret_value(), retry=Retry(NoBackoff(), 0), **options)


def async_options(settings: Settings) -> dict[str, Any]:
    """What an asyncio connection is made with: bounded calls, no retries of its own."""
    return _options(settings) | {"retry": AsyncRetry(NoBackoff(), 0)}


@contextmanager
def redis_errors(what: str) -> Iterator[None]:
    """Turns whatever the driver raises into StoreUnavailable that says what was asked, keeping the cause."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreUnavailable(f"Redis did not {what}: {type(error).__name__}: {error}") from error


def _options(settings: Settings) -> dict[str, Any]:
    # RESP2, because RESP3 gives scores as doubles, and none may touch a score.
    return {
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": settings.redis_timeout_s,
        "socket_connect_timeout": settings.redis_timeout_s,
        "health_check_interval": 0,
    }
