"""The code with one rule of the protocol left out, each a mistake that somebody could make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.rows import Candidate, RowKey, Topology
from stores.lanes import LaneIds, Lanes
from stores.log import Committed, LogConsumer
from tests.fakes.deployment import Deployment
from updater.batch import Batch
from updater.failpoints import Step
from updater.pipeline import Pipeline
from updater.project import Projection
from updater.record import Recorder, Recording, _merge


def no_receipts(world: Deployment) -> None:
    """Receipts are not written: a second report of a match counts as well."""
    world.scorebook.insert_receipts = lambda *_: {}  # type: ignore[method-assign]


def receipts_first(world: Deployment) -> None:
    """Receipts before rows: after a crash between them, the repeat finds a receipt and writes nothing."""

    class Wrong(Recorder):
        def _write_rows(
            self, candidates: dict[RowKey, Candidate], batch: Batch, topology: Topology, recording: Recording
        ) -> None:
            self._write_receipts(self._sort(batch), batch)
            super()._write_rows(candidates, batch, topology, recording)

    world.make_recorder = Wrong


def projected_first(world: Deployment) -> None:
    """Shown before it is durable."""

    class Wrong(Pipeline):
        def run(
            self, batch: Batch, topology: Topology, consumer: LogConsumer, committed: Mapping[int, int]
        ) -> Projection:
            shown = Recording()
            candidates = _merge(shown, self._recorder._sort(batch).fresh.values())
            shown.images = {key: candidate.row.packed for key, candidate in candidates.items()}
            self._projector.project(batch, shown, topology)
            return super().run(batch, topology, consumer, committed)

    world.make_pipeline = Wrong


def committed_first(world: Deployment) -> None:
    """The offset is committed before the batch is recorded."""

    class Wrong(Pipeline):
        def run(
            self, batch: Batch, topology: Topology, consumer: LogConsumer, committed: Mapping[int, int]
        ) -> Projection:
            consumer.commit({one.partition: Committed(one.next, None) for one in batch.ranges})
            return super().run(batch, topology, consumer, committed)

    world.make_pipeline = Wrong


def prefiltered_dropped(world: Deployment) -> None:
    """What the prefilter spared is not among the entries, though the view may be rolled back meanwhile."""

    class Wrong(Recorder):
        def _write_rows(
            self, candidates: dict[RowKey, Candidate], batch: Batch, topology: Topology, recording: Recording
        ) -> None:
            view: dict[RowKey, int] = {}
            prefilter = self._prefilter

            def note(*args: Any) -> dict[RowKey, int]:
                view.update(prefilter(*args))
                return view

            self._prefilter = note  # type: ignore[method-assign,assignment]
            try:
                super()._write_rows(candidates, batch, topology, recording)
            finally:
                self._prefilter = prefilter  # type: ignore[method-assign]
            for key, candidate in candidates.items():
                if candidate.row.packed < view.get(key, -1):
                    del recording.images[key]

    world.make_recorder = Wrong


def never_rewound(world: Deployment) -> None:
    """A lane that is behind is left behind."""

    class Wrong(Pipeline):
        def run(
            self, batch: Batch, topology: Topology, consumer: LogConsumer, committed: Mapping[int, int]
        ) -> Projection:
            super().run(batch, topology, consumer, committed)
            return Projection()

        def show(self, ids: LaneIds, ranges: Any, topology: Topology) -> Projection:
            super().show(ids, ranges, topology)
            return Projection()

    world.make_pipeline = Wrong


def offsets_read_last(world: Deployment) -> None:
    """The rebuild reads S when its rows are in: what was committed meanwhile is in neither."""
    finish = Lanes.finish

    def late(lane: int, epoch: str, steps: int, _: object) -> bool:
        found = world.admin.describe()
        assert found is not None
        known = world.admin.committed(found.log_id)
        starts = world.admin.log_starts(found.partitions)
        offsets = {one: (known[one].offset if one in known else start, None) for one, start in starts.items()}
        return finish(world.lanes, lane, epoch, steps, offsets)

    world.lanes.finish = late  # type: ignore[assignment]


@dataclass(frozen=True)
class Mutant:
    """A mutant, and where its counterexample is looked for: the whole space would take minutes."""

    put_in: Callable[[Deployment], None]
    troubles: Sequence[str] = ("die",)
    losses: Sequence[str] = ("wait",)
    in_a_turn: Sequence[str | int] = (*Step, *range(1, 9))
    in_a_look: Sequence[str | int] = ("begin",)


MUTANTS = [
    Mutant(no_receipts),
    Mutant(receipts_first),
    Mutant(projected_first, in_a_turn=("BatchGetItem", "BatchExecuteStatement")),
    Mutant(committed_first, in_a_turn=("BatchGetItem", "BatchExecuteStatement")),
    Mutant(prefiltered_dropped, ("rollback",), ("rollback",), (Step.RECORDED, "project")),
    Mutant(never_rewound, ("rollback",), ("rollback",)),
    Mutant(offsets_read_last, ("other",), ("lose all",), in_a_look=("fill", "finish")),
]
