"""Connections to Redis, and the translation of its errors, in one place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError, RedisError
from redis.retry import Retry

from schemas.errors import StoreUnavailable
from schemas.settings import Settings
from stores.scripts import script

AnyRedis = redis.Redis | RedisCluster
_RAW = ("ZSCAN", "ZRANDMEMBER", "ZMSCORE", "ZSCORE", "ZRANGE")


def connect_redis(settings: Settings) -> AnyRedis:
    """A blocking client for scripts: raw replies, bounded calls, no retries of its own. Connects when first used."""
    options = _options(settings)
    client: AnyRedis
    if settings.redis_cluster:
        client = RedisCluster.from_url(settings.redis_url.get_secret_value(), **options)
    else:
        client = redis.Redis.from_url(settings.redis_url.get_secret_value(), retry=Retry(NoBackoff(), 0), **options)
    for name in _RAW:
        # redis-py would turn scores into floats on the way.
        client.set_response_callback(name, _as_it_came)
    return client


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


def run_script(client: Any, name: str, keys: Sequence[str], args: Sequence[str | int]) -> list[bytes]:
    """Run a script: EVALSHA, and EVAL where the server has not seen it, after a restart or a failover.

    Raises StoreUnavailable when nobody knows whether it was executed: each script may be run again.
    """
    which = script(name)
    with redis_errors(f"run {name}"):
        try:
            answer = client.execute_command("EVALSHA", which.sha, len(keys), *keys, *args)
        except NoScriptError:
            answer = client.execute_command("EVAL", which.text, len(keys), *keys, *args)
    if not isinstance(answer, list):
        raise StoreUnavailable(f"Redis gave an unexpected answer to {name}")
    return answer


def _as_it_came(reply: Any, **_options: Any) -> Any:
    return reply


def _options(settings: Settings) -> dict[str, Any]:
    # RESP2, because RESP3 gives scores as doubles, and none may touch a score.
    return {
        "protocol": 2,
        "decode_responses": False,
        "socket_timeout": settings.redis_timeout_s,
        "socket_connect_timeout": settings.redis_timeout_s,
        "health_check_interval": 0,
    }
