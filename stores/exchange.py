"""The one seam between reads and Redis: what one turn of the loop asks of a lane goes out together, of one moment.

All commands of a turn on one lane travel as one transaction (MULTI .. EXEC) behind the lane's meta:
one round trip, and no write comes between them, so that rank, size and readiness belong together
(https://redis.io/docs/latest/develop/using-commands/transactions/).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from redis.exceptions import AskError, ClusterDownError, NoScriptError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from schemas.errors import StoreUnavailable
from schemas.keys import Names
from stores.connections import redis_errors
from stores.scripts import all_scripts

Command = tuple[str | bytes | int, ...]
META_FIELDS = ("state", "epoch", "truth_id", "topology", "boards", "torn", "as_of", "progress")
_MOST_COMMANDS = 200
_OF_META = 4


class Nodes(Protocol):
    """Finds the client of the node that holds a key: one server, or one of a cluster."""

    def client_of(self, key: str) -> Any:
        """An asyncio client of redis-py whose replies are raw."""

    async def relocate(self) -> None:
        """Learn anew which node holds what, after one said MOVED or a connection was lost."""

    async def close(self) -> None:
        """End all connections."""


@dataclass(slots=True)
class Turn:
    """What is asked of a lane in one turn. Equal commands are asked once; `memo` keeps what was made of a reply."""

    commands: list[Command] = field(default_factory=list)
    index: dict[Command, int] = field(default_factory=dict)
    memo: dict[Any, Any] = field(default_factory=dict)
    task: asyncio.Task[Replies] | None = None


@dataclass(frozen=True, slots=True)
class Replies:
    """A lane's meta (META_FIELDS; has it applied; how many boards it names; how many are torn) and the replies."""

    meta: Sequence[Any]
    replies: Sequence[Any]


class Exchange:
    """Collects what a turn asks and sends it. Raises StoreUnavailable, within the client's time-outs."""

    def __init__(self, nodes: Nodes, names: Names) -> None:
        self._nodes = nodes
        self._names = names
        self._turns: dict[int, Turn] = {}

    async def ask(
        self, lane: int, what: str, commands: Sequence[Command], make: Callable[[Sequence[Any], list[Any]], Any]
    ) -> Any:
        """What `make` makes of the lane's meta and of the replies to these commands.

        Equal commands are asked once in a turn, and for one `what` made once: the result is shared.
        A caller that is cancelled does not cancel the others' exchange.
        """
        turn = self._turns.get(lane)
        if turn is None or len(turn.commands) + len(commands) > _MOST_COMMANDS:
            turn = self._turns[lane] = Turn()
            turn.task = asyncio.get_running_loop().create_task(self._send(lane, turn))
        places = []
        for command in commands:
            place = turn.index.get(command)
            if place is None:
                place = turn.index[command] = len(turn.commands)
                turn.commands.append(command)
            places.append(place)
        if turn.task is None:
            raise StoreUnavailable("this turn was never sent")
        replies = await asyncio.shield(turn.task)
        key = (what, *places)
        if key not in turn.memo:
            found = [replies.replies[place] for place in places]
            failed = next((one for one in found if isinstance(one, Exception)), None)
            if failed is not None:
                raise StoreUnavailable(f"Redis refused a read: {failed}") from failed
            turn.memo[key] = make(replies.meta, found)
        return turn.memo[key]

    async def close(self) -> None:
        """End all connections."""
        await self._nodes.close()

    async def _send(self, lane: int, turn: Turn) -> Replies:
        # The task starts in the next turn of the loop: until then others may add to it.
        if self._turns.get(lane) is turn:
            del self._turns[lane]
        keys = self._names.lane(lane)
        commands: list[Command] = [
            ("HMGET", keys.meta, *META_FIELDS), ("EXISTS", keys.applied), ("SCARD", keys.boards), ("HLEN", keys.torn),
            *turn.commands,
        ]  # fmt: skip
        with redis_errors("answer a read"):
            try:
                found = await self._transact(keys.meta, commands)
            except RedisError as error:
                if not _has_moved(error):
                    raise
                await self._nodes.relocate()
                if isinstance(error, RedisTimeoutError):
                    raise  # the time that a read may take is over; the next one finds whoever took that node's place
                found = await self._transact(keys.meta, commands)
            if any(isinstance(one, NoScriptError) for one in found):
                # A restarted or promoted server has no scripts: give it ours, and ask the whole group again.
                client = self._nodes.client_of(keys.meta)
                for one in all_scripts():
                    await client.execute_command("SCRIPT", "LOAD", one.text)
                found = await self._transact(keys.meta, commands)
        for reply in found[:_OF_META]:
            if isinstance(reply, Exception):
                raise StoreUnavailable(f"Redis refused to tell a lane's state: {reply}") from reply
        return Replies((*found[0], *found[1:_OF_META]), found[_OF_META:])

    async def _transact(self, key: str, commands: Sequence[Command]) -> list[Any]:
        async with self._nodes.client_of(key).pipeline(transaction=True) as pipeline:
            for command in commands:
                pipeline.execute_command(*command)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
        return replies


def _has_moved(error: RedisError) -> bool:
    """True where the lane may be somewhere else by now, or the connection was stale."""
    lost = (RedisConnectionError, RedisTimeoutError, AskError, ClusterDownError)  # a MovedError is an AskError
    return isinstance(error, lost) or any(word in str(error) for word in ("MOVED", "ASK", "CLUSTERDOWN"))
