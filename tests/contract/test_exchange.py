"""Reads of one turn travel together, and neither a cancelled caller nor a dying server mixes up their replies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis

from schemas.errors import StoreUnavailable
from schemas.settings import load_settings
from stores.boards import BoardReader
from stores.connections import connect_redis
from stores.exchange import Nodes
from stores.lanes import Projected, Range
from stores.nodes import SingleNode
from tests.contract.redis_side import ALL, DAILY, IDS, LANE, WEEKLY, RedisSide, entries, reading

pytestmark = pytest.mark.contract

PLAYERS = [f"player {n}" for n in range(50)]
TIMEOUT_S = 0.3


class CountingNodes:
    """Counts the groups of commands that go out."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.groups = 0

    def client_of(self, key: str) -> Any:
        self.groups += 1
        return self._nodes.client_of(key)

    async def relocate(self) -> None:
        await self._nodes.relocate()

    async def close(self) -> None:
        await self._nodes.close()


@pytest.fixture
def full_side(redis_side: RedisSide) -> RedisSide:
    redis_side.make_ready()
    redis_side.project(*[(board, player, n) for n, player in enumerate(PLAYERS) for board in (ALL, DAILY, WEEKLY)])
    return redis_side


async def know_scripts(reader: BoardReader) -> None:
    """A server that is new to the scripts is asked twice, the first time."""
    await reader.top(ALL, 1, "unique", 0)


def test_all_that_one_turn_asks_is_one_round_trip(full_side: RedisSide) -> None:
    nodes = CountingNodes(full_side.make_nodes())

    async def read(reader: BoardReader) -> None:
        await know_scripts(reader)
        nodes.groups = 0
        await asyncio.gather(
            *[reader.place(ALL, player, "unique") for player in PLAYERS],
            *[reader.around(DAILY, player, 2, "shared") for player in PLAYERS],
            reader.top(WEEKLY, 10, "unique", 0),
            reader.places(ALL, PLAYERS, "shared"),
            reader.size(ALL),
            reader.report(LANE),
        )
        assert nodes.groups == 1
        await reader.size(ALL)
        assert nodes.groups == 2

    reading(full_side, read, nodes=nodes)


def test_equal_reads_of_one_turn_share_one_page_and_later_ones_do_not(full_side: RedisSide) -> None:
    async def read(reader: BoardReader) -> None:
        one, two, other = await asyncio.gather(
            reader.top(ALL, 3, "unique", 0), reader.top(ALL, 3, "unique", 0), reader.top(ALL, 3, "shared", 0)
        )
        assert one is two
        assert other is not one
        assert await reader.top(ALL, 3, "unique", 0) is not one

    reading(full_side, read)


def test_more_than_one_turn_can_hold_goes_in_several_groups_and_every_reply_is_right(full_side: RedisSide) -> None:
    nodes = CountingNodes(full_side.make_nodes())

    async def read(reader: BoardReader) -> None:
        await know_scripts(reader)
        nodes.groups = 0
        asked = [(player, reach) for player in PLAYERS for reach in range(10)]
        pages = await asyncio.gather(*[reader.around(ALL, player, reach, "unique") for player, reach in asked])
        for (player, reach), page in zip(asked, pages, strict=True):
            rank = len(PLAYERS) - PLAYERS.index(player)
            assert page.first == max(0, rank - 1 - reach)
            assert (rank, player) in [(one.rank, one.player_id) for one in page.entries]
        assert nodes.groups == 3

    reading(full_side, read, nodes=nodes)


@pytest.mark.parametrize("turns", range(12))
def test_a_caller_that_goes_away_takes_nobodys_reply_with_it(full_side: RedisSide, turns: int) -> None:
    async def read(reader: BoardReader) -> None:
        tasks = [asyncio.ensure_future(reader.place(ALL, player, "unique")) for player in PLAYERS]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        # Others come while the first are on their way.
        more = [asyncio.ensure_future(reader.place(DAILY, player, "unique")) for player in PLAYERS]
        for n, task in enumerate(tasks):
            if n % 2 == 0 and task.cancelled():
                continue
            if n % 2 == 1:
                (entry,) = (await task).entries
                assert entry is not None
                assert (entry.player_id, entry.packed) == (PLAYERS[n], n)
        for n, task in enumerate(more):
            (entry,) = (await task).entries
            assert entry is not None
            assert (entry.player_id, entry.packed) == (PLAYERS[n], n)

    reading(full_side, read)


@pytest.mark.parametrize("turns", [0, 1, 3, 6])
def test_replies_stay_in_order_after_all_callers_of_a_turn_went_away(full_side: RedisSide, turns: int) -> None:
    async def read(reader: BoardReader) -> None:
        for n, player in enumerate(PLAYERS[:10]):
            gone = asyncio.ensure_future(reader.top(WEEKLY, 5, "unique", 0))
            for _ in range(turns):
                await asyncio.sleep(0)
            gone.cancel()
            (entry,) = (await reader.place(ALL, player, "unique")).entries
            assert entry is not None
            assert (entry.player_id, entry.packed) == (player, n)

    reading(full_side, read)


