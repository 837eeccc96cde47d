"""What the API works with, made from the settings: clients that connect when first used, and tasks that keep watch."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from api.keyring import Keyring
from api.live import Feeds
from api.logwatch import LogWatch
from api.metrics import Metrics
from api.outbox import Outbox
from api.threads import Threads
from schemas.errors import StandingsError, StoreUnavailable
from schemas.settings import Settings, parse_submit_keys
from schemas.times import SECOND_MS
from stores.boards import BoardReader
from stores.catalogue import Catalogue
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.dynamodb import Dynamo, connect_dynamodb
from stores.exchange import Exchange
from stores.kafka_admin import KafkaLogAdmin
from stores.kafka_producer import KafkaLogProducer
from stores.lanes import Lanes
from stores.nodes import ClusterNodes, SingleNode
from stores.registry import REREAD_MS, Registry
from stores.scorebook import Scorebook

log = structlog.get_logger("api")
_LOOK_AT_LOG_EVERY_S = 1.0
_REREAD_WITHIN_S = 12.0


@dataclass
class Services:
    """Everything that the routes need. `start` and `close` belong to the loop that serves."""

    settings: Settings
    clock: Callable[[], int]
    registry: Registry
    exchange: Exchange
    reader: BoardReader
    scorebook: Scorebook
    lanes: Lanes
    log: LogWatch
    outbox: Outbox
    keyring: Keyring
    metrics: Metrics
    feeds: Feeds
    scorebook_threads: Threads
    watch_threads: Threads
    log_threads: Threads
    at_close: list[Callable[[], None]]
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Begin to watch the definitions and the log. Stores that are away are no reason to fail."""
        repeat = asyncio.get_running_loop().create_task
        self._tasks += [
            repeat(_repeat("the definitions", self._reread, REREAD_MS / SECOND_MS)),
            repeat(_repeat("the log", self.log.look, _LOOK_AT_LOG_EVERY_S)),
        ]

    def end_streams(self) -> None:
        """End all live streams: a stopping server would wait for them."""
        self.feeds.close()

    async def close(self) -> None:
        """End the tasks, send what is in flight, and end all connections."""
        self.end_streams()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._close_blocking)
        await self.exchange.close()

    async def _reread(self) -> None:
        await self.watch_threads.run(_REREAD_WITHIN_S, self.registry.reread)

    def _close_blocking(self) -> None:
        for close in (*self.at_close, self.scorebook_threads.close, self.watch_threads.close, self.log_threads.close):
            with suppress(StandingsError):
                close()


def connect(settings: Settings, clock: Callable[[], int] = now_ms) -> Services:
    """The services of these settings. Connects to nothing yet."""
    names = settings.names
    dynamo = Dynamo(connect_dynamodb(settings))
    registry = Registry(Catalogue(dynamo, names, time.sleep))
    nodes = ClusterNodes(settings) if settings.redis_cluster else SingleNode(settings)
    exchange = Exchange(nodes, names)
    producer, admin = KafkaLogProducer(settings), KafkaLogAdmin(settings)
    outbox = Outbox(producer, names.events, settings.max_in_flight)
    redis = connect_redis(settings)
    watch_threads, log_threads = Threads("a watched store", 6), Threads("the log", 1)
    metrics = Metrics()
    metrics.watch_in_flight(lambda: outbox.in_flight)
    reader = BoardReader(exchange, names, lambda: registry.topology)
    feeds = Feeds(reader, clock)
    metrics.watch_subscribers(lambda: feeds.subscribers)
    return Services(
        settings=settings,
        clock=clock,
        registry=registry,
        exchange=exchange,
        reader=reader,
        scorebook=Scorebook(dynamo, names),
        lanes=Lanes(redis, names),
        log=LogWatch(admin, log_threads),
        outbox=outbox,
        keyring=Keyring(parse_submit_keys(settings.submit_keys.get_secret_value())),
        metrics=metrics,
        feeds=feeds,
        scorebook_threads=Threads("the scorebook", 16),
        watch_threads=watch_threads,
        log_threads=log_threads,
        at_close=[outbox.close, admin.close, dynamo.close, redis.close],
    )


async def _repeat(what: str, step: Callable[[], Awaitable[None]], every_s: float) -> None:
    """Takes the step for ever. A store that is away is told once, and once more when it is back."""
    trouble = ""
    while True:
        try:
            await step()
        except StoreUnavailable as error:
            if not trouble:
                log.warning("a store can't be read", what=what, error=str(error))
            trouble = str(error)
        except Exception:
            log.exception("a watch met a defect", what=what)
            trouble = "a defect"
        else:
            if trouble:
                log.info("a store can be read again", what=what)
            trouble = ""
        await asyncio.sleep(every_s)
