"""A deployment of its own for a test: leaderboards, a log, lanes that are ready, and the API over them, in process.

There is no updater: `apply` and `put` do by hand what it would have done.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
import uuid
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import httpx
import orjson
import pytest
from kafka import KafkaConsumer, TopicPartition

from api.app import create_app
from api.services import Services, connect
from schemas.events import MatchBody, MatchEvent, ScoreBody, parse_event
from schemas.leaderboards import Board, Definition, Leaderboard, define
from schemas.rows import candidates_of, receipt_of
from schemas.settings import Settings
from stores.catalogue import Catalogue
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.deadline import Deadline
from stores.dynamodb import Dynamo, connect_dynamodb
from stores.kafka_admin import KafkaLogAdmin
from stores.lanes import Entries, Lanes, Projected, Range, topology_ids
from stores.scorebook import Scorebook

T = TypeVar("T")
KEY = "a-test-key"
AUTH = {"Authorization": f"Bearer {KEY}"}
HOUR_MS = 3_600_000
_LANES = 2
# kafka-python leaves the socket of a refused connection to the garbage collector. With the fixture `kafka_away`.
KAFKA_AWAY = pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning")


def settings_of(stores: Mapping[str, str], prefix: str, **more: Any) -> Settings:
    """The settings of a test's deployment; `limited` is a key that may write `ranked` alone."""
    keys = f"all:{_hash(KEY)} limited:{_hash('limited-key')}:ranked"
    return Settings(**({"prefix": prefix, "submit_keys": keys} | dict(stores) | more))


