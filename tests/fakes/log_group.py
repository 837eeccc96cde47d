"""Consumer groups of the log in memory: generations, eager rebalances, committed offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stores.log import Committed, LogUnavailable, Record

if TYPE_CHECKING:
    from tests.fakes.log import MemoryLog, Partition


@dataclass
class Group:
    """A group's members in the order they joined, what they own, and what they committed.

    In a rebalance all members give up what they own, each at its next poll, and get their new share when the
    last of them has: until then the old generation may still commit.
    """

    members: list[MemoryLogConsumer] = field(default_factory=list)
    rejoined: list[MemoryLogConsumer] = field(default_factory=list)
    is_rebalancing: bool = False
    generation: int = 0
    partitions: int = 0
    shares: dict[int, frozenset[int]] = field(default_factory=dict)
    committed: dict[int, Committed] = field(default_factory=dict)

    def begin_rebalance(self) -> None:
        """All members have to join again."""
        self.is_rebalancing = True
        self.rejoined.clear()

    def finish_rebalance(self, partitions: int) -> None:
        """A new generation, with the partitions dealt out in ranges."""
        self.is_rebalancing = False
        self.generation += 1
        self.partitions = partitions
        each, more = divmod(partitions, len(self.members))
        first = 0
        for number, member in enumerate(self.members):
            count = each + (number < more)
            self.shares[id(member)] = frozenset(range(first, first + count))
            first += count

    def drop(self, member: MemoryLogConsumer) -> None:
        """A member has left or was declared dead; the others share what it had."""
        if member in self.members:
            self.members.remove(member)
            self.begin_rebalance()


class MemoryLogConsumer:
    """See LogConsumer."""

    def __init__(self, log: MemoryLog, group: Group) -> None:
        self._log = log
        self._group = group
        self._joined: int | None = None
        self._changes = 0
        self._owned: frozenset[int] = frozenset()
        self._positions: dict[int, int] = {}
        self._marks: dict[int, int] = {}
        self._paused = False
        self._closed = False
        self._turn = 0

    def vanish(self) -> None:
        """What a killed process, or one that was stopped too long, looks like to the others; it may wake up again."""
        with self._log.lock:
            self._group.drop(self)

    def poll(self, timeout_ms: int, max_records: int) -> list[Record]:
        with self._log.lock:
            if self._closed:
                raise LogUnavailable("the consumer is closed")
            # kafka-python's poll of dead brokers returns nothing and raises nothing.
            changed = self._log.available and self._follow_rebalance()
            found = self._fetch(max_records) if self._log.available and not changed else []
        if not found:
            self._log.idle(timeout_ms / 1_000)
        return found

    @property
    def generation(self) -> int:
        return self._changes

    def assignment(self) -> frozenset[int]:
        return self._owned

    def position(self, partition: int) -> int:
        with self._log.lock:
            self._check_owned(partition)
            if partition not in self._positions:
                start = self._log.events(partition).start
                known = self._group.committed.get(partition)
                self._positions[partition] = start if known is None else max(known.offset, start)
            return self._positions[partition]

    def committed(self, partition: int) -> int | None:
        self._log.check_available()
        found = self._group.committed.get(partition)
        return None if found is None else found.offset

    def seek(self, partition: int, offset: int) -> None:
        self._check_owned(partition)
        self._positions[partition] = offset

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False

    def commit(self, offsets: Mapping[int, Committed]) -> bool:
        self._log.check_available()
        with self._log.lock:
            if self not in self._group.members or self._joined != self._group.generation:
                return False
            self._group.committed.update(offsets)
            return True

    def log_start(self, partition: int) -> int:
        with self._log.lock:
            return self._log.events(partition).start

    def caught_up(self, positions: Mapping[int, int]) -> frozenset[int]:
        with self._log.lock:
            ends = {partition: self._log.events(partition).end for partition in positions}
        return frozenset(
            partition
            for partition, position in positions.items()
            if ends[partition] <= position and self._marks.get(partition, position + 1) <= position
        )

    def close(self) -> None:
        with self._log.lock:
            self._closed = True
            self._group.drop(self)

    def _check_owned(self, partition: int) -> None:
        if partition not in self._owned:
            raise LogUnavailable(f"partition {partition} is not this consumer's")

    def _follow_rebalance(self) -> bool:
        """Join, join again or take the new share, as far as this poll gets; True where something changed or is to."""
        group = self._group
        topic = self._log.topics.get(self._log.names.events)
        partitions = 0 if topic is None else len(topic.partitions)
        if self not in group.members:
            group.members.append(self)
            group.begin_rebalance()
        elif not group.is_rebalancing and partitions not in (0, group.partitions):
            group.begin_rebalance()
        if group.is_rebalancing and self not in group.rejoined:
            self._take(frozenset(), None)
            group.rejoined.append(self)
        if group.is_rebalancing and all(member in group.rejoined for member in group.members):
            group.finish_rebalance(partitions)
        if group.is_rebalancing:
            return True
        if self._joined != group.generation:
            self._take(group.shares[id(self)], group.generation)
            return True
        return False

    def _take(self, share: frozenset[int], generation: int | None) -> None:
        self._joined = generation
        self._owned = share
        self._positions.clear()
        self._marks.clear()
        self._changes += 1

    def _fetch(self, max_records: int) -> list[Record]:
        found: list[Record] = []
        if self._paused or self._log.names.events not in self._log.topics:
            return found
        self._turn += 1
        # Which partition comes first changes from poll to poll, so that none starves.
        order = sorted(self._owned, key=lambda partition: (partition + self._turn) % max(len(self._owned), 1))
        for number in order:
            partition = self._log.events(number)
            # Records below the start are gone, and a consumer starts over at what is left.
            position = max(self.position(number), partition.start)
            found += self._fetch_partition(number, partition, position, max_records - len(found))
        return found

    def _fetch_partition(self, number: int, partition: Partition, position: int, most: int) -> list[Record]:
        if most <= 0:
            return []
        self._marks[number] = partition.end
        kept = partition.from_offset(position, most)
        # Behind the last record that there is, gaps are passed; a position past the end stays where it is.
        is_last = len(kept) < most
        self._positions[number] = max(position, partition.end) if is_last else kept[-1].offset + 1
        return [Record(number, one.offset, one.timestamp, one.appended, one.key, one.value) for one in kept]
