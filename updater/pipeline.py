"""The way of a score: decode, record, project, commit.

A result is durable before it is visible, and visible before its offset is committed, unless Redis is
away: then it is recorded and committed all the same, and the lane shows by itself what it lacks.
Whatever dies at whatever moment, the same events come again and change nothing that was done already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.rows import Topology
from stores.log import Committed, LogConsumer, Record
from updater.batch import Batch, DeadLetter, Decoded
from updater.dead_letters import DeadLetters
from updater.decode import Decoder
from updater.failpoints import Step, reach
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
    ) -> None:
        self._decoder = decoder
        self._recorder = recorder
        self._projector = projector
        self._dead_letters = dead_letters
        self._metrics = metrics

    def decode(self, records: Sequence[Record]) -> list[Decoded]:
        """Step 1: what each record is. Raises StoreUnavailable, and TooManyDeadLetters to stop a bad deploy."""
        decoded = self._decoder.decode(records)
        self._dead_letters.weigh(decoded)
        return decoded

    def run(self, batch: Batch, topology: Topology, consumer: LogConsumer, committed: Mapping[int, int]) -> Projection:
        """Steps 2 to 4. Raises StoreUnavailable (or DeadlineMissed) with nothing committed: fetch the batch again.

        `committed`: what the group has committed; an updater that replays never commits backwards.
        """
        recording = self._recorder.record(batch, topology)
        reach(Step.RECORDED)
        undecodable = [one.outcome for one in batch.decoded if isinstance(one.outcome, DeadLetter)]
        self._dead_letters.send([*undecodable, *recording.conflicts])
        reach(Step.DEAD_LETTERED)
        projection = self._projector.project(batch, recording, topology)
        reach(Step.PROJECTED)
        offsets = {
            one.partition: Committed(one.next, one.as_of)
            for one in batch.ranges
            if one.next > committed.get(one.partition, -1)
        }
        if offsets:
            consumer.commit(offsets)
        reach(Step.COMMITTED)
        self._metrics.count(batch, recording, projection, undecodable)
        return projection
