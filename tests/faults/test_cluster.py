"""Boards in a Redis Cluster: failovers under way, and one that loses what was acknowledged."""

from __future__ import annotations

import json
import random
import signal
import time
from collections.abc import Iterator

import httpx
import pytest

from embedded.ports import find_free_port
from schemas.errors import StoreUnavailable
from schemas.keys import Names
from schemas.settings import load_settings
from stores.connections import connect_redis
from stores.lanes import Lanes
from tests.faults.conductor import Conductor
from tests.faults.load import Load, now_ms
from tests.faults.reference import Rules, read_time
from tests.faults.stack import Stack
from tests.faults.verdict import is_healed, judge
from tests.servers.valkey import running_cluster, wait_until

RULES = Rules("main", "higher", 0, 1_000_000)
LOSSY = Rules("lossy", "higher", 0, 1_000_000)
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment over a cluster; its four lanes are on all three primaries."""
    folder = tmp_path_factory.mktemp("cluster")
    with running_cluster(folder / "nodes") as cluster:
        stack = Stack(folder, 1, cluster=cluster, lanes=4)
        try:
            stack.define(RULES)
            stack.define(LOSSY)
            time.sleep(3)
            yield stack
        finally:
            stack.close()


def lane_of(stack: Stack, board: str) -> int:
    with stack.redis_client() as client:
        return next(
            lane for lane in range(stack.lane_count) if client.execute_command("EXISTS", lane_key(stack, lane, board))
        )


def lane_key(stack: Stack, lane: int, name: str = "meta") -> str:
    return f"{stack.settings.prefix}:{{{lane}}}:{name}"


def test_reads_and_projections_go_on_after_failovers_of_a_cluster(stack: Stack) -> None:
    assert stack.cluster is not None
    cluster = stack.cluster
    load = Load(stack.api_url, stack.key, RULES, random.Random(1))
    conductor = Conductor(stack, load)
    stack.loop.run(load.lay_floor())
    stack.loop.run(load.begin(2, 3))
    try:
        conductor.wait(lambda: len(load.reads) > 100, 20)
        killed = cluster.primary(lane_key(stack, 0))
        killed.process.kill()
        assert conductor.wait(lambda: cluster.primary(lane_key(stack, 0)) is not killed, 20)
        conductor.wait(lambda: False, 2)
        cluster.revive()

        paused = cluster.primary(lane_key(stack, 1))
        paused.signal(signal.SIGSTOP)
        conductor.wait(lambda: False, 4)  # past the cluster's patience: its replica leads
        paused.signal(signal.SIGCONT)
        cluster.wait_until_whole()
        assert cluster.primary(lane_key(stack, 1)) is not paused

        assert conductor.wait(stack.loop.begin(load.finish_submitting()).done, 30)
        assert conductor.wait(lambda: is_healed(stack), 30), stack.metas()
        answered_before = sum(1 for one in load.reads if one.status == 200)
        conductor.wait(lambda: False, 1)
        assert sum(1 for one in load.reads if one.status == 200) > answered_before + 5
    finally:
        stack.loop.run(load.stop())
    verdict = judge(stack, load, 0)
    assert verdict.faults == []
    assert verdict.accepted > 50


def test_a_failover_that_loses_projections_is_noticed_and_replayed_without_a_rebuild(stack: Stack) -> None:
    assert stack.cluster is not None
    wait_until(lambda: is_healed(stack), "the lanes are open")
    epochs = [meta.epoch for meta in stack.metas()]
    with httpx.Client(base_url=stack.api_url, headers={"authorization": f"Bearer {stack.key}"}) as client:
        submit(client, 0, 100)
        wait_until(lambda: size(client) == 100, "100 are on the board")
        kept_at = now_ms()
        with stack.cluster.losing(lane_key(stack, lane_of(stack, "lossy:all"))):
            submit(client, 100, 50)
            lost_at = now_ms()
            wait_until(lambda: size(client) == 150, "150 are on the board")
            wait_until(lambda: as_of(client) > lost_at, "150 are known to be all")
            for name in stack.updaters:  # so that the loss can be seen before it is made good
                stack.pause(stack.roles[name])
        wait_until(lambda: size(client) > 0, "the board is served again")
        assert size(client) == 100
        assert as_of(client) <= lost_at
        for name in stack.updaters:
            stack.resume(stack.roles[name])
        wait_until(lambda: size(client) == 150, "all 150 are on the board again")
        wait_until(lambda: as_of(client) > lost_at, "150 are known to be all")
    assert kept_at < lost_at
    assert [meta.epoch for meta in stack.metas()] == epochs
    logs = "".join(stack.roles[name].log.read_text() for name in stack.updaters)
    assert "a lane is behind: the log is replayed" in logs


def test_a_client_can_be_made_while_no_node_of_the_cluster_answers() -> None:
    address = f"redis://127.0.0.1:{find_free_port()}/0"
    client = connect_redis(load_settings({"STANDINGS_REDIS_URL": address, "STANDINGS_REDIS_CLUSTER": "true"}))
    with pytest.raises(StoreUnavailable):
        Lanes(client, Names("lb")).read_meta(0)
    client.close()


def submit(client: httpx.Client, first: int, count: int) -> None:
    """Report so many matches of one player each; returns once all are acknowledged."""
    lines = [
        {"match_id": f"m{one}", "leaderboard": "lossy", "results": [{"player_id": f"player-{one}", "score": one}]}
        for one in range(first, first + count)
    ]
    body = "\n".join(json.dumps(one) for one in lines)
    reply = client.post("/v1/matches:batch", content=body, headers={"content-type": "application/x-ndjson"})
    assert [json.loads(line)["status"] for line in reply.content.splitlines()] == [202] * count


def size(client: httpx.Client) -> int:
    """How many are on the board; 0 while it is not served."""
    reply = client.get("/v1/boards/lossy:all/top")
    return int(reply.json()["size"]) if reply.status_code == 200 else 0


def as_of(client: httpx.Client) -> int:
    """Up to when the board is complete (epoch ms); 0 while nobody knows."""
    reply = client.get("/v1/boards/lossy:all/top")
    return read_time(reply.headers["standings-as-of"]) if "standings-as-of" in reply.headers else 0
