"""Dead letters, read back: what could not be applied, why, and where it came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kafka import KafkaConsumer, TopicPartition

from schemas.settings import Settings
from stores.kafka_clients import REQUEST_TIMEOUT_MS, kafka_options, log_errors, open_client

_POLL_MS = 500

# Says of a record that was too large to be kept whole how many bytes of value it had, and their SHA-256.
SIZE, SHA256 = "standings-size", "standings-sha256"
# Headers of a dead letter.
REASON, DETAIL, TOPIC, PARTITION, OFFSET, TIMESTAMP = (
    "standings-reason", "standings-detail", "standings-topic", "standings-partition", "standings-offset",
    "standings-timestamp",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class StoredLetter:
    """A dead letter: its reason, the place of the record in the topic of events, and that record's bytes."""

    reason: str
    detail: str
    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes


def read_dead_letters(settings: Settings) -> Iterator[StoredLetter]:
    """All dead letters from the oldest to those that are there now, each record once. Raises LogUnavailable.

    An event that was replayed may have been dead-lettered again: its place in the log tells, with its time, because
    a topic that was made anew begins at the same places.
    """
    topic = settings.names.dead_letters
    with log_errors("read the dead letters"):
        consumer = open_client(
            KafkaConsumer, kafka_options(settings) | {"enable_auto_commit": False, "auto_offset_reset": "earliest"}
        )
    try:
        with log_errors("read the dead letters"):
            places = [TopicPartition(topic, one) for one in sorted(consumer.partitions_for_topic(topic) or ())]
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
        seen: set[tuple[str, int, int, int]] = set()
        while True:
            with log_errors("read the dead letters"):
                found = consumer.poll(timeout_ms=_POLL_MS)
            for record in (one for records in found.values() for one in records):
                letter = _letter(record)
                place = (letter.topic, letter.partition, letter.offset, letter.timestamp)
                if place not in seen:
                    seen.add(place)
                    yield letter
            if not found and all(_is_read(consumer, place) for place in places):
                return
    finally:
        with log_errors("close the connection"):
            consumer.close(autocommit=False, timeout_ms=REQUEST_TIMEOUT_MS)


def _is_read(consumer: Any, place: Any) -> bool:
    mark = consumer.highwater(place)
    return mark is not None and consumer.position(place) >= mark


def _letter(record: Any) -> StoredLetter:
    headers = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    return StoredLetter(
        reason=headers.get(REASON, ""),
        detail=headers.get(DETAIL, ""),
        topic=headers.get(TOPIC, ""),
        partition=int(headers.get(PARTITION, "-1")),
        offset=int(headers.get(OFFSET, str(record.offset))),
        timestamp=int(headers.get(TIMESTAMP, str(record.timestamp))),
        key=record.key,
        value=record.value or b"",
    )
