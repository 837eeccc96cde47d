"""A log as the contract tests see it: in memory, on the embedded broker, on a real Apache Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import MemberToRemove

from schemas.keys import Names
from schemas.settings import Settings, load_settings
from stores.clock import now_ms
from stores.kafka_admin import KafkaLogAdmin
from stores.kafka_consumer import KafkaLogConsumer
from stores.kafka_producer import KafkaLogProducer
from stores.log import Acknowledged, LogAdmin, LogConsumer, LogProducer, LogUnavailable, Record
from tests.fakes.log import MemoryLog
from tests.fakes.log_group import MemoryLogConsumer

PARTITIONS = 4
PATIENCE_S = 25.0


class LogSide(Protocol):
    """A log with topics of this test's own, and what can be done to it."""

    names: Names

    def consumer(self, log_id: str | None = None) -> LogConsumer:
        """A member of the group of this log (by default the present one)."""

    def producer(self, max_in_flight: int = 10_000) -> LogProducer:
        """A producer."""

    def admin(self) -> LogAdmin:
        """An admin."""

    def expel(self, consumer: LogConsumer) -> None:
        """The broker takes the consumer for dead, and tells it nothing."""

    def recreate_topic(self, partitions: int) -> None:
        """The topic of events is deleted and made anew."""

    def delete_topic(self) -> None:
        """The topic of events is deleted."""

    def advance_start(self, partition: int, offset: int) -> None:
        """Records below are gone."""

    def write_transaction(self, key: bytes, value: bytes, *, commit: bool) -> None:
        """A record in a transaction, which leaves a marker behind it; no reader sees an aborted one."""


@dataclass
class MemorySide:
    """The fake."""

    names: Names = field(default_factory=lambda: Names(f"t{uuid4().hex[:12]}"))

    def __post_init__(self) -> None:
        self.log = MemoryLog(self.names, now_ms, idle=lambda wait_s: time.sleep(min(wait_s, 0.001)))

    def consumer(self, log_id: str | None = None) -> LogConsumer:
        return self.log.consumer(log_id or described(self))

    def producer(self, max_in_flight: int = 10_000) -> LogProducer:
        return self.log.producer(max_in_flight)

    def admin(self) -> LogAdmin:
        return self.log.admin()

    def expel(self, consumer: LogConsumer) -> None:
        assert isinstance(consumer, MemoryLogConsumer)
        consumer.vanish()

    def recreate_topic(self, partitions: int) -> None:
        self.log.recreate_topic(partitions)

    def delete_topic(self) -> None:
        self.log.delete_topic()

    def advance_start(self, partition: int, offset: int) -> None:
        self.log.advance_start(partition, offset)

    def write_transaction(self, key: bytes, value: bytes, *, commit: bool) -> None:
        acknowledged = self.log.append(key, value)
        if not commit:
            self.log.topics[self.names.events].partitions[acknowledged.partition].records.pop()
        self.log.leave_gap(acknowledged.partition)


