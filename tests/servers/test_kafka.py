"""The harness itself: if it did not keep records across a crash, tests on it would prove nothing."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic

from tests.servers.kafka import Kafka, running_kafka
from tests.servers.missing import Missing, skip_or_fail

pytestmark = pytest.mark.kafka


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[Kafka]:
    try:
        with running_kafka(tmp_path / "kafka") as running:
            yield running
    except Missing as missing:
        skip_or_fail(missing)


def test_records_survive_kill_and_stop(kafka: Kafka) -> None:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.create_topics([NewTopic("letters", num_partitions=1, replication_factor=1)])
    admin.close()
    produce(kafka, b"before")

    kafka.kill()
    kafka.start()
    produce(kafka, b"after")
    assert consume(kafka, count=2) == [b"before", b"after"]

    kafka.stop()
    kafka.start()
    assert consume(kafka, count=2) == [b"before", b"after"]


def test_the_last_word_on_settings_is_the_callers(tmp_path: Path) -> None:
    try:
        with running_kafka(tmp_path, settings={"node.id": "7", "auto.create.topics.enable": "true"}) as kafka:
            produce(kafka, b"x")
            assert consume(kafka, count=1) == [b"x"]
    except Missing as missing:
        skip_or_fail(missing)


def produce(kafka: Kafka, value: bytes) -> None:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, acks="all")
    producer.send("letters", value).get(timeout=20)
    producer.close()


def consume(kafka: Kafka, count: int) -> list[bytes]:
    consumer = KafkaConsumer(
        "letters", bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    values = [record.value for record in islice(consumer, count)]
    consumer.close()
    return values
