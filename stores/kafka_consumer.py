"""Reading the log on Kafka: every setting that a promise hangs on is passed explicitly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.errors import CommitFailedError, IllegalGenerationError, RebalanceInProgressError, UnknownMemberIdError
from kafka.structs import OffsetAndMetadata

from schemas.settings import Settings
from stores.kafka_clients import REQUEST_TIMEOUT_MS, kafka_options, log_errors, open_client
from stores.log import Committed, LogUnavailable, Record

_APPEND_TIME = 1


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


def _record(one: Any) -> Record:
    return Record(one.partition, one.offset, one.timestamp, one.timestamp_type == _APPEND_TIME, one.key, one.value)