class KafkaSide:
    """A broker, with all that was opened on it."""

    def __init__(self, bootstrap: str, session_timeout_ms: int) -> None:
        self.names = Names(f"t{uuid4().hex[:12]}")
        self._bootstrap = bootstrap
        self._session_timeout_ms = session_timeout_ms
        self._opened = ExitStack()

    def settings(self, **more: Any) -> Settings:
        values = {
            "STANDINGS_KAFKA": self._bootstrap,
            "STANDINGS_PREFIX": self.names.prefix,
            "STANDINGS_KAFKA_SESSION_TIMEOUT_MS": str(self._session_timeout_ms),
        }
        return load_settings(values | more)

    def close(self) -> None:
        """End all that was opened."""
        self._opened.close()

    def forget(self) -> None:
        """End all that was opened on brokers that are dead, whatever that raises."""
        opened = self._opened.pop_all()
        with suppress(LogUnavailable):
            opened.close()

    def consumer(self, log_id: str | None = None) -> LogConsumer:
        consumer = KafkaLogConsumer(self.settings(), log_id or described(self))
        self._opened.callback(consumer.close)
        return consumer

    def producer(self, max_in_flight: int = 10_000) -> LogProducer:
        producer = KafkaLogProducer(self.settings(STANDINGS_MAX_IN_FLIGHT=str(max_in_flight)))
        self._opened.callback(producer.close)
        return producer

    def admin(self) -> LogAdmin:
        admin = KafkaLogAdmin(self.settings())
        self._opened.callback(admin.close)
        return admin

    def expel(self, consumer: LogConsumer) -> None:
        assert isinstance(consumer, KafkaLogConsumer)
        member = MemberToRemove(member_id=consumer._consumer._coordinator._generation.member_id)
        with closing(KafkaAdminClient(bootstrap_servers=self._bootstrap)) as client:
            answers = client.remove_group_members(self.names.group(described(self)), [member])
        assert [str(getattr(one, "__name__", one)) for one in answers.values()] == ["NoError"]

    def recreate_topic(self, partitions: int) -> None:
        self.delete_topic()
        admin = self.admin()
        wait_until(lambda: admin.describe() is None)
        admin.create_topics(partitions, 1)

    def delete_topic(self) -> None:
        with closing(KafkaAdminClient(bootstrap_servers=self._bootstrap)) as client:
            client.delete_topics([self.names.events])

    def advance_start(self, partition: int, offset: int) -> None:
        with closing(KafkaAdminClient(bootstrap_servers=self._bootstrap)) as client:
            client.delete_records({TopicPartition(self.names.events, partition): offset})

    def write_transaction(self, key: bytes, value: bytes, *, commit: bool) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, transactional_id=uuid4().hex, acks="all")
        with closing(producer):
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(self.names.events, value, key=key).get(10)
            producer.commit_transaction() if commit else producer.abort_transaction()


def described(side: LogSide) -> str:
    """The id of the present log."""
    found = side.admin().describe()
    assert found is not None
    return found.log_id


def wait_until(condition: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Return once it holds; fail when the time runs out."""
    give_up_at = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < give_up_at, "not in time"
        time.sleep(0.01)


def join(*consumers: LogConsumer, partitions: int = PARTITIONS) -> None:
    """Poll each in a thread of its own, records unread, until they share all partitions among each other.

    kafka-python drops the answer to a join that comes while nobody polls, and asks anew: polled in turns by one
    thread, two consumers could go on like that for ever.
    """
    give_up_at = time.monotonic() + PATIENCE_S

    def are_sharing() -> bool:
        shares = [consumer.assignment() for consumer in consumers]
        return all(shares) and sorted(one for share in shares for one in share) == list(range(partitions))

    def poll(consumer: LogConsumer) -> None:
        while not are_sharing() and time.monotonic() < give_up_at:
            for record in consumer.poll(200, 1):
                consumer.seek(record.partition, record.offset)

    with ThreadPoolExecutor(len(consumers)) as pool:
        list(pool.map(poll, consumers))
    assert are_sharing(), "not in time"


def read(consumer: LogConsumer, count: int, max_records: int = 500) -> list[Record]:
    """At least so many records, and none behind them: polls go on a little."""
    found: list[Record] = []

    def has_all() -> bool:
        found.extend(consumer.poll(50, max_records))
        return len(found) >= count

    wait_until(has_all)
    found.extend(consumer.poll(100, max_records))
    return found


def send(side: LogSide, *letters: tuple[bytes, bytes]) -> list[Acknowledged]:
    """Records in the topic of events, acknowledged."""
    producer = side.producer()
    waiting = [producer.send(side.names.events, key, value) for key, value in letters]
    return [one.result(10) for one in waiting]


def values(records: Sequence[Record]) -> dict[int, list[bytes | None]]:
    """What was read, by partition, in order."""
    found: dict[int, list[bytes | None]] = {}
    for record in records:
        found.setdefault(record.partition, []).append(record.value)
    return found