def test_a_read_that_redis_refuses_fails_alone(full_side: RedisSide) -> None:
    full_side.ask("SET", full_side.names.lane(LANE).board(DAILY.name), "no board")

    async def read(reader: BoardReader) -> None:
        bad, good = await asyncio.gather(
            reader.top(DAILY, 3, "unique", 0), reader.top(ALL, 3, "unique", 0), return_exceptions=True
        )
        assert isinstance(bad, StoreUnavailable)
        assert not isinstance(good, BaseException)
        assert good.size == len(PLAYERS)

    reading(full_side, read)


def test_scripts_that_the_server_forgot_are_given_again_and_the_turn_asked_once_more(full_side: RedisSide) -> None:
    async def read(reader: BoardReader) -> None:
        for _ in range(2):
            full_side.ask("SCRIPT", "FLUSH")
            top, around, place = await asyncio.gather(
                reader.top(ALL, 1, "shared", 0),
                reader.around(ALL, PLAYERS[7], 0, "unique"),
                reader.place(ALL, PLAYERS[9], "unique"),
            )
            assert [one.player_id for one in top.entries] == [PLAYERS[-1]]
            assert [one.player_id for one in around.entries] == [PLAYERS[7]]
            assert [one and one.player_id for one in place.entries] == [PLAYERS[9]]

    reading(full_side, read)


# ---------------------------------------------------------------- a server of its own


class OwnServer:
    """A side whose server may be stopped, and connections to it that give up soon."""

    def __init__(self, url: str) -> None:
        settings = load_settings({"STANDINGS_REDIS_URL": url, "STANDINGS_REDIS_TIMEOUT_S": str(TIMEOUT_S)})
        client = connect_redis(settings)
        assert isinstance(client, redis.Redis)
        self.side = RedisSide(client, lambda: SingleNode(settings))
        self.pid = int(client.info("server")["process_id"])

    def signal(self, which: signal.Signals) -> None:
        os.kill(self.pid, which)


@pytest.fixture
def own_server(own_valkey: str) -> Iterator[OwnServer]:
    server = OwnServer(own_valkey)
    server.side.make_ready()
    server.side.project((ALL, "ann", 1))
    yield server
    server.signal(signal.SIGCONT)
    server.side.client.close()


def takes_at_most(limit_s: float, call: Callable[[], Any]) -> None:
    began_at = time.monotonic()
    with pytest.raises(StoreUnavailable):
        call()
    assert time.monotonic() - began_at < limit_s


def test_a_stopped_server_is_unavailable_in_bounded_time_and_comes_back(own_server: OwnServer) -> None:
    async def read(reader: BoardReader) -> None:
        assert (await reader.size(ALL)).size == 1
        own_server.signal(signal.SIGSTOP)
        for _ in range(2):
            began_at = time.monotonic()
            results = await asyncio.gather(
                *[reader.place(ALL, player, "unique") for player in ("ann", "bob")], return_exceptions=True
            )
            assert [type(one) for one in results] == [StoreUnavailable] * 2
            assert time.monotonic() - began_at < 5 * TIMEOUT_S
        own_server.signal(signal.SIGCONT)
        for n in range(20):
            place, top = await asyncio.gather(
                reader.place(ALL, f"nobody {n}", "unique"), reader.top(ALL, 5, "unique", 0)
            )
            assert place.entries == [None]
            assert [one.player_id for one in top.entries] == ["ann"]

    reading(own_server.side, read)


def test_a_projection_into_a_stopped_server_is_unknown_in_bounded_time_and_can_be_repeated(
    own_server: OwnServer,
) -> None:
    lanes = own_server.side.lanes
    images = entries((ALL, "bob", 2))
    own_server.signal(signal.SIGSTOP)
    takes_at_most(5 * TIMEOUT_S, lambda: lanes.project(LANE, IDS, [Range(0, 0, 4)], images))
    takes_at_most(5 * TIMEOUT_S, lambda: lanes.prefilter(LANE, IDS, {ALL.name: ["ann"]}))
    takes_at_most(5 * TIMEOUT_S, lambda: lanes.read_meta(LANE))
    own_server.signal(signal.SIGCONT)
    assert lanes.project(LANE, IDS, [Range(0, 0, 4)], images) is Projected.APPLIED
    assert lanes.read_meta(LANE).applied[0] == 4
    assert own_server.side.scores(ALL) == {"ann": 1, "bob": 2}


def test_a_connection_that_the_server_closed_is_replaced_without_a_failed_read(own_server: OwnServer) -> None:
    async def read(reader: BoardReader) -> None:
        for _ in range(3):
            assert (await reader.size(ALL)).size == 1
            own_server.side.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    reading(own_server.side, read)


def test_a_server_that_nobody_runs_is_unavailable_at_once(own_server: OwnServer) -> None:
    own_server.signal(signal.SIGKILL)
    takes_at_most(5 * TIMEOUT_S, lambda: own_server.side.lanes.read_meta(LANE))
    takes_at_most(5 * TIMEOUT_S, lambda: reading(own_server.side, lambda reader: reader.size(ALL)))
