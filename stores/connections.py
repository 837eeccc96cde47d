"""Connections to Redis, and the translation of its errors, in one place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import redis
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.exceptions import NoScriptError, RedisClusterException, RedisError
from redis.retry import Retry

from schemas.errors import StoreUnavailable
from schemas.settings import Settings
from stores.scripts import script

C = TypeVar("C")
_RAW = ("ZSCAN", "ZRANDMEMBER", "ZMSCORE", "ZSCORE", "ZRANGE")


class LazyCluster:
    """A cluster's client that connects when first used: redis-py's own does at once, and fails while nobody answers."""

    def __init__(self, make: Callable[[], RedisCluster]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._client: RedisCluster | None = None

    def execute_command(self, *args: Any) -> Any:
        """See redis.Redis."""
        return self._connected().execute_command(*args)

    def pipeline(self, *, transaction: bool) -> Any:
        """See redis.Redis."""
        return self._connected().pipeline(transaction=transaction)

    def close(self) -> None:
        """End the connections."""
        if self._client is not None:
            self._client.close()

    def _connected(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._make()
            return self._client


AnyRedis = redis.Redis | LazyCluster
Arg = str | int | bytes


def connect_redis(settings: Settings) -> AnyRedis:
    """A blocking client for scripts: raw replies, bounded calls, no retries of its own. Connects when first used."""
    url, options = settings.redis_url.get_secret_value(), _options(settings)
    if settings.redis_cluster:
        # The one retry is for a node that has lost its place: by then redis-py knows who took it.
        return LazyCluster(lambda: _raw_cluster(RedisCluster.from_url(url, retry=Retry(NoBackoff(), 1), **options)))
    return _raw(redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **options))


def async_options(settings: Settings) -> dict[str, Any]:
    """What an asyncio connection is made with: bounded calls, no retries of its own."""
    return _options(settings) | {"retry": AsyncRetry(NoBackoff(), 0)}


@contextmanager
def redis_errors(what: str) -> Iterator[None]:
    """Turns whatever the driver raises into StoreUnavailable that says what was asked, keeping the cause."""
    try:
        yield
    except (RedisError, RedisClusterException, OSError) as error:
        raise StoreUnavailable(f"Redis did not {what}: {type(error).__name__}: {error}") from error


def run_script(client: Any, name: str, keys: Sequence[str], args: Sequence[Arg]) -> list[bytes]:
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


def _raw(client: C) -> C:
    """The client, giving scores as they come: redis-py would turn them into floats on the way."""
    callbacks: Any = client
    for name in _RAW:
        callbacks.set_response_callback(name, _as_it_came)
    return client


def _raw_cluster(client: RedisCluster) -> RedisCluster:
    """The same for the clients of all nodes, those that are still to come too."""
    manager: Any = client.nodes_manager
    create = manager.create_redis_node
    manager.create_redis_node = lambda *args, **options: _raw(create(*args, **options))
    known: Any = client
    for node in known.get_nodes():
        if node.redis_connection is not None:
            _raw(node.redis_connection)
    return client


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