class Api:
    """The app in process, called from a thread of its own."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        transport = httpx.ASGITransport(create_app(services), raise_app_exceptions=True)
        self._client = httpx.AsyncClient(transport=transport, base_url="http://test")
        self.run(services.start())

    def begin(self, method: str, path: str, **options: Any) -> Future[httpx.Response]:
        """Send a request and go on."""
        return self._submit(self._client.request(method, path, **options))

    def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request and await its reply."""
        return self.begin(method, path, **options).result(30)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.send("POST", path, json=json, headers=options.pop("headers", AUTH), **options)

    def submit(self, **score: Any) -> httpx.Response:
        """One score of `ranked`."""
        return self.post(
            "/v1/scores", {"leaderboard": "ranked", "player_id": "zed", "match_id": "m", "score": 1} | score
        )

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._submit(work).result(30)

    def close(self) -> None:
        self.run(self._client.aclose())
        self.run(self.services.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        # A question to a store that is away goes on until its own time-out.
        for threads in (self.services.log_threads, self.services.watch_threads, self.services.scorebook_threads):
            threads._pool.shutdown(wait=True)

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


class World:
    """The stores of one deployment, written by hand, and its API."""

    def __init__(self, stores: Mapping[str, str], **more: Any) -> None:
        self.settings = settings_of(stores, f"t{uuid.uuid4().hex[:12]}", **more)
        names = self.settings.names
        self.dynamo = Dynamo(connect_dynamodb(self.settings))
        self.catalogue = Catalogue(self.dynamo, names, time.sleep)
        self.catalogue.create_tables()
        self.topology = self.catalogue.create_topology(_LANES)
        self.admin = KafkaLogAdmin(self.settings)
        self.admin.create_topics(1, 1)
        log = self.admin.describe()
        assert log is not None
        self.log_id = log.log_id
        self.ids = topology_ids(log.log_id, self.topology)
        self.redis = connect_redis(self.settings)
        self.lanes = Lanes(self.redis, names)
        self.scorebook = Scorebook(self.dynamo, names)
        self.leaderboards: dict[str, Leaderboard] = {}
        self.define("ranked")
        self.applied = 0
        self.as_of = now_ms() - 1_000
        for lane in range(_LANES):
            self.open_lane(lane)
        self.api = Api(connect(self.settings))
        self.await_ready()

    def define(self, name: str, **fields: Any) -> Leaderboard:
        """A leaderboard; the API sees it once it has reread."""
        values: dict[str, Any] = {"order": "higher", "min": 0, "max": 1_000_000}
        values |= {"windows": ("all", "daily", "weekly")} | fields
        leaderboard = define(name, Definition(**values), now_ms())
        self.catalogue.write_leaderboards([leaderboard])
        self.leaderboards[name] = leaderboard
        return leaderboard

    def board(self, kind: str = "all", leaderboard: str = "ranked", at_ms: int | None = None) -> Board:
        boards = self.leaderboards[leaderboard].boards_at(now_ms() if at_ms is None else at_ms)
        return next(board for board in boards if board.window.kind == kind)

    def lane_of(self, board: Board) -> int:
        return self.topology.lane_of(board.name)

    def begin_rebuild(self, lane: int) -> str:
        epoch = str(uuid.uuid4())
        assert self.lanes.begin(lane, epoch, self.ids, 1, self.lanes.read_meta(lane), [])
        return epoch

    def open_lane(self, lane: int) -> None:
        """An empty lane that is ready."""
        epoch = self.begin_rebuild(lane)
        assert self.lanes.finish(lane, epoch, 0, {0: (0, self.as_of)})

    def put(self, board: Board, scores: Mapping[str, tuple[int, int]]) -> None:
        """Bring (score, achieved at) of these players into the view alone."""
        entries = Entries()
        for player_id, (score, at_ms) in scores.items():
            entries.add(board, player_id, board.codec.pack(score, at_ms))
        self._project(self.lane_of(board), entries)

    def event(self, body: dict[str, Any], now_at: int | None = None) -> MatchEvent:
        kind = MatchBody if "results" in body else ScoreBody
        return parse_event(body, kind, self.leaderboards, now_ms() if now_at is None else now_at)

    def apply(self, event: MatchEvent) -> None:
        """Record an event, and project it, as the next record of the log."""
        candidates = candidates_of(event)
        images = self.scorebook.write_rows(candidates, set(), Deadline.after(5_000))
        self.scorebook.insert_receipts([receipt_of(event, now_ms())], Deadline.after(5_000))
        self.skip([(one.board, one.row.player_id, images[one.key].packed) for one in candidates])

    def skip(self, images: Sequence[tuple[Board, str, int]] = ()) -> None:
        """The next record of the log is applied in every lane, with these (board, player, packed)."""
        for lane in range(_LANES):
            entries = Entries()
            for board, player_id, packed in images:
                if self.lane_of(board) == lane and not board.is_expired(now_ms()):
                    entries.add(board, player_id, packed)
            self._project(lane, entries, Range(0, self.applied, self.applied + 1, self.as_of))
        self.applied += 1

    def records(self) -> list[Any]:
        """The values on the topic, decoded."""
        consumer = KafkaConsumer(bootstrap_servers=self.settings.kafka, enable_auto_commit=False)
        try:
            at = TopicPartition(self.settings.names.events, 0)
            consumer.assign([at])
            consumer.seek_to_beginning(at)
            found = consumer.poll(timeout_ms=2_000, max_records=5_000)
            return [(one.key.decode(), orjson.loads(one.value)) for records in found.values() for one in records]
        finally:
            consumer.close()

    def await_ready(self) -> None:
        wait_until(lambda: self.api.get("/readyz").status_code == 200)

    def await_leaderboard(self, name: str) -> None:
        wait_until(lambda: name in self.api.services.registry.leaderboards)

    def close(self) -> None:
        self.api.close()
        self.admin.close()
        self.redis.close()
        self.dynamo.close()

    def _project(self, lane: int, entries: Entries, applied: Range | None = None) -> None:
        range_ = applied or Range(0, self.applied, self.applied, self.as_of)
        assert self.lanes.project(lane, self.ids, [range_], entries) is Projected.APPLIED


def wait_until(holds: Any, timeout_s: float = 15.0) -> None:
    """Fails unless it holds in time."""
    ends_at_s = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < ends_at_s, f"not within {timeout_s} s"
        time.sleep(0.02)


def problem(response: httpx.Response) -> tuple[int, str]:
    """Status and name of a problem, after checking that it is a whole one."""
    assert response.headers["Content-Type"] == "application/problem+json", response.text
    body = response.json()
    assert body["status"] == response.status_code
    assert body["title"]
    assert body["detail"]
    assert response.headers["Cache-Control"] == "no-store"
    return response.status_code, body["type"].removeprefix("/problems/")


def faults(response: httpx.Response) -> list[str]:
    """The places of all faults of an invalid request."""
    assert problem(response) == (422, "invalid-request")
    return [one.get("pointer", one.get("parameter")) for one in response.json()["errors"]]


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()
