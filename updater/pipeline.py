"""The way of a score: decode, record, project, commit.

A result is durable before it is visible, and visible before its offset is committed, unless Redis is
away: then it is recorded and committed all the same, and the lane shows by itself what it lacks.
Whatever dies at whatever moment, the same events come again and change nothing that was done already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.errors import StoreUnavailable
from schemas.rows import Topology
from stores.lanes import LaneIds, Range
from stores.log import Committed, LogConsumer, Record
from updater.batch import Batch, DeadLetter, Decoded
from updater.dead_letters import DeadLetters
from updater.decode import Decoder
from updater.failpoints import Reach, Step, reach
from updater.metrics import UpdaterMetrics
from updater.project import Projection, Projector
from updater.record import Recorder


class Pipeline:
    """The four steps, over one batch at a time."""

    def __init__(
        self,
        decoder: Decoder,
        recorder: Recorder,
        projector: Projector,
        dead_letters: DeadLetters,
        metrics: UpdaterMetrics,
        reach: Reach = reach,
    ) -> None:
        self._decoder = decoder
        self._recorder = recorder
        self._projector = projector
        self._dead_letters = dead_letters
        self._metrics = metrics
        self._reach = reach

    def decode(self, records: Sequence[Record]) -> list[Decoded]:
        """Step 1: what each record is. Raises StoreUnavailable, and TooManyDeadLetters to stop a bad deploy."""
        decoded = self._decoder.decode(records)
        self._dead_letters.weigh(decoded)
        self._reach(Step.DECODED)
        return decoded

    def run(self, batch: Batch, topology: Topology, consumer: LogConsumer, committed: Mapping[int, int]) -> Projection:
        """Steps 2 to 4. Raises StoreUnavailable (or DeadlineMissed) with nothing committed: fetch the batch again.

        `committed`: what the group has committed; an updater that replays never commits backwards.
        """
        recording = self._recorder.record(batch, topology)
        self._reach(Step.RECORDED)
        undecodable = [one.outcome for one in batch.decoded if isinstance(one.outcome, DeadLetter)]
        self._dead_letters.send([*undecodable, *recording.conflicts])
        self._reach(Step.DEAD_LETTERED)
        projection = self._projector.project(batch, recording, topology)
        self._reach(Step.PROJECTED)
        offsets = {
            one.partition: Committed(one.next, one.as_of)
            for one in batch.ranges
            if one.next > committed.get(one.partition, -1)
        }
        if offsets:
            consumer.commit(offsets)
        self._reach(Step.COMMITTED)
        self._metrics.count(batch, recording, projection, undecodable)
        return projection

    def show(self, ids: LaneIds, ranges: Sequence[Range], topology: Topology) -> Projection:
        """A heartbeat: show every lane where the partitions stand. Needs Redis alone, and not even that."""
        projection = self._projector.heartbeat(ids, ranges, topology)
        self._metrics.count_refusals(projection)
        return projection

    def count_outage(self, error: StoreUnavailable) -> None:
        """Count a batch that was given back."""
        self._metrics.count_outage(error)
