"""An updater's membership in the group of one log: polls, batches, heartbeats, rewinds, outages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from schemas.errors import StoreUnavailable
from schemas.rows import Topology
from stores.deadline import Deadline, DeadlineMissed
from stores.lanes import LaneIds, Range, topology_ids
from stores.log import LogAdmin, LogChanged, LogConsumer, Record
from stores.registry import Registry
from updater.batch import Batch, cut, ranges_of
from updater.pipeline import Pipeline
from updater.project import Projection

MAX_RECORDS = 500
POLL_MS = 100
HEARTBEAT_MS = 1_000
_FIRST_BACKOFF_MS = 100
_LONGEST_BACKOFF_MS = 3_000

log = structlog.get_logger("updater")


@dataclass(frozen=True, slots=True)
class Clocks:
    """Time as the updater sees it: `now_at` epoch ms, `boot_ms` a clock that goes on while the machine sleeps."""

    now_at: Callable[[], int]
    boot_ms: Callable[[], int]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a batch may hold, how old it may be, how far clocks may differ."""

    batch_rows: int
    deadline_ms: int
    clock_skew_ms: int


class Session:
    """Works on one log until it changes. One thread owns it."""

    def __init__(
        self,
        log_id: str,
        consumer: LogConsumer,
        admin: LogAdmin,
        registry: Registry,
        pipeline: Pipeline,
        clocks: Clocks,
        limits: Limits,
    ) -> None:
        self._log_id = log_id
        self._consumer = consumer
        self._admin = admin
        self._registry = registry
        self._pipeline = pipeline
        self._clocks = clocks
        self._limits = limits
        self._generation = -1
        self._positions: dict[int, int] = {}
        self._committed: dict[int, int] = {}
        self._batch_rows = limits.batch_rows
        self._partitions = 0
        self._heartbeat_due_ms = 0
        self._backoff_ms = _FIRST_BACKOFF_MS
        self._paused_until_ms: int | None = None

    def turn(self) -> None:
        """One poll and what follows from it. Raises LogChanged; an outage of a store only pauses the session."""
        records = self._consumer.poll(POLL_MS, MAX_RECORDS)
        moved = self._consumer.generation != self._generation
        if moved:
            self._positions.clear()  # they may be others' by now, and further on
            records = self._unread(records)
        if self._paused_until_ms is not None:
            self._realign(records)
            if self._clocks.boot_ms() < self._paused_until_ms:
                return
            self._paused_until_ms = None
            self._consumer.resume()
            records = []
        try:
            self._registry.reread_when_old()
            if moved:
                self._take_over()
            elif records:
                self._process(records)
            if self._clocks.boot_ms() >= self._heartbeat_due_ms:
                self._heartbeat()
        except StoreUnavailable as error:
            self._give_back(records, error)

    def close(self) -> None:
        """Leave the group; what was not committed goes to another updater."""
        self._consumer.close()

    # ------------------------------------------------------------------ batches

    def _process(self, records: Sequence[Record]) -> None:
        """Bring all records through the pipeline, in batches bounded by rows."""
        # The check comes after the poll that returned the records: kafka-python may hand over records of a
        # log that is dead for minutes already, and the deadline counts from the check's start.
        checked_ms = self._check_log()
        firsts: dict[int, int] = {}
        for record in records:
            firsts.setdefault(record.partition, record.offset)
        self._skip_what_expired(firsts)
        decoded = self._pipeline.decode(records)
        topology, ids = self._layout()
        pieces = list(cut(decoded, self._batch_rows))
        for piece in pieces:
            ranges = ranges_of(piece, self._positions, self._limits.clock_skew_ms, self._partitions)
            # A check of its own for each batch: those before it may have taken all the time there is.
            checked_ms = checked_ms if piece is pieces[0] else self._check_log()
            deadline = Deadline(checked_ms, self._limits.deadline_ms, self._clocks.boot_ms)
            batch = Batch(piece, ranges, ids, deadline)
            projection = self._pipeline.run(batch, topology, self._consumer, self._committed)
            for one in ranges:
                self._positions[one.partition] = one.next
                self._committed[one.partition] = max(one.next, self._committed.get(one.partition, 0))
            if self._rewind(projection):
                self._realign(records)
                break
        self._batch_rows = min(self._limits.batch_rows, 2 * self._batch_rows)
        # Only here: a turn without records says nothing of the store that was away.
        self._backoff_ms = _FIRST_BACKOFF_MS

    def _skip_what_expired(self, next_offsets: Mapping[int, int]) -> None:
        """Where the log has dropped records before they were read, go on at its start, and say so loudly."""
        for partition, offset in next_offsets.items():
            position = self._positions[partition]
            if offset > position and (start := self._consumer.log_start(partition)) > position:
                log.error("the log dropped records before they were recorded", partition=partition,
                          expected=position, log_start=start)  # fmt: skip
                self._positions[partition] = start

    def _give_back(self, records: Sequence[Record], error: StoreUnavailable) -> None:
        """Nothing was committed: fetch the same records again, after a pause in which the membership is kept."""
        self._pipeline.count_outage(error)
        self._realign(records)
        if isinstance(error, DeadlineMissed):
            self._batch_rows = max(1, self._batch_rows // 2)
            log.warning("a batch missed its deadline: it is fetched again, in halves", batch_rows=self._batch_rows)
            return
        log.warning("a store is away: the batch is given back", error=str(error), pause_ms=self._backoff_ms)
        self._paused_until_ms = self._clocks.boot_ms() + self._backoff_ms
        self._backoff_ms = min(2 * self._backoff_ms, _LONGEST_BACKOFF_MS)
        self._consumer.pause()

    def _unread(self, records: Sequence[Record]) -> list[Record]:
        """Records that came before the partitions were taken over are left for the next poll: none."""
        for record in reversed(records):
            self._consumer.seek(record.partition, record.offset)
        return []

    def _realign(self, records: Sequence[Record]) -> None:
        """Let the consumer go on exactly behind what was finished."""
        owned = self._consumer.assignment()
        for partition in {record.partition for record in records} & owned & self._positions.keys():
            self._consumer.seek(partition, self._positions[partition])

    # ------------------------------------------------------------------ membership

    def _take_over(self) -> None:
        """After an assignment: learn where the partitions stand, and show the lanes."""
        generation = self._consumer.generation
        self._check_log()
        owned = self._consumer.assignment()
        self._positions = {partition: self._consumer.position(partition) for partition in owned}
        self._committed = {partition: self._consumer.committed(partition) or 0 for partition in owned}
        self._generation = generation
        self._heartbeat_due_ms = 0
        log.info("partitions assigned", partitions=sorted(owned))

    def _check_log(self) -> int:
        """When (boot ms) the check began that found the topic unchanged. Raises LogChanged when it is another."""
        began_ms = self._clocks.boot_ms()
        found = self._admin.describe()
        if found is None or found.log_id != self._log_id:
            raise LogChanged(f"the topic is {found.log_id if found else 'gone'}, no longer {self._log_id}")
        self._partitions = found.partitions
        return began_ms

    def _layout(self) -> tuple[Topology, LaneIds]:
        topology = self._registry.topology
        if topology is None:
            raise StoreUnavailable("there is no topology yet: run `standings init`")
        return topology, topology_ids(self._log_id, topology)

    # ------------------------------------------------------------------ heartbeats and rewinds

    def _heartbeat(self) -> None:
        """Show every lane where all owned partitions stand, with as_of where there is evidence."""
        # The time comes first: whatever was accepted before it is in one of the partitions that the check finds.
        now_at = self._clocks.now_at()
        self._check_log()
        topology, ids = self._layout()
        if self._positions:
            # The position moves over what holds no records: the markers of transactions.
            reached = {one: max(at, self._consumer.position(one)) for one, at in self._positions.items()}
            self._skip_what_expired(reached)
            complete = self._consumer.caught_up(reached)
            as_of = now_at - self._limits.clock_skew_ms
            ranges = [
                Range(one, self._positions[one], after, as_of if one in complete else None, self._partitions)
                for one, after in reached.items()
            ]
            self._positions |= reached
            self._rewind(self._pipeline.show(ids, ranges, topology))
        self._heartbeat_due_ms = self._clocks.boot_ms() + HEARTBEAT_MS

    def _rewind(self, projection: Projection) -> bool:
        """Go back to where the furthest lane stands, as long as the log still has it; True where it went back."""
        went_back = False
        targets: Mapping[int, int] = projection.behind
        for partition, target in targets.items():
            if target >= self._consumer.log_start(partition):
                self._consumer.seek(partition, target)
                self._positions[partition] = target
                went_back = True
                log.info("a lane is behind: the log is replayed", partition=partition, offset=target)
        return went_back
