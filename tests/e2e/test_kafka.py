"""The roles as processes of their own against a real Apache Kafka: two updaters, deaths, records from elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from commands.keys import new_key
from embedded.environment import describe_emulator_access
from embedded.ports import find_free_port
from embedded.single import running_dynamodb, running_valkey
from tests.e2e.stack import ROOT, wait_for
from tests.servers.kafka import Kafka, running_kafka
from tests.servers.missing import Missing, skip_or_fail

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


class Deployment:
    """api, two updaters and a keeper over a real Kafka, each its own process."""

    def __init__(self, folder: Path, kafka: Kafka, redis_url: str, dynamodb_url: str) -> None:
        self.kafka = kafka
        self.folder = folder
        self.key, entry = new_key("test", [])
        self.url = f"http://127.0.0.1:{find_free_port()}"
        self.environment = {
            **os.environ,
            **describe_emulator_access(),
            "STANDINGS_KAFKA": kafka.bootstrap,
            "STANDINGS_REDIS_URL": redis_url,
            "STANDINGS_DYNAMODB_URL": dynamodb_url,
            "STANDINGS_SUBMIT_KEYS": entry,
            "STANDINGS_PORT": self.url.rpartition(":")[2],
            "STANDINGS_KAFKA_SESSION_TIMEOUT_MS": "6000",
            "STANDINGS_PREFIX": "kafka-e2e",
        }
        self.roles: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        """Start a role; `updater-2` is another updater."""
        with (self.folder / f"{name}.log").open("ab") as log:
            self.roles[name] = subprocess.Popen(
                [sys.executable, "-m", "cli", name.partition("-")[0]],
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=ROOT,
            )

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`standings ...` with the roles' own settings."""
        return subprocess.run(
            [sys.executable, "-m", "cli", *arguments],
            capture_output=True, text=True, timeout=100, check=False, cwd=ROOT,
            env=self.environment | {"STANDINGS_URL": self.url, "STANDINGS_KEY": self.key},
        )  # fmt: skip

    def stop(self) -> None:
        """SIGTERM, and after 20 s SIGKILL."""
        for role in self.roles.values():
            role.send_signal(signal.SIGTERM)
        for role in self.roles.values():
            try:
                role.wait(20)
            except subprocess.TimeoutExpired:
                role.kill()
                role.wait()

    def submit(self, match_id: str, scores: dict[str, int], wait: str = "") -> httpx.Response:
        """A match reported whole; retried until it is answered, as a game server would."""
        results = [{"player_id": player, "score": score} for player, score in scores.items()]
        body = {"match_id": match_id, "leaderboard": "ranked", "results": results}
        while True:
            try:
                reply = httpx.post(
                    f"{self.url}/v1/matches{wait}",
                    json=body,
                    headers={"Authorization": f"Bearer {self.key}"},
                    timeout=15,
                )
            except httpx.TransportError:
                continue
            if reply.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                return reply
            time.sleep(0.2)

    def top(self) -> dict[str, Any]:
        """The board, or the problem."""
        found: dict[str, Any] = httpx.get(f"{self.url}/v1/boards/ranked:all/top?n=1000", timeout=15).json()
        return found


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("kafka-e2e")
    with ExitStack() as stack:
        try:
            kafka = stack.enter_context(running_kafka(folder / "kafka"))
        except Missing as missing:
            skip_or_fail(missing)
        redis_url = stack.enter_context(running_valkey(folder / "redis"))
        dynamodb_url = stack.enter_context(running_dynamodb(folder / "dynamodb"))
        deployment = Deployment(folder, kafka, redis_url, dynamodb_url)
        done = deployment.command("init", "--partitions", "4", "--replication", "1")
        assert done.returncode == 0, done.stderr
        definitions = folder / "leaderboards.toml"
        definitions.write_text(
            '[leaderboards.ranked]\norder = "higher"\nmin = 0\nmax = 100_000\nwindows = ["all", "daily"]\n'
        )
        done = deployment.command("apply", str(definitions))
        assert done.returncode == 0, done.stderr
        stack.callback(deployment.stop)
        for role in ("api", "updater-1", "updater-2", "keeper"):
            deployment.start(role)
        wait_for("all is ready", lambda: httpx.get(f"{deployment.url}/readyz", timeout=15).status_code == 200, 60)
        yield deployment


