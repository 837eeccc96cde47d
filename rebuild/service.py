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
from stores.repairs import LaneRepairs
from stores.scorebook import Scorebook
from rebuild.keeper import Keeper
from rebuild.repairs import BoardRepairer
from rebuild.runner import Runner


class KeeperService:
    """Everything that a keeper needs, made from the settings. Connects when first used."""

    def __init__(self, settings: Settings) -> None:
        names = settings.names
        self._dynamo = Dynamo(connect_dynamodb(settings))
        self._admin = KafkaLogAdmin(settings)
        catalogue = Catalogue(self._dynamo, names, time.sleep)
        client = connect_redis(settings)
        lanes = Lanes(client, names)
        repairs = LaneRepairs(client, names)
        scorebook = Scorebook(self._dynamo, names)
        runner = Runner(scorebook, catalogue, lanes, self._admin, now_ms)
        repairer = BoardRepairer(scorebook, catalogue, lanes, repairs, now_ms)
        self.keeper = Keeper(lanes, repairs, self._admin, catalogue, runner, repairer, settings, now_ms, boot_ms)

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
