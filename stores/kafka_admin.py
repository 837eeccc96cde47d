"""Looking at the log on Kafka and its group, and changing them: topics, partitions, offsets."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

from schemas.keys import Names
from schemas.settings import Settings
from stores.kafka_clients import MAX_RECORD_BYTES, kafka_options, log_errors, open_client
from stores.log import Committed, LogDescription, LogUnavailable

_LATEST = -1
_EARLIEST = -2
_READ_COMMITTED = 1
_NO_TOPIC = uuid.UUID(int=0)
_PROBE_MS = 300
_SAFE_REPLICATION = 3


class KafkaLogAdmin:
    """See LogAdmin. Connects when first asked, and anew after a failure."""

    def __init__(self, settings: Settings) -> None:
        self._names: Names = settings.names
        self._options = kafka_options(settings)
        self._make: Callable[[], Any] = lambda: open_client(KafkaAdminClient, kafka_options(settings))
        self._client: Any = None

    def describe(self) -> LogDescription | None:
        with self._asking("describe the topic") as client:
            found = client.describe_topics([self._names.events])
        topic = next((one for one in found if one["name"] == self._names.events), None)
        if topic is None or topic.get("error_code") or topic.get("topic_id") in (None, _NO_TOPIC):
            return None
        return LogDescription(str(topic["topic_id"]), len(topic["partitions"]))

    def committed(self, log_id: str) -> dict[int, Committed]:
        group = self._names.group(log_id)
        with self._asking("tell what is committed") as client:
            found = client.list_group_offsets(group).get(group, {})
        return {
            at.partition: Committed(one.offset, int(one.metadata) if (one.metadata or "").isdigit() else None)
            for at, one in found.items()
            if at.topic == self._names.events and one.offset >= 0
        }

    def log_starts(self, partitions: int) -> dict[int, int]:
        return self._offsets(partitions, _EARLIEST)

    def log_ends(self, partitions: int) -> dict[int, int]:
        ends = self._offsets(partitions, _LATEST)
        # Some brokers tell the last batch's first offset + 1: look whether records stand behind it.
        with log_errors("look for records"):
            consumer = KafkaConsumer(
                **self._options, enable_auto_commit=False, isolation_level="read_committed", fetch_max_wait_ms=50
            )
            try:
                consumer.assign([TopicPartition(self._names.events, one) for one in ends])
                for one, end in ends.items():
                    consumer.seek(TopicPartition(self._names.events, one), end)
                while found := consumer.poll(timeout_ms=_PROBE_MS):
                    ends |= {at.partition: records[-1].offset + 1 for at, records in found.items()}
            finally:
                consumer.close(autocommit=False)
        return ends

    def create_topics(self, partitions: int, replication: int) -> None:
        events = {"message.timestamp.type": "LogAppendTime"}
        if replication >= _SAFE_REPLICATION:
            events["min.insync.replicas"] = "2"  # or acks=all may mean one broker alone
        # A dead letter is the record with headers on top: it has to fit where the record just did.
        dead_letters = {"max.message.bytes": str(MAX_RECORD_BYTES)}
        wanted = {
            self._names.events: {"num_partitions": partitions, "replication_factor": replication, "configs": events},
            self._names.dead_letters: {"num_partitions": 1, "replication_factor": replication, "configs": dead_letters},
        }
        for name, options in wanted.items():
            try:
                with self._asking("create a topic") as client:
                    client.create_topics({name: options}, wait_for_metadata=True)
            except LogUnavailable as error:
                if not isinstance(error.__cause__, TopicAlreadyExistsError):
                    raise

    def add_partitions(self, partitions: int, *, only_ask: bool = False) -> None:
        with self._asking("add partitions") as client:
            client.create_partitions({self._names.events: partitions}, validate_only=only_ask)

    def rewind_group(self, log_id: str, offsets: Mapping[int, int]) -> None:
        wanted = {
            TopicPartition(self._names.events, one): OffsetAndMetadata(offset, "", -1)
            for one, offset in offsets.items()
        }
        with self._asking("rewind the group") as client:
            answers = client.alter_group_offsets(self._names.group(log_id), wanted)
        refused = sorted({str(getattr(one, "__name__", one)) for one in answers.values()} - {"NoError"})
        if refused:
            raise LogUnavailable(f"Kafka did not rewind the group ({', '.join(refused)}): stop the updaters first")

    def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            with log_errors("close the connection"):
                client.close()

    def _offsets(self, partitions: int, which: int) -> dict[int, int]:
        wanted = {TopicPartition(self._names.events, partition): which for partition in range(partitions)}
        with self._asking("tell offsets") as client:
            found = client.list_partition_offsets(wanted, isolation_level=_READ_COMMITTED)
        return {at.partition: int(one.offset) for at, one in found.items()}

    @contextmanager
    def _asking(self, what: str) -> Iterator[Any]:
        with log_errors(what):
            if self._client is None:
                self._client = self._make()
            try:
                yield self._client
            except TopicAlreadyExistsError:
                raise
            except Exception:
                client, self._client = self._client, None
                client.close()
                raise


def count_lag(admin: KafkaLogAdmin, log: LogDescription) -> int:
    """How many of the log's records its group has not committed."""
    ends, starts = admin.log_ends(log.partitions), admin.log_starts(log.partitions)
    committed = admin.committed(log.log_id)
    done = {one: committed[one].offset if one in committed else start for one, start in starts.items()}
    return sum(max(end - done[one], 0) for one, end in ends.items())


def count_unrecorded(settings: Settings) -> int:
    """How many of the records in the topic of events the group has not committed; 0 where there is no topic."""
    admin = KafkaLogAdmin(settings)
    try:
        found = admin.describe()
        return 0 if found is None else count_lag(admin, found)
    finally:
        admin.close()


def is_drained(settings: Settings) -> bool:
    """True when the group has committed all that the topic of events holds."""
    return count_unrecorded(settings) == 0
