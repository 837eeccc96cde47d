"""What rebuilds, made from the settings; and the keeper as a process."""

from __future__ import annotations

import threading
import time

from rebuild.audit import Auditor
from rebuild.keeper import Keeper
from rebuild.metrics import KeeperMetrics
from rebuild.repairs import BoardRepairer
from rebuild.rows import Progress
from rebuild.runner import Runner
from rebuild.world import World, look
from schemas.settings import Settings
from stores.catalogue import Catalogue
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.deadline import boot_ms
from stores.dynamodb import QUERY_TIMEOUT_S, Dynamo, connect_dynamodb
from stores.kafka_admin import KafkaLogAdmin
from stores.lanes import Lanes
from stores.metrics import serving_metrics
from stores.registry import Registry
from stores.repairs import LaneRepairs
from stores.scorebook import Scorebook


class RebuildService:
    """What rebuilds, repairs, audits and the keeper need, made from the settings. Connects when first used."""

    def __init__(self, settings: Settings, progress: Progress = lambda _filling: None) -> None:
        names = settings.names
        self._dynamo = Dynamo(connect_dynamodb(settings))
        self.admin = KafkaLogAdmin(settings)
        self.catalogue = Catalogue(self._dynamo, names, time.sleep)
        client = connect_redis(settings)
        self.lanes = Lanes(client, names)
        repairs = LaneRepairs(client, names)
        self._queries = Dynamo(connect_dynamodb(settings, QUERY_TIMEOUT_S))
        scorebook = Scorebook(self._queries, names, settings.rebuild_queries)
        self.runner = Runner(scorebook, self.catalogue, self.lanes, self.admin, now_ms, progress)
        self.repairer = BoardRepairer(scorebook, self.catalogue, self.lanes, repairs, now_ms, progress)
        self.auditor = Auditor(scorebook, self.lanes, repairs, self.admin, now_ms)
        self.metrics = KeeperMetrics()
        self.keeper = Keeper(
            self.lanes, repairs, self.admin, self.catalogue, self.runner, self.repairer, settings, now_ms, boot_ms,
            on_healed=self.metrics.count_healed, on_failed=self.metrics.count_failed,
        )  # fmt: skip

    def look(self) -> World:
        """What is authoritative now."""
        return look(Registry(self.catalogue), self.admin)

    def close(self) -> None:
        """End the connections."""
        self.admin.close()
        self._dynamo.close()
        self._queries.close()


def run_keeper(settings: Settings, stopping: threading.Event) -> None:
    """Run a keeper until `stopping` is set."""
    service = RebuildService(settings)
    try:
        with serving_metrics(settings, service.metrics.registry):
            service.keeper.run(stopping)
    finally:
        service.close()
