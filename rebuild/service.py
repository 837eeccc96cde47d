"""The keeper as a process."""

from __future__ import annotations

import threading
import time

from schemas.settings import Settings
from stores.catalogue import Catalogue
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.deadline import boot_ms
from stores.dynamodb import Dynamo, connect_dynamodb
from stores.kafka_log import KafkaLogAdmin
from stores.lanes import Lanes
from stores.registry import Registry
from stores.scorebook import Scorebook
from rebuild.keeper import Keeper
from rebuild.runner import Runner


class KeeperService:
    """Everything that a keeper needs, made from the settings. Connects when first used."""

    def __init__(self, settings: Settings) -> None:
        names = settings.names
        self._dynamo = Dynamo(connect_dynamodb(settings))
        self._admin = KafkaLogAdmin(settings)
        catalogue = Catalogue(self._dynamo, names, time.sleep)
        lanes = Lanes(connect_redis(settings), names)
        runner = Runner(Scorebook(self._dynamo, names), catalogue, lanes, self._admin, now_ms)
        self.keeper = Keeper(lanes, self._admin, Registry(catalogue), runner, settings, now_ms, boot_ms)

    def close(self) -> None:
        """End the connections."""
        self._admin.close()
        self._dynamo.close()


def run_keeper(settings: Settings, stopping: threading.Event) -> None:
    """Run a keeper until `stopping` is set."""
    service = KeeperService(settings)
    try:
        service.keeper.run(stopping)
    finally:
        service.close()
