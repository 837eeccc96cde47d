"""The log in memory: topics, groups, and the ways in which a real one surprises, behind stores/log.py.

What is modelled on purpose: offsets with gaps, a log that lost its start, a topic made anew (whose consumers
silently skip, as kafka-python's do), eager rebalances that take several polls, acknowledgements that come late or
never, and silence: a broker that is away makes polls empty, not failing.
"""

from __future__ import annotations

import threading
import uuid
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from kafka.partitioner.default import murmur2

from schemas.keys import Names
from stores.log import Acknowledged, Committed, LogDescription, LogUnavailable
from tests.fakes.log_group import Group, MemoryLogConsumer

Header = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Kept:
    """A record as the log keeps it. `appended`: the timestamp (epoch ms) is the log's own."""

    offset: int
    key: bytes | None
    value: bytes
    timestamp: int
    appended: bool
    headers: tuple[Header, ...] = ()


@dataclass
class Partition:
    """Records by offset; `end` is the next offset, which gaps move as well."""

    start: int = 0
    end: int = 0
    records: list[Kept] = field(default_factory=list)

    def from_offset(self, offset: int, most: int) -> list[Kept]:
        """At most so many records that stand at or after the offset."""
        at = bisect_left(self.records, offset, key=lambda one: one.offset)
        return self.records[at : at + most]


@dataclass
class Topic:
    """A topic under its id, which is another one after the topic was made anew."""

    partitions: list[Partition]
    append_time: bool
    topic_id: str = field(default_factory=lambda: str(uuid.uuid4()))


class MemoryLog:
    """All of a cluster that Standings sees, safe to share between threads.

    `clock`: epoch ms. `append_time`: whether the topic of events has the log's own times, as on Kafka. `idle` is
    called with the seconds that a poll without records may wait.
    """

    def __init__(
        self,
        names: Names,
        clock: Callable[[], int],
        *,
        append_time: bool = True,
        idle: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.names = names
        self.lock = threading.RLock()
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.available = True
        self.idle = idle
        self._clock = clock
        self._append_time = append_time
        self._lost_acknowledgements = 0
        self._held: list[tuple[Future[Acknowledged], Acknowledged]] | None = None
        self._unkeyed = 0

    # ------------------------------------------------------------------ clients

    def admin(self) -> MemoryLogAdmin:
        return MemoryLogAdmin(self)

    def producer(self, max_in_flight: int = 10_000) -> MemoryLogProducer:
        return MemoryLogProducer(self, max_in_flight)

    def consumer(self, log_id: str) -> MemoryLogConsumer:
        """A member of the log's group; it joins by its first poll."""
        self.check_available()
        with self.lock:
            group = self.groups.setdefault(self.names.group(log_id), Group())
        return MemoryLogConsumer(self, group)

    # ------------------------------------------------------------------ what a test does to it

    def create_topic(self, name: str, partitions: int, *, append_time: bool) -> None:
        """The topic, empty; LogUnavailable where it is there already."""
        with self.lock:
            if name in self.topics:
                raise LogUnavailable(f"{name} is there already")
            self.topics[name] = Topic([Partition() for _ in range(partitions)], append_time)

    def delete_topic(self) -> None:
        """The topic of events goes, with all records; the groups stay."""
        with self.lock:
            del self.topics[self.names.events]

    def recreate_topic(self, partitions: int) -> None:
        """The topic of events is made anew: empty, under another id."""
        with self.lock:
            self.delete_topic()
            self.create_topic(self.names.events, partitions, append_time=self._append_time)

    def add_partitions(self, partitions: int) -> None:
        """The topic of events now has so many partitions."""
        with self.lock:
            there = self.topics[self.names.events].partitions
            there += [Partition() for _ in range(partitions - len(there))]

    def leave_gap(self, partition: int, offsets: int = 1) -> None:
        """Offsets that no reader ever sees, as a transaction's markers or an aborted one leave them."""
        with self.lock:
            self.events(partition).end += offsets

    def advance_start(self, partition: int, offset: int) -> None:
        """Retention takes all records below the offset."""
        with self.lock:
            kept = self.events(partition)
            kept.start = max(kept.start, offset)
            kept.records = [one for one in kept.records if one.offset >= kept.start]

    def hold_acknowledgements(self) -> None:
        """Records are appended, and their senders hear nothing until `release_acknowledgements`."""
        self._held = []

    def release_acknowledgements(self) -> None:
        """Whoever waits is told."""
        held, self._held = self._held or [], None
        for done, acknowledged in held:
            done.set_result(acknowledged)

    def lose_acknowledgements(self, times: int = 1) -> None:
        """The next records are appended, and their senders get LogUnavailable(accepted=None)."""
        self._lost_acknowledgements += times

    def append(
        self,
        key: bytes | None,
        value: bytes,
        *,
        topic: str | None = None,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
    ) -> Acknowledged:
        """Append a record (to the topic of events) as any producer would; the partition follows from the key."""
        with self.lock:
            found = self.topics.get(topic or self.names.events)
            if found is None:
                raise LogUnavailable(f"there is no topic {topic}", accepted=False)
            number = self._partition_of(key, len(found.partitions))
            partition = found.partitions[number]
            at = self._clock() if found.append_time or timestamp is None else timestamp
            partition.records.append(Kept(partition.end, key, value, at, found.append_time, tuple(headers)))
            partition.end += 1
            return Acknowledged(number, partition.end - 1, at)

    def records(self, topic: str | None = None) -> list[Kept]:
        """All records of a topic (that of events), partition after partition."""
        with self.lock:
            return [one for part in self.topics[topic or self.names.events].partitions for one in part.records]

    # ------------------------------------------------------------------ what its clients ask

    def events(self, partition: int) -> Partition:
        """A partition of the topic of events; LogUnavailable where there is none."""
        self.check_available()
        topic = self.topics.get(self.names.events)
        if topic is None or not 0 <= partition < len(topic.partitions):
            raise LogUnavailable(f"the log has no partition {partition}")
        return topic.partitions[partition]

    def check_available(self) -> None:
        """Raises LogUnavailable while the brokers are away."""
        if not self.available:
            raise LogUnavailable("the log is away")

    def deliver(self, done: Future[Acknowledged], acknowledged: Acknowledged) -> None:
        """Tell a sender, now, later or never."""
        if self._lost_acknowledgements:
            self._lost_acknowledgements -= 1
            done.set_exception(LogUnavailable("the acknowledgement was lost"))
        elif self._held is not None:
            self._held.append((done, acknowledged))
        else:
            done.set_result(acknowledged)

    def _partition_of(self, key: bytes | None, partitions: int) -> int:
        if key is None:
            self._unkeyed += 1
            return self._unkeyed % partitions
        return int(murmur2(key) & 0x7FFFFFFF) % partitions


class MemoryLogProducer:
    """See LogProducer."""

    def __init__(self, log: MemoryLog, max_in_flight: int) -> None:
        self._log = log
        self._limit = max_in_flight
        self._in_flight = 0
        self._closed = False

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes,
        timestamp: int | None = None,
        headers: Sequence[Header] = (),
    ) -> Future[Acknowledged]:
        done: Future[Acknowledged] = Future()
        with self._log.lock:
            if self._closed:
                raise LogUnavailable("the producer is closed", accepted=False)
            if self._in_flight >= self._limit:
                raise LogUnavailable(f"{self._limit} records are in flight already", accepted=False)
            if not self._log.available:
                done.set_exception(LogUnavailable("the log is away"))
                return done
            acknowledged = self._log.append(key, value, topic=topic, timestamp=timestamp, headers=headers)
            self._in_flight += 1
        done.add_done_callback(self._finished)
        self._log.deliver(done, acknowledged)
        return done

    def close(self) -> None:
        self._closed = True

    def _finished(self, _: Future[Acknowledged]) -> None:
        with self._log.lock:
            self._in_flight -= 1


