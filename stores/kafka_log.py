"""The log on Kafka, by kafka-python: every setting that a promise hangs on is passed explicitly."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import (
    CommitFailedError,
    IllegalGenerationError,
    KafkaError,
    MessageSizeTooLargeError,
    RebalanceInProgressError,
    RecordListTooLargeError,
    TopicAlreadyExistsError,
    UnknownMemberIdError,
)
from kafka.structs import OffsetAndMetadata

from schemas.keys import Names
from schemas.settings import Settings
from stores.kafka_clients import open_client
from stores.log import Acknowledged, Committed, LogDescription, LogUnavailable, Record, RecordTooLarge

_LATEST = -1
_EARLIEST = -2
_READ_COMMITTED = 1
_APPEND_TIME = 1
_NO_TOPIC = uuid.UUID(int=0)
_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)
_PROBE_MS = 300
_SAFE_REPLICATION = 3
_MAX_RECORD_BYTES = 2 * 1024 * 1024
REQUEST_TIMEOUT_MS = 5_000


def kafka_options(settings: Settings) -> dict[str, Any]:
    """What every client needs to reach the brokers."""
    options: dict[str, Any] = {
        "bootstrap_servers": settings.kafka.split(","),
        "security_protocol": settings.kafka_security_protocol,
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "bootstrap_timeout_ms": REQUEST_TIMEOUT_MS,
        "reconnect_backoff_max_ms": 1_000,
    }
    if settings.kafka_ca_file is not None:
        options["ssl_cafile"] = str(settings.kafka_ca_file)
    if settings.kafka_sasl_mechanism is not None:
        options["sasl_mechanism"] = settings.kafka_sasl_mechanism
        options["sasl_plain_username"] = settings.kafka_username
        password = settings.kafka_password
        options["sasl_plain_password"] = None if password is None else password.get_secret_value()
    return options


@contextmanager
def log_errors(what: str, *, accepted: bool | None = None) -> Iterator[None]:
    """Turns whatever kafka-python raises into LogUnavailable, keeping the cause."""
    try:
        yield
    except _TOO_LARGE as error:
        raise RecordTooLarge(f"Kafka did not {what}: {error}") from error
    except (KafkaError, OSError, RuntimeError) as error:
        raise LogUnavailable(f"Kafka did not {what}: {type(error).__name__}: {error}", accepted=accepted) from error


class _Rebalances(ConsumerRebalanceListener):  # type: ignore[misc]
    """Counts them. Nothing is committed here: kafka-python's commit() raises inside a listener."""

    def __init__(self) -> None:
        self.count = 0

    def on_partitions_revoked(self, _revoked: Any) -> None:
        self.count += 1

    def on_partitions_assigned(self, _assigned: Any) -> None:
        self.count += 1


