"""Which Redis node holds a key: one server, or the nodes of a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
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
        self._relocating: asyncio.Task[None] | None = None

    def client_of(self, key: str) -> Any:
        """The client of the key's primary; the seed's before the first relocation: it answers MOVED."""
        slot = key_slot(key.encode("utf-8"))
        return next((self._clients[node] for first, last, node in self._slots if first <= slot <= last), self._seed)

    async def relocate(self) -> None:
        """Ask all nodes at once who holds which slots, and believe the first that answers. All who ask share it."""
        if self._relocating is None:
            self._relocating = asyncio.get_running_loop().create_task(self._relocate())
        await asyncio.shield(self._relocating)

    async def _relocate(self) -> None:
        asked = [asyncio.ensure_future(_ask_slots(client)) for client in (*self._clients.values(), self._seed)]
        try:
            await self._note(await _first_answer(asked))
        finally:
            self._relocating = None
            for one in asked:
                one.cancel()

    async def _note(self, slots: Sequence[Any]) -> None:
        self._slots = [(row[0], row[1], (row[2][0].decode(), row[2][1])) for row in slots]
        nodes = {node for _, _, node in self._slots}
        for node in nodes - self._clients.keys():
            self._clients[node] = connect_node(self._settings, node)
        for node in self._clients.keys() - nodes:
            await self._clients.pop(node).aclose()

    async def close(self) -> None:
        """Ends all connections."""
        for client in (*self._clients.values(), self._seed):
            await client.aclose()


async def _ask_slots(client: Any) -> Sequence[Any]:
    with redis_errors("tell the cluster's slots"):
        found: Sequence[Any] = await client.execute_command("CLUSTER", "SLOTS")
    if not found:
        raise StoreUnavailable("a node of the cluster knows of no slots")
    return found


async def _first_answer(asked: Sequence[asyncio.Future[Sequence[Any]]]) -> Sequence[Any]:
    failure = StoreUnavailable("no node of the cluster answers")
    for one in asyncio.as_completed(asked):
        try:
            return await one
        except StoreUnavailable as error:
            failure = error
    raise failure


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