def test_a_match_comes_out_as_ranks(deployment: Deployment) -> None:
    reply = deployment.submit("m-1", {"zed": 10, "amy": 20}, "?wait=5")
    assert reply.status_code == 200, reply.text
    ranks = {(one["board"].split(":")[1], one["player_id"]): one["rank"] for one in reply.json()["standings"]}
    assert ranks == {("all", "amy"): 1, ("all", "zed"): 2, ("daily", "amy"): 1, ("daily", "zed"): 2}


def test_as_of_moves_on_under_constant_load_because_the_broker_stamps_the_records(deployment: Deployment) -> None:
    stopping = threading.Event()

    def feed() -> None:
        number = 0
        while not stopping.is_set():
            deployment.submit(f"load-{number}", {f"load-{number % 50}": number % 90_000})
            number += 1

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        seen = set()
        for _ in range(6):
            time.sleep(0.7)
            seen.add(deployment.top()["as_of"])
    finally:
        stopping.set()
        feeding.join()
    assert len(seen - {None}) >= 4


def test_a_record_from_elsewhere_counts_when_its_key_is_the_match_id(deployment: Deployment) -> None:
    producer = KafkaProducer(bootstrap_servers=deployment.kafka.bootstrap, acks="all")
    try:
        body = {"match_id": "direct-1", "leaderboard": "ranked", "results": [{"player_id": "direct", "score": 77_777}]}
        for key in (b"direct-1", b"another"):
            producer.send("kafka-e2e-match-events", key=key, value=json.dumps(body).encode()).get(10)
    finally:
        producer.close()
    wait_for("it is on the board", lambda: "direct" in {one["player_id"] for one in deployment.top()["entries"]})
    wait_for("the other is a dead letter", lambda: "invalid-key" in deployment.command("dlq", "list").stdout)


def test_a_record_that_is_too_large_for_the_dead_letters_stops_nothing(deployment: Deployment) -> None:
    # The topic's limit is on the compressed batch: three megabytes of one letter pass it.
    producer = KafkaProducer(
        bootstrap_servers=deployment.kafka.bootstrap, acks="all", compression_type="gzip", max_request_size=50_000_000
    )
    try:
        producer.send("kafka-e2e-match-events", key=b"poison", value=b"x" * 3_000_000).get(10)
        body = {"match_id": "behind", "leaderboard": "ranked", "results": [{"player_id": "behind", "score": 5}]}
        producer.send("kafka-e2e-match-events", key=b"behind", value=json.dumps(body).encode()).get(10)
    finally:
        producer.close()
    wait_for("what came behind it", lambda: "behind" in {one["player_id"] for one in deployment.top()["entries"]})
    wait_for("it is a dead letter", lambda: "poison" in deployment.command("dlq", "list").stdout)


@pytest.mark.parametrize("victim", ["updater", "broker"])
def test_nothing_is_lost_when_a_part_is_killed_under_load(deployment: Deployment, victim: str) -> None:
    wanted = {f"{victim}-{number}": 1_000 + number for number in range(300)}
    feeding = threading.Thread(
        target=lambda: [deployment.submit(f"{victim}-{player}", {player: score}) for player, score in wanted.items()]
    )
    feeding.start()
    time.sleep(0.5)
    if victim == "updater":
        deployment.roles["updater-1"].kill()
        deployment.roles["updater-1"].wait()
    else:
        deployment.kafka.kill()
        time.sleep(1)
        deployment.kafka.start()
    feeding.join()

    def all_there() -> bool:
        shown = {one["player_id"]: one["score"] for one in deployment.top().get("entries", [])}
        return wanted.items() <= shown.items()

    wait_for("every result is on the board", all_there, 90)
    if victim == "updater":
        deployment.start("updater-1")
    wait_for("the view agrees with the truth", lambda: deployment.command("audit", "--all").returncode == 0, 60)


def test_partitions_are_added_while_it_runs_and_as_of_goes_on(deployment: Deployment) -> None:
    done = deployment.command("init", "--partitions", "6")
    assert done.returncode == 0, done.stderr
    wait_for("as_of is known again", lambda: deployment.top().get("as_of") is not None, 60)
    reply = deployment.submit("after-more-partitions", {"late": 90_001}, "?wait=5")
    assert reply.status_code in {200, 202}
    wait_for("it is on the board", lambda: "late" in {one["player_id"] for one in deployment.top()["entries"]}, 60)
