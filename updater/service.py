"""The updater as a process: joins the log's group, works, and joins anew when the log is another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

from schemas.errors import StoreUnavailable
from schemas.settings import Settings
from stores.catalogue import Catalogue
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.deadline import boot_ms
from stores.dynamodb import Dynamo, connect_dynamodb
from stores.kafka_admin import KafkaLogAdmin
from stores.kafka_consumer import KafkaLogConsumer
from stores.kafka_producer import KafkaLogProducer
from stores.lanes import Lanes
from stores.log import LogAdmin, LogChanged, LogConsumer
from stores.metrics import serving_metrics
from stores.registry import Registry
from stores.scorebook import Scorebook
from updater.dead_letters import DeadLetters
from updater.decode import Decoder
from updater.metrics import UpdaterMetrics
from updater.pipeline import Pipeline
from updater.project import Projector
from updater.record import Recorder
from updater.session import Clocks, Limits, Session

_RETRY_S = 0.5

log = structlog.get_logger("updater")


class Updater:
    """Runs sessions until it is told to stop."""

    def __init__(
        self, admin: LogAdmin, join: Callable[[str], Session], stopping: threading.Event, sleep: Callable[[float], None]
    ) -> None:
        self._admin = admin
        self._join = join
        self._stopping = stopping
        self._sleep = sleep

    def run(self) -> None:
        """Work until told to stop; then the batch under way is finished first. Raises TooManyDeadLetters."""
        while not self._stopping.is_set():
            try:
                self._work()
            except LogChanged as error:
                log.warning("the log is another: joining anew", reason=str(error))
            except StoreUnavailable as error:
                log.warning("the log is away", error=str(error))
                self._sleep(_RETRY_S)

    def _work(self) -> None:
        found = self._admin.describe()
        if found is None:
            raise StoreUnavailable("the topic is missing: run `standings init`")
        session = self._join(found.log_id)
        try:
            while not self._stopping.is_set():
                session.turn()
        finally:
            session.close()


class UpdaterService:
    """Everything that an updater needs, made from the settings. Connects when first used."""

    def __init__(self, settings: Settings, stopping: threading.Event) -> None:
        names = settings.names
        clocks = Clocks(now_ms, boot_ms)
        limits = Limits(settings.batch_rows, settings.deadline_ms, settings.clock_skew_ms)
        self.metrics = UpdaterMetrics()
        self._dynamo = Dynamo(connect_dynamodb(settings))
        self._producer = KafkaLogProducer(settings)
        self._admin = KafkaLogAdmin(settings)
        registry = Registry(Catalogue(self._dynamo, names, time.sleep))
        lanes = Lanes(connect_redis(settings), names)
        projector = Projector(lanes, clocks.now_at, clocks.boot_ms)
        pipeline = Pipeline(
            Decoder(registry, settings.clock_skew_ms, clocks.now_at),
            Recorder(Scorebook(self._dynamo, names), lanes, clocks.now_at),
            projector,
            DeadLetters(self._producer, names, settings.max_dead_letter_share),
            self.metrics,
        )

        def join(log_id: str) -> Session:
            consumer: LogConsumer = KafkaLogConsumer(settings, log_id)
            return Session(log_id, consumer, self._admin, registry, pipeline, clocks, limits)

        self.updater = Updater(self._admin, join, stopping, time.sleep)

    def close(self) -> None:
        """End the connections."""
        self._producer.close()
        self._admin.close()
        self._dynamo.close()


def run_updater(settings: Settings, stopping: threading.Event) -> None:
    """Run an updater until `stopping` is set. Raises TooManyDeadLetters when it stopped itself."""
    service = UpdaterService(settings, stopping)
    try:
        with serving_metrics(settings, service.metrics.registry):
            service.updater.run()
    finally:
        service.close()