class MemoryLogAdmin:
    """See LogAdmin."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def describe(self) -> LogDescription | None:
        self._log.check_available()
        with self._log.lock:
            topic = self._log.topics.get(self._log.names.events)
            return None if topic is None else LogDescription(topic.topic_id, len(topic.partitions))

    def committed(self, log_id: str) -> dict[int, Committed]:
        self._log.check_available()
        with self._log.lock:
            group = self._log.groups.get(self._log.names.group(log_id))
            return {} if group is None else dict(group.committed)

    def log_starts(self, partitions: int) -> dict[int, int]:
        with self._log.lock:
            return {partition: self._log.events(partition).start for partition in range(partitions)}

    def log_ends(self, partitions: int) -> dict[int, int]:
        with self._log.lock:
            return {partition: self._log.events(partition).end for partition in range(partitions)}

    def create_topics(self, partitions: int, replication: int) -> None:
        self._log.check_available()
        assert replication >= 1
        names = self._log.names
        with self._log.lock:
            for name, count in ((names.events, partitions), (names.dead_letters, 1)):
                if name not in self._log.topics:
                    append_time = name == names.events and self._log._append_time
                    self._log.create_topic(name, count, append_time=append_time)

    def add_partitions(self, partitions: int, *, only_ask: bool = False) -> None:
        self._log.check_available()
        there = self.describe()
        if there is None or partitions <= there.partitions:
            raise LogUnavailable(f"{there} can't get {partitions} partitions")
        if only_ask:
            return
        self._log.add_partitions(partitions)

    def rewind_group(self, log_id: str, offsets: Mapping[int, int]) -> None:
        self._log.check_available()
        with self._log.lock:
            group = self._log.groups.setdefault(self._log.names.group(log_id), Group())
            if group.members:
                raise LogUnavailable("the group has members")
            group.committed.update({partition: Committed(offset, None) for partition, offset in offsets.items()})

    def close(self) -> None:
        """Nothing is open."""
