"""A whole deployment but for Redis in memory, with a clock of its own: log, scorebook, lanes, updaters, keeper.

Nothing runs by itself: a test calls `turn` and `look`, and may stop time, stores and processes wherever it likes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, TypeVar, cast

import redis
from redis.exceptions import ConnectionError as RedisConnectionError

from embedded.single import running_valkey
from rebuild.keeper import Keeper
from rebuild.repairs import BoardRepairer
from rebuild.runner import Runner
from schemas.errors import StoreUnavailable
from schemas.leaderboards import Definition, Leaderboard, define
from schemas.rows import Receipt, Row, RowKey
from schemas.settings import Settings, load_settings
from stores.catalogue import Catalogue
from stores.connections import AnyRedis, connect_redis
from stores.dynamodb import Dynamo
from stores.lanes import LaneIds, LaneMeta, Lanes, topology_ids
from stores.log import Acknowledged, LogChanged
from stores.registry import Registry
from stores.repairs import LaneRepairs
from stores.scorebook import Scorebook, _receipt, _row
from stores.scripts import all_scripts
from tests.fakes.dynamodb import FakeDynamoDB
from tests.fakes.log import Kept, MemoryLog
from tests.fakes.log_group import MemoryLogConsumer
from updater.dead_letters import DeadLetters
from updater.decode import Decoder
from updater.failpoints import Step
from updater.metrics import UpdaterMetrics
from updater.pipeline import Pipeline
from updater.project import Projector
from updater.record import Recorder
from updater.session import Clocks, Limits, Session

In = TypeVar("In")
Out = TypeVar("Out")

# A Sunday evening in years to come: two minutes before a day, a week and a month's second day begin, and so far ahead
# that the server, whose clock is the real one, expires nothing by itself.
START_AT = int(datetime(2040, 1, 1, 23, 58, tzinfo=UTC).timestamp()) * 1_000
MAIN = {"order": "higher", "min": 0, "max": 1_000, "windows": ["all", "daily"], "peak_writes_per_s": 700}
_numbers = count()
_SCRIPTS = {one.sha: one.name for one in all_scripts()}


@contextmanager
def valkey_client(folder: Path) -> Iterator[redis.Redis]:
    """A Valkey of this session's own, and a client as the roles make it."""
    with running_valkey(folder) as url:
        client = connect_redis(load_settings({"STANDINGS_REDIS_URL": url}))
        assert isinstance(client, redis.Redis)
        yield client
        client.close()


class Clock:
    """Time that only tests move: epoch ms, and the boot clock's ms."""

    def __init__(self) -> None:
        self.passed_ms = 0

    def now_at(self) -> int:
        return START_AT + self.passed_ms

    def boot_ms(self) -> int:
        return 5_000_000 + self.passed_ms

    def advance(self, more_ms: int) -> None:
        self.passed_ms += more_ms

    def sleep(self, time_s: float) -> None:
        self.advance(int(time_s * 1_000))


class RedisGate:
    """A client that can be cut off. `before` is called ahead of each call with its name, and may raise.

    The name is that of the script where one is run, else the command's.
    """

    def __init__(self, client: redis.Redis) -> None:
        self._client: Any = client
        self.away = False
        self.lost_replies = 0
        self.before: Callable[[str], None] = lambda _: None
        self.calls: list[str] = []

    def execute_command(self, *args: Any, **options: Any) -> Any:
        self._enter(_SCRIPTS.get(args[1], "") if args[0] == "EVALSHA" else args[0])
        reply = self._client.execute_command(*args, **options)
        if self.lost_replies:
            self.lost_replies -= 1
            raise RedisConnectionError("the reply was lost")
        return reply

    def pipeline(self, *, transaction: bool = True) -> Any:
        self._enter("pipeline")
        return self._client.pipeline(transaction=transaction)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _enter(self, name: str) -> None:
        self.before(name)
        self.calls.append(name)
        if self.away:
            raise RedisConnectionError("cut off by the test")


class InlinePool:
    """Instead of threads: one after the other, here."""

    def map(self, work: Callable[[In], Out], items: Iterable[In]) -> list[Out]:
        return [work(one) for one in items]

    def shutdown(self) -> None:
        """Nothing runs."""


