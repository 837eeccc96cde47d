"""Which Redis node holds a key: one server, or the nodes of a cluster."""

from __future__ import annotations

from typing import Any

import redis.asyncio
from redis.crc import key_slot

from schemas.errors import StoreUnavailable
from schemas.settings import Settings
from stores.connections import async_options, redis_errors


class SingleNode:
    """One server holds everything."""

    def __init__(self, settings: Settings) -> None:
        self._client = connect_node(settings, None)

    def client_of(self, key: str) -> Any:
        """The one client."""
        del key
        return self._client

    async def relocate(self) -> None:
        """Nothing moves."""

    async def close(self) -> None:
        """Ends the connections."""
        await self._client.aclose()


class ClusterNodes:
    """A plain client for each primary: redis-py's cluster pipeline resends what is redirected singly, elsewhere."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._seed = connect_node(settings, None)
        self._clients: dict[tuple[str, int], Any] = {}
        self._slots: list[tuple[int, int, tuple[str, int]]] = []

    def client_of(self, key: str) -> Any:
        """The client of the key's primary; the seed's before the first relocation: it answers MOVED."""
        slot = key_slot(key.encode("utf-8"))
        return next((self._clients[node] for first, last, node in self._slots if first <= slot <= last), self._seed)

    async def relocate(self) -> None:
        """Ask any node that answers who holds which slots."""
        failure = StoreUnavailable("no node of the cluster answers")
        for client in (*self._clients.values(), self._seed):
            try:
                with redis_errors("tell the cluster's slots"):
                    found = await client.execute_command("CLUSTER", "SLOTS")
            except StoreUnavailable as error:
                failure = error
                continue
            self._slots = [(row[0], row[1], (row[2][0].decode(), row[2][1])) for row in found]
            nodes = {node for _, _, node in self._slots}
            for node in nodes - self._clients.keys():
                self._clients[node] = connect_node(self._settings, node)
            for node in self._clients.keys() - nodes:
                await self._clients.pop(node).aclose()
            return
        raise failure

    async def close(self) -> None:
        """Ends all connections."""
        for client in (*self._clients.values(), self._seed):
            await client.aclose()


def connect_node(settings: Settings, node: tuple[str, int] | None) -> Any:
    """A client of one node (None: of the address in the settings) whose replies are raw. Connects when first used."""
    options = async_options(settings)
    if node is not None:
        options["host"], options["port"] = node
    pool = redis.asyncio.ConnectionPool.from_url(settings.redis_url.get_secret_value(), **options)
    if node is not None:
        pool.connection_kwargs.update(host=node[0], port=node[1])
    client: Any = redis.asyncio.Redis.from_pool(pool)
    # redis-py would turn scores into floats on the way.
    client.response_callbacks.clear()
    return client
