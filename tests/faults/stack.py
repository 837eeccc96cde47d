"""The deployment under test: real stores and roles as processes, each to be killed, paused and restarted."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import redis

from commands.administer import init, open_catalogue
from embedded.children import Child, ChildSpec
from embedded.environment import clean_environment, describe_settings
from embedded.ports import LOOPBACK, find_free_port
from embedded.probes import probe_http
from embedded.services import describe_broker, describe_dynamodb, describe_role, describe_valkey
from schemas.errors import StandingsError
from schemas.leaderboards import Definition, define
from schemas.settings import Settings, load_settings
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.kafka_admin import KafkaLogAdmin, is_drained
from stores.lanes import LaneMeta, Lanes
from tests.faults.proxy import Proxy
from tests.faults.reference import Rules
from tests.servers.kafka import Kafka
from tests.servers.valkey import Cluster

T = TypeVar("T")

LANES = 3
PARTITIONS = 4
UPDATERS = 2
# Short, so that what waits for them is seen to.
_SHORT = {
    "STANDINGS_EMBEDDED": "false",  # an updater of an older log may be alive here
    "STANDINGS_CLOCK_SKEW_MS": "0",  # one machine, one clock: as_of is held to the millisecond
    "STANDINGS_DEADLINE_MS": "2000",
    "STANDINGS_KAFKA_SESSION_TIMEOUT_MS": "1500",
    "STANDINGS_REDIS_TIMEOUT_S": "0.4",
    "STANDINGS_BATCH_ROWS": "60",
}


class Loop:
    """An event loop in a thread, for the proxy and the traffic; the main thread starts and ends processes."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float = 60) -> T:
        """What the coroutine returns."""
        return self.begin(work).result(timeout_s)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """The coroutine, under way."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Stack:
    """Everything, started. Main thread only: the kernel ends children with the thread that started them."""

    def __init__(
        self, folder: Path, seed: int, kafka: Kafka | None = None, cluster: Cluster | None = None, lanes: int = LANES
    ) -> None:
        self.folder = folder
        self.kafka = kafka
        self.cluster = cluster
        self.lane_count = lanes
        self.loop = Loop()
        self.key = secrets.token_hex(8)
        self._env = clean_environment(os.environ)
        redis_port, broker_port, dynamodb_port, api_port = (find_free_port() for _ in range(4))
        self.redis = Child(describe_valkey(redis_port, folder / "redis", self._env), self._log("redis"))
        self.broker = Child(describe_broker(broker_port, self._env), self._log("kafka"))
        self.dynamodb = Child(describe_dynamodb(dynamodb_port, folder / "dynamodb", self._env), self._log("dynamodb"))
        self.proxy = Proxy(dynamodb_port, random.Random(seed))
        self.api_url = f"http://{LOOPBACK}:{api_port}"
        address = kafka.bootstrap if kafka else f"{LOOPBACK}:{broker_port}"
        self._started: list[Child] = []
        try:
            self._start_stores()
            self.environment = self._describe(redis_port, address, api_port)
            self.direct = load_settings(
                self.environment | {"STANDINGS_DYNAMODB_URL": f"http://{LOOPBACK}:{dynamodb_port}"}
            )
            os.environ.update({name: value for name, value in self.environment.items() if name.startswith("AWS_")})
            self.init()
            self.roles = {name: self._role(name, api_port) for name in ("api", "keeper", *self.updaters)}
            for role in self.roles.values():
                self.start(role)
            _wait(self.roles["api"].is_ready, "the api answers")
        except BaseException:
            self.close()
            raise

    updaters = tuple(f"updater-{number}" for number in range(UPDATERS))

    @property
    def settings(self) -> Settings:
        """The settings by which the harness itself looks at the stores: past the proxy."""
        return self.direct

    @contextmanager
    def redis_client(self) -> Iterator[Any]:
        """A client of the boards, whose replies are raw."""
        client = connect_redis(self.direct)
        try:
            yield client
        finally:
            client.close()

    def start(self, child: Child) -> None:
        child.start()
        if child not in self._started:
            self._started.append(child)

    def restart(self, child: Child) -> None:
        """Kill it if it runs, and start it."""
        child.kill()
        self.start(child)

    def pause(self, child: Child) -> None:
        os.kill(child.pid, signal.SIGSTOP)

    def resume(self, child: Child) -> None:
        os.kill(child.pid, signal.SIGCONT)

    def armed(self, role: str) -> Path:
        """The file that arms a failpoint of a role's process."""
        return self.folder / f"failpoint-{role}"

    def init(self, partitions: int | None = None) -> None:
        """`standings init`, until it works: topics need a moment to go."""
        give_up_at = time.monotonic() + 15
        while not self.try_init(partitions):
            if time.monotonic() > give_up_at:
                raise TimeoutError("standings init does not come through")
            time.sleep(0.1)

    def try_init(self, partitions: int | None = None) -> bool:
        """`standings init` once; False where a store does not answer."""
        try:
            init(self.direct, self.lane_count, partitions, 1, PARTITIONS)
        except StandingsError:
            return False
        return True

    def define(self, rules: Rules) -> None:
        """Create a leaderboard; every role knows it a few seconds later."""
        definition = Definition.model_validate({
            "order": rules.order, "min": rules.least, "max": rules.most, "windows": ["all", "daily", "weekly"],
            "peak_writes_per_s": 700, "retention_days": {"daily": 2, "weekly": 7},
        })  # fmt: skip
        with open_catalogue(self.direct) as catalogue:
            catalogue.write_leaderboards([define(rules.leaderboard, definition, now_ms())])

    def count_partitions(self) -> int:
        """How many the topic of events has."""
        admin = KafkaLogAdmin(self.direct)
        try:
            found = admin.describe()
        finally:
            admin.close()
        assert found is not None
        return found.partitions

    def delete_key(self, key: str) -> bool:
        """Delete a key of a lane, named without the prefix; False where there is none, or Valkey is away."""
        with suppress(redis.RedisError), self.redis_client() as client:
            return bool(client.execute_command("DEL", f"{self.direct.prefix}:{key}"))
        return False

    def delete_topic(self) -> None:
        admin = KafkaLogAdmin(self.direct)
        try:
            admin.describe()
            admin._client.delete_topics([self.direct.names.events])
        finally:
            admin.close()

    def is_drained(self) -> bool:
        """True once everything on the log is recorded and committed."""
        with suppress(StandingsError):
            return is_drained(self.direct)
        return False

    def metas(self) -> list[LaneMeta]:
        with self.redis_client() as client:
            lanes = Lanes(client, self.direct.names)
            return [lanes.read_meta(lane) for lane in range(self.lane_count)]

    def wipe_redis(self, dump: Path | None = None) -> None:
        """Kill Valkey; it comes back empty, or with what the dump holds."""
        self.redis.kill()
        shutil.rmtree(self.folder / "redis")
        if dump is None:
            (self.folder / "redis").mkdir()
        else:
            shutil.copytree(dump, self.folder / "redis")
        self.start(self.redis)
        _wait(self.redis.is_ready, "Valkey answers")

    def close(self) -> None:
        """End all processes."""
        for child in self._started:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGCONT)
            child.kill()
        with suppress(Exception):
            self.loop.run(self.proxy.stop(), 5)
        self.loop.close()

    # ------------------------------------------------------------------ starting

    def _start_stores(self) -> None:
        stores = [self.dynamodb, *([] if self.cluster else [self.redis]), *([] if self.kafka else [self.broker])]
        for child in stores:
            child.begin_log()
            self.start(child)
        for child in stores:
            _wait(child.is_ready, f"{child.spec.name} answers")
        self.loop.run(self.proxy.start())

    def _describe(self, redis_port: int, kafka: str, api_port: int) -> dict[str, str]:
        return {
            **self._env,
            **describe_settings(
                redis_url=f"redis://{LOOPBACK}:{redis_port}/0",
                kafka=kafka,
                dynamodb_url=f"http://{LOOPBACK}:{self.proxy.port}",
                api_port=api_port,
                submit_key=self.key,
                data=self.folder,
                prefix=f"f{secrets.token_hex(4)}",
            ),
            **_SHORT,
            **({"STANDINGS_REDIS_CLUSTER": "true", "STANDINGS_REDIS_URL": self.cluster.url} if self.cluster else {}),
        }

    def _role(self, name: str, api_port: int) -> Child:
        env = self.environment | {"STANDINGS_FAILPOINT": f"@{self.armed(name)}"}
        spec = describe_role(name.partition("-")[0], env, api_port)
        if name == "api":
            spec = ChildSpec(spec.name, spec.argv, spec.env, probe_http(api_port, "/livez"))
        child = Child(spec, self._log(name))
        child.begin_log()
        return child

    def _log(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"


def _wait(ready: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    give_up_at = time.monotonic() + timeout_s
    while not ready():
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)
