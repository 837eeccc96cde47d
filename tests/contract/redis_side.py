"""A server of boards as the contract tests see it: the fake and the real one behind the same few handles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import uuid4

import fakeredis
import redis

from schemas.keys import Names
from schemas.leaderboards import Board, Definition, Leaderboard, define
from schemas.rows import Topology
from stores.boards import BoardReader
from stores.clock import now_ms
from stores.exchange import Exchange, Nodes
from stores.lanes import Entries, LaneIds, Lanes, Range

TOPOLOGY = Topology(lanes=1, mapping=1, truth_id="the-truth")
T = TypeVar("T")
IDS = LaneIds("the-log", TOPOLOGY.truth_id, TOPOLOGY.tag)
LANE = 0
MOST = 2**53 - 1


def leaderboard(**more: Any) -> Leaderboard:
    """A leaderboard whose packed values are a score alone where bounds are 0..2^53-1, else score and time."""
    return define("main", Definition.model_validate({"order": "higher", "min": 0, "max": MOST} | more), now_ms())


ALL = leaderboard(windows=["all"]).boards_at(now_ms())[0]
DAILY = leaderboard(windows=["daily"]).boards_at(now_ms())[0]
WEEKLY = leaderboard(windows=["weekly"]).boards_at(now_ms())[0]


class FakeNode:
    """Finds the one fake server, and counts how often it is asked."""

    def __init__(self, server: fakeredis.FakeServer) -> None:
        self._client: Any = fakeredis.FakeAsyncRedis(server=server, protocol=2)
        self._client.response_callbacks.clear()

    def client_of(self, key: str) -> Any:  # noqa: ARG002 - there is but one
        return self._client

    async def relocate(self) -> None:
        """Nothing moves."""

    async def close(self) -> None:
        await self._client.aclose()


@dataclass
class RedisSide:
    """A server, with names of this test's own."""

    client: redis.Redis
    make_nodes: Callable[[], Nodes]
    names: Names = field(default_factory=lambda: Names(f"t{uuid4().hex[:12]}"))

    @property
    def lanes(self) -> Lanes:
        return Lanes(self.client, self.names)

    def make_ready(self, applied: dict[int, tuple[int, int | None]] | None = None, epoch: str = "first") -> None:
        """A rebuild of nothing: the lane is READY at these offsets and times, by default of two partitions at 0."""
        offsets = applied or {0: (0, None), 1: (0, None)}
        lanes = self.lanes
        assert lanes.begin(LANE, epoch, IDS, len(offsets), lanes.read_meta(LANE), [])
        assert lanes.finish(LANE, epoch, 0, offsets)

    def project(self, *images: tuple[Board, str, int]) -> None:
        """Bring images into the READY lane, without moving its offsets."""
        assert self.lanes.project(LANE, IDS, [Range(0, 0, 0)], entries(*images)) == "applied"

    def dump(self) -> dict[bytes, Any]:
        """All that the lane holds, so that a test can tell that nothing was written."""
        found: dict[bytes, Any] = {}
        for key in self.ask("KEYS", f"{self.names.prefix}:*"):
            kind = self.ask("TYPE", key)
            content: Any
            if kind == b"hash":
                content = sorted(dict(self.ask("HGETALL", key)).items())
            elif kind == b"set":
                content = sorted(self.ask("SMEMBERS", key))
            else:
                content = self.ask("ZRANGE", key, 0, -1, "WITHSCORES")
            found[key] = (content, self.ask("EXPIRETIME", key))
        return found

    def scores(self, board: Board) -> dict[str, int]:
        """The packed values of a board, digit for digit."""
        flat = self.ask("ZRANGE", self.names.lane(LANE).board(board.name), 0, -1, "WITHSCORES")
        return {player.decode(): int(packed) for player, packed in zip(flat[::2], flat[1::2], strict=True)}

    def ask(self, *command: Any) -> Any:
        """One command, its reply raw."""
        client: Any = self.client
        return client.execute_command(*command)


def entries(*images: tuple[Board, str, int]) -> Entries:
    """Images by board and player."""
    found = Entries()
    for image in images:
        found.add(*image)
    return found


def reading(
    side: RedisSide,
    read: Callable[[BoardReader], Awaitable[T]],
    topology: Topology | None = TOPOLOGY,
    nodes: Nodes | None = None,
) -> T:
    """What `read` returns, in an event loop of its own."""

    async def run() -> T:
        exchange = Exchange(nodes or side.make_nodes(), side.names)
        try:
            return await read(BoardReader(exchange, side.names, lambda: topology))
        finally:
            await exchange.close()

    return asyncio.run(run())
