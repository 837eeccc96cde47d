"""Stores that stop answering: a bounded time, an honest answer, and back by itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from embedded.children import Child
from embedded.environment import clean_environment
from embedded.ports import find_free_port
from embedded.services import describe_broker, describe_dynamodb, describe_valkey
from embedded.single import running_child
from stores.clock import now_ms
from stores.kafka_admin import KafkaLogAdmin
from tests.api.world import AUTH, KAFKA_AWAY, World, problem, wait_until

BOARD = "/v1/boards/ranked:all"
TOP = f"{BOARD}/top"
SCORE = {"match_id": "m", "leaderboard": "ranked", "player_id": "zed", "score": 1}


@pytest.fixture
def valkey(tmp_path: Path, stores: Mapping[str, str]) -> Iterator[tuple[World, Child]]:
    """A deployment whose Valkey may be stopped."""
    port = find_free_port()
    with running_child(describe_valkey(port, tmp_path, clean_environment(os.environ)), tmp_path) as child:
        address = {"redis_url": f"redis://127.0.0.1:{port}/0"}
        with closing(World(dict(stores) | address, redis_timeout_s=0.3)) as world:
            world.put(world.board(), {"zed": (10, now_ms())})
            yield world, child


def test_while_redis_hangs_reads_end_in_time_and_come_back(valkey: tuple[World, Child]) -> None:
    world, child = valkey
    assert world.api.get(TOP).status_code == 200
    os.kill(child.pid, signal.SIGSTOP)
    try:
        for path in (TOP, f"{BOARD}/players/zed", f"{BOARD}/friends?id=zed", "/v1/players/zed/boards", BOARD):
            began_s = time.monotonic()
            response = world.api.get(path)
            assert problem(response) == (503, "store-unavailable")
            assert response.headers["Retry-After"] == "1"
            assert time.monotonic() - began_s < 2
        assert problem(world.api.get("/readyz")) == (503, "store-unavailable")
        assert world.api.get("/livez").status_code == 200
        # What is submitted is accepted all the same.
        assert world.api.post("/v1/scores?wait=0.2", SCORE).status_code == 202
    finally:
        os.kill(child.pid, signal.SIGCONT)
    wait_until(lambda: world.api.get(TOP).status_code == 200, 5)


def test_a_redis_that_was_restarted_is_used_again(valkey: tuple[World, Child]) -> None:
    world, child = valkey
    assert world.api.get(f"{TOP}?n=1").json()["size"] == 1
    child.kill()
    assert problem(world.api.get(TOP)) == (503, "store-unavailable")
    child.start()
    # Its scripts are gone, and the connections are stale.
    wait_until(lambda: world.api.get(f"{TOP}?n=1").status_code == 200, 5)
    assert world.api.get(f"{TOP}?n=1").json()["size"] == 1


def test_while_dynamodb_hangs_boards_and_submissions_go_on(tmp_path: Path, stores: Mapping[str, str]) -> None:
    port = find_free_port()
    address = {"dynamodb_url": f"http://127.0.0.1:{port}"}
    with (
        running_child(describe_dynamodb(port, tmp_path, clean_environment(os.environ)), tmp_path) as child,
        closing(World(dict(stores) | address)) as world,
    ):
        os.kill(child.pid, signal.SIGSTOP)
        try:
            assert world.api.get(TOP).status_code == 200
            assert world.api.get("/v1/leaderboards").json()["leaderboards"][0]["leaderboard"] == "ranked"
            assert world.api.post("/v1/scores", SCORE).status_code == 202
            world.begin_rebuild(world.lane_of(world.board()))
            for path in ("/v1/leaderboards/ranked/matches/m", f"{BOARD}/players/zed"):
                began_s = time.monotonic()
                assert problem(world.api.get(path, headers=AUTH)) == (503, "store-unavailable")
                assert time.monotonic() - began_s < 7
        finally:
            os.kill(child.pid, signal.SIGCONT)
        wait_until(lambda: world.api.get(f"{BOARD}/players/zed").status_code == 404)


@pytest.mark.slow
@pytest.mark.usefixtures("kafka_away")
@KAFKA_AWAY
def test_a_broker_that_was_away_is_used_again(tmp_path: Path, stores: Mapping[str, str]) -> None:
    port = find_free_port()
    address = {"kafka": f"127.0.0.1:{port}"}
    with (
        running_child(describe_broker(port, clean_environment(os.environ)), tmp_path) as child,
        closing(World(dict(stores) | address)) as world,
    ):
        assert world.api.post("/v1/scores", SCORE).status_code == 202
        child.kill()
        response = world.api.post("/v1/scores", SCORE)
        assert problem(response) == (503, "store-unavailable")
        assert response.headers["Retry-After"] == "1"
        wait_until(lambda: world.api.post("/v1/scores", SCORE).json()["accepted"] is False, 30)
        assert "nothing was accepted" in world.api.post("/v1/scores", SCORE).json()["detail"]
        child.start()
        assert child.wait_until_ready()
        with closing(KafkaLogAdmin(world.settings)) as admin:
            admin.create_topics(1, 1)
        wait_until(lambda: world.api.post("/v1/scores", SCORE).status_code == 202, 30)
