"""The example of docs/publishing.md does what the page says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from embedded.single import running_broker
from schemas.leaderboards import Definition, define
from schemas.rows import Topology
from schemas.settings import load_settings
from stores.clock import now_ms
from stores.kafka_admin import KafkaLogAdmin
from stores.log import Record
from stores.registry import Registry
from updater.decode import Decoder

PAGE = Path(__file__).parents[2] / "docs" / "publishing.md"
PARTITIONS = 4


class OneLeaderboard:
    """A catalogue with `main` alone."""

    def read_leaderboards(self) -> dict[str, object]:
        definition = Definition(order="higher", min=0, max=1_000, windows=("all",))
        return {"main": define("main", definition, 0)}

    def read_topology(self) -> Topology:
        return Topology(1, 1, "truth")


def read_records(address: str, topic: str, count: int) -> list[Record]:
    consumer = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False, consumer_timeout_ms=10_000)
    places = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    found: list[Record] = []
    for one in consumer:
        found.append(Record(one.partition, one.offset, one.timestamp, False, one.key, one.value))
        if len(found) == count:
            break
    consumer.close()
    return found


def test_the_example_publishes_events_that_an_updater_takes(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    with running_broker(tmp_path) as address:
        settings = load_settings({"STANDINGS_KAFKA": address})
        admin = KafkaLogAdmin(settings)
        admin.create_topics(PARTITIONS, 1)
        admin.close()
        subprocess.run(
            [sys.executable, "-c", blocks[0]], check=True, timeout=60, env={**os.environ, "STANDINGS_KAFKA": address}
        )
        records = read_records(address, settings.names.events, 2)
    registry = Registry(OneLeaderboard())  # type: ignore[arg-type]
    registry.reread()
    decoded = {
        json.loads(one.record.value or b"")["match_id"]: one for one in Decoder(registry, 0, now_ms).decode(records)
    }
    assert decoded.keys() == {"cup-final-7", "training-1"}
    match, score = decoded["cup-final-7"].outcome, decoded["training-1"].outcome
    assert getattr(match, "results", match) == (("zed", 10), ("amy", 7))
    assert getattr(score, "results", score) == (("bo", 12),)