class UpdaterProcess:
    """An updater whose loop is the test's. `at` is called at each of its steps, and may raise or do anything."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self.at: Callable[[Step], None] = lambda _: None
        self.is_running = False
        self._start()

    def _start(self) -> None:
        """As updater/service.py puts it together."""
        here = self._deployment
        self.consumer: MemoryLogConsumer | None = None
        self.session: Session | None = None
        self.metrics = UpdaterMetrics()
        self.registry = Registry(here.catalogue, here.clock.boot_ms)
        self.projector = Projector(here.lanes, here.clock.now_at, here.clock.boot_ms)
        self.recorder = here.make_recorder(here.scorebook, here.lanes, here.clock.now_at, self._reach)
        producer, share = here.log.producer(), here.settings.max_dead_letter_share
        self.dead_letters = DeadLetters(producer, here.settings.names, share)
        self.pipeline = here.make_pipeline(
            Decoder(self.registry, here.settings.clock_skew_ms, here.clock.now_at),
            self.recorder,
            self.projector,
            self.dead_letters,
            self.metrics,
            self._reach,
        )

    def turn(self) -> None:
        """What updater/service.py does once around: join where needed, one turn, join anew where it ended."""
        self.is_running = True
        try:
            if self.session is None:
                found = self._deployment.admin.describe()
                if found is None:
                    return
                self.join(found.log_id)
            assert self.session is not None
            self.session.turn()
        except (LogChanged, StoreUnavailable):
            self.leave()
        finally:
            self.is_running = False

    def turns(self, times: int) -> None:
        for _ in range(times):
            self.turn()

    def join(self, log_id: str) -> Session:
        settings, clock = self._deployment.settings, self._deployment.clock
        self.consumer = self._deployment.log.consumer(log_id)
        self.session = Session(
            log_id,
            self.consumer,
            self._deployment.admin,
            self.registry,
            self.pipeline,
            Clocks(clock.now_at, clock.boot_ms),
            Limits(settings.batch_rows, settings.deadline_ms, settings.clock_skew_ms),
        )
        return self.session

    def leave(self) -> None:
        """A graceful end."""
        if self.session is not None:
            self.session.close()
        self.session = self.consumer = None

    def vanish(self) -> None:
        """It has been silent for too long: its group goes on without it."""
        if self.consumer is not None:
            self.consumer.vanish()

    def die(self) -> None:
        """What kill -9 leaves: a member that the group soon misses, and nothing of what was in memory."""
        self.vanish()
        self._start()

    def _reach(self, step: Step) -> None:
        self.at(step)


class Deployment:
    """See the module. `leaderboards` as in leaderboards.toml, by name."""

    def __init__(
        self,
        client: redis.Redis,
        leaderboards: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        partitions: int = 2,
        lanes: int = 2,
        append_time: bool = True,
        **settings: Any,
    ) -> None:
        self.settings = Settings(prefix=f"d{next(_numbers)}", **settings)
        names = self.settings.names
        self.clock = Clock()
        self.client: Any = client
        self.redis = RedisGate(client)
        self.dynamodb = FakeDynamoDB()
        self.dynamo = Dynamo(self.dynamodb.as_client(), self.clock.sleep, lambda _, longest_s: longest_s)
        self.dynamo._pool = InlinePool()  # type: ignore[assignment]
        self.log = MemoryLog(names, self.clock.now_at, append_time=append_time, idle=self.clock.sleep)
        self.admin = self.log.admin()
        self.admin.create_topics(partitions, 1)
        self.catalogue = Catalogue(self.dynamo, names, self.clock.sleep)
        self.catalogue.create_tables()
        self.topology = self.catalogue.create_topology(lanes)
        self.scorebook = Scorebook(self.dynamo, names)
        self.lanes = Lanes(cast("AnyRedis", self.redis), names)
        self.leaderboards: dict[str, Leaderboard] = {}
        self.make_recorder: Callable[..., Recorder] = Recorder
        self.make_pipeline: Callable[..., Pipeline] = Pipeline
        self.define(leaderboards or {"main": MAIN})

    # ------------------------------------------------------------------ what is done to it

    def define(self, leaderboards: Mapping[str, Mapping[str, Any]]) -> None:
        """As `standings apply`."""
        made = [define(name, Definition.model_validate(one), START_AT) for name, one in leaderboards.items()]
        self.catalogue.write_leaderboards(made)
        self.leaderboards |= {one.name: one for one in made}

    def open_lanes(self) -> None:
        """What a keeper does at a first start: all lanes are READY, with nothing in them."""
        found = self.admin.describe()
        assert found is not None
        for lane in range(self.topology.lanes):
            epoch = f"first-{found.log_id}-{lane}"
            assert self.lanes.begin(lane, epoch, self.ids, found.partitions, self.lanes.read_meta(lane), [])
            offsets = {one: (at, None) for one, at in self.admin.log_starts(found.partitions).items()}
            assert self.lanes.finish(lane, epoch, 0, offsets)

    def submit(self, body: Mapping[str, Any], *, key: str | None = None, timestamp: int | None = None) -> Acknowledged:
        """A producer's event."""
        return self.append((body["match_id"] if key is None else key).encode(), json.dumps(body).encode(), timestamp)

    def append(self, key: bytes | None, value: bytes, timestamp: int | None = None) -> Acknowledged:
        """Any bytes."""
        return self.log.append(key, value, timestamp=timestamp)

    def updater(self) -> UpdaterProcess:
        """Another updater, which joins by its first turn."""
        return UpdaterProcess(self)

    def keeper(self) -> Keeper:
        """A keeper as rebuild/service.py puts it together; it looks when told to."""
        now_at = self.clock.now_at
        repairs = LaneRepairs(cast("AnyRedis", self.redis), self.settings.names)
        runner = Runner(self.scorebook, self.catalogue, self.lanes, self.admin, now_at, sleep=self.clock.sleep)
        repairer = BoardRepairer(self.scorebook, self.catalogue, self.lanes, repairs, now_at)
        return Keeper(
            self.lanes, repairs, self.admin, self.catalogue, runner, repairer, self.settings, now_at, self.clock.boot_ms
        )

    def close(self) -> None:
        """Its keys go; the server is others' too."""
        self.delete(self.keys())

    def delete(self, keys: Sequence[bytes]) -> None:
        """Keys go, by nobody's script."""
        if keys:
            self.client.unlink(*keys)

    # ------------------------------------------------------------------ what there is

    @property
    def ids(self) -> LaneIds:
        """What lanes have to carry now."""
        found = self.admin.describe()
        assert found is not None
        return topology_ids(found.log_id, self.topology)

    def keys(self) -> list[bytes]:
        """All keys of this deployment, sorted."""
        return sorted(self.client.execute_command("KEYS", f"{self.settings.prefix}:*"))

    def metas(self) -> list[LaneMeta]:
        """What each lane says of itself."""
        return [self.lanes.read_meta(lane) for lane in range(self.topology.lanes)]

    def committed(self) -> dict[int, int]:
        """What the present log's group has committed."""
        found = self.admin.describe()
        return {} if found is None else {p: one.offset for p, one in self.admin.committed(found.log_id).items()}

    def rows(self) -> dict[RowKey, Row]:
        """The truth's rows."""
        items = self.dynamodb.tables[self.settings.names.scores].items.values()
        return {
            RowKey(item["board_shard"]["S"].rpartition("#")[0], item["player_id"]["S"]): _row(item) for item in items
        }

    def receipts(self) -> list[Receipt]:
        """The truth's receipts."""
        return [_receipt(item) for item in self.dynamodb.tables[self.settings.names.matches].items.values()]

    def view(self, boards: Iterable[str]) -> dict[RowKey, int]:
        """What Redis holds of these boards, ready or not."""
        asked = sorted(set(boards))
        commands = [("ZRANGE", self.board_key(board), 0, -1, "WITHSCORES") for board in asked]
        found: dict[RowKey, int] = {}
        for board, flat in zip(asked, self.ask(commands), strict=True):
            pairs = zip(flat[::2], flat[1::2], strict=True)
            found |= {RowKey(board, player.decode()): int(packed) for player, packed in pairs}
        return found

    def board_key(self, board: str) -> str:
        """The board's key in Redis."""
        return self.settings.names.lane(self.topology.lane_of(board)).board(board)

    def ask(self, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Raw replies of Redis, also while the deployment is cut off from it."""
        pipeline = self.client.pipeline(transaction=False)
        for command in commands:
            pipeline.execute_command(*command)
        replies: list[Any] = pipeline.execute()
        return replies

    def letters(self) -> list[Kept]:
        """The dead letters."""
        return self.log.records(self.settings.names.dead_letters)


def header(letter: Kept, name: str) -> str:
    """A header of a dead letter."""
    return dict(letter.headers)[name].decode()