class KafkaLogConsumer:
    """See LogConsumer. The group is named by the topic's id."""

    def __init__(self, settings: Settings, log_id: str) -> None:
        self._topic = settings.names.events
        self._rebalances = _Rebalances()
        session_ms = settings.kafka_session_timeout_ms
        with log_errors("connect a consumer"):
            self._consumer = open_client(KafkaConsumer, kafka_options(settings) | {
                "group_id": settings.names.group(log_id),
                "enable_auto_commit": False,
                "auto_offset_reset": "earliest",
                "isolation_level": "read_committed",
                "allow_auto_create_topics": False,
                "session_timeout_ms": session_ms,
                "heartbeat_interval_ms": max(session_ms // 10, 200),
                "fetch_max_wait_ms": 100,
                # In an incremental session a broker keeps silent on partitions that have nothing new. What it had
                # said of an empty one, kafka-python forgets at a rebalance: no mark to compare with, ever again.
                "enable_incremental_fetch_sessions": False,
                # Until a new partition is met, nobody can tell up to when the boards are complete.
                "metadata_max_age_ms": 2_000,
            })  # fmt: skip
            self._consumer.subscribe([self._topic], listener=self._rebalances)
        self._paused = False

    def poll(self, timeout_ms: int, max_records: int) -> list[Record]:
        before = self._rebalances.count
        with log_errors("return records"):
            found = self._consumer.poll(timeout_ms=timeout_ms, max_records=max_records)
        self._insist_on_rejoining()
        if self._rebalances.count != before:
            # What came along was fetched for an assignment that has changed: it is fetched again.
            for partition, records in found.items():
                if records and partition in self._consumer.assignment():
                    self.seek(partition.partition, records[0].offset)
            if self._paused:
                self.pause()
            return []
        return [_record(one) for records in found.values() for one in records]

    def _insist_on_rejoining(self) -> None:
        """Keeps kafka-python 3.0.12 from forgetting a rebalance that outlasts the poll that began it.

        Where new metadata asked for it (partitions were added, or the topic was not known yet at the first
        join), the answer that arrives between two polls makes it believe that all is done: without
        partitions, without heartbeats, for ever.
        """
        coordinator = self._consumer._coordinator  # noqa: SLF001
        if coordinator.rejoining:
            coordinator.request_rejoin()

    @property
    def generation(self) -> int:
        return self._rebalances.count

    def assignment(self) -> frozenset[int]:
        return frozenset(one.partition for one in self._consumer.assignment())

    def position(self, partition: int) -> int:
        with log_errors("tell a position"):
            found = self._consumer.position(self._at(partition), timeout_ms=REQUEST_TIMEOUT_MS)
        if found is None:
            raise LogUnavailable(f"Kafka did not tell the position in partition {partition}")
        return int(found)

    def committed(self, partition: int) -> int | None:
        with log_errors("tell what is committed"):
            found = self._consumer.committed(self._at(partition), timeout_ms=REQUEST_TIMEOUT_MS)
        return None if found is None else int(found)

    def seek(self, partition: int, offset: int) -> None:
        with log_errors("seek"):
            self._consumer.seek(self._at(partition), offset)

    def pause(self) -> None:
        self._paused = True
        with log_errors("pause"):
            self._consumer.pause(*self._consumer.assignment())

    def resume(self) -> None:
        self._paused = False
        with log_errors("resume"):
            self._consumer.resume(*self._consumer.paused())
        # kafka-python 3.0.12 puts what it had fetched of a paused partition aside, and may neither hand it over
        # afterwards nor fetch it again (it waits for a reader that is done to be None). So it is fetched anew.
        fetcher = self._consumer._fetcher  # noqa: SLF001
        fetcher._paused_partition_records = {}  # noqa: SLF001
        fetcher._paused_completed_fetches = {}  # noqa: SLF001

    def commit(self, offsets: Mapping[int, Committed]) -> bool:
        wanted = {
            self._at(partition): OffsetAndMetadata(one.offset, "" if one.as_of is None else str(one.as_of), -1)
            for partition, one in offsets.items()
        }
        try:
            with log_errors("commit"):
                self._consumer.commit(wanted, timeout_ms=REQUEST_TIMEOUT_MS)
        except LogUnavailable as error:
            gone = (CommitFailedError, IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError)
            if isinstance(error.__cause__, gone):
                return False
            raise
        return True

    def log_start(self, partition: int) -> int:
        with log_errors("tell the log's start"):
            at = self._at(partition)
            return int(self._consumer.beginning_offsets([at], timeout_ms=REQUEST_TIMEOUT_MS)[at])

    def caught_up(self, positions: Mapping[int, int]) -> frozenset[int]:
        # Some brokers give an end that is too low after batches, so that the high watermark of the last
        # fetch has to agree.
        asked = {self._at(partition): position for partition, position in positions.items()}
        with log_errors("tell the log's ends"):
            ends = self._consumer.end_offsets(list(asked), timeout_ms=REQUEST_TIMEOUT_MS)
            marks = {at: self._consumer.highwater(at) for at in asked}
        return frozenset(
            at.partition
            for at, position in asked.items()
            if ends.get(at) is not None and ends[at] <= position and marks[at] is not None and marks[at] <= position
        )

    def close(self) -> None:
        with log_errors("leave the group"):
            self._consumer.close(autocommit=False, timeout_ms=REQUEST_TIMEOUT_MS)

    def _at(self, partition: int) -> Any:
        return TopicPartition(self._topic, partition)


class KafkaLogProducer:
    """See LogProducer. kafka-python's own buffer has no bound, so this one counts what is in flight."""

    def __init__(self, settings: Settings) -> None:
        self._limit = settings.max_in_flight
        self._in_flight = 0
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._make: Callable[[], Any] = lambda: open_client(KafkaProducer, kafka_options(settings) | {
            "acks": "all",
            "enable_idempotence": True,
            "retries": 2**31 - 1,
            "max_in_flight_requests_per_connection": 5,
            "delivery_timeout_ms": 2 * REQUEST_TIMEOUT_MS,
            "max_block_ms": REQUEST_TIMEOUT_MS,
            "linger_ms": 2,
            "max_request_size": _MAX_RECORD_BYTES,
            "batch_size": 131_072,
            "allow_auto_create_topics": False,
        })  # fmt: skip
        self._producer: Any = None

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes,
        timestamp: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Future[Acknowledged]:
        with self._lock:
            if self._in_flight >= self._limit:
                raise LogUnavailable(f"{self._limit} records are in flight already", accepted=False)
            self._in_flight += 1
        done: Future[Acknowledged] = Future()
        try:
            with log_errors("take a record", accepted=False):
                producer = self._connected()
                sending = producer.send(topic, value, key=key, timestamp_ms=timestamp, headers=list(headers))
        except LogUnavailable:
            self._finished()
            raise
        sending.add_callback(self._succeed, done)
        sending.add_errback(self._fail, producer, done)
        return done

    def close(self) -> None:
        if self._producer is not None:
            _close(self._producer)

    def _connected(self) -> Any:
        with self._opening:
            if self._producer is None:
                self._producer = self._make()
            return self._producer

    def _succeed(self, done: Future[Acknowledged], metadata: Any) -> None:
        self._finished()
        done.set_result(Acknowledged(metadata.partition, metadata.offset, metadata.timestamp))

    def _fail(self, producer: Any, done: Future[Acknowledged], error: BaseException) -> None:
        self._finished()
        unavailable: LogUnavailable
        if isinstance(error, _TOO_LARGE):
            unavailable = RecordTooLarge(f"Kafka did not acknowledge: {error}")
        else:
            self._replace(producer)
            unavailable = LogUnavailable(f"Kafka did not acknowledge: {error}", accepted=None)
        unavailable.__cause__ = error
        done.set_exception(unavailable)

    def _replace(self, producer: Any) -> None:
        """The next record gets a new producer: an idempotent one that the brokers no longer know fails for ever."""
        with self._lock:
            if self._producer is not producer:
                return
            self._producer = None
        # This is the producer's own thread, and closing waits for it.
        threading.Thread(target=_close, args=(producer,), name="producer-close", daemon=True).start()

    def _finished(self) -> None:
        with self._lock:
            self._in_flight -= 1


def _close(producer: Any) -> None:
    with log_errors("close the producer"):
        producer.close(timeout=REQUEST_TIMEOUT_MS / 1000)


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
        dead_letters = {"max.message.bytes": str(_MAX_RECORD_BYTES)}
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


def is_drained(settings: Settings) -> bool:
    """True when the group has committed all that the topic of events holds."""
    admin = KafkaLogAdmin(settings)
    try:
        found = admin.describe()
        if found is None:
            return True
        ends, starts = admin.log_ends(found.partitions), admin.log_starts(found.partitions)
        committed = admin.committed(found.log_id)
        done = {one: committed[one].offset if one in committed else start for one, start in starts.items()}
        return all(done[one] >= end for one, end in ends.items())
    finally:
        admin.close()


def _record(one: Any) -> Record:
    return Record(one.partition, one.offset, one.timestamp, one.timestamp_type == _APPEND_TIME, one.key, one.value)
