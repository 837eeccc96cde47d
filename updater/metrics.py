"""What an updater counts."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from updater.batch import Batch, DeadLetter
from updater.project import Projection
from updater.record import Recording


class UpdaterMetrics:
    """Counters of one updater, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._results = self._counter("results", "results of events that were applied for the first time")
        self._events = self._counter("events", "events by what became of them", ["outcome"])
        self._rows = self._counter("rows", "candidate rows by whether the view spared their write", ["outcome"])
        self._dead_letters = self._counter("dead_letters", "dead letters by reason", ["reason"])
        self._lanes = self._counter("lane_refusals", "projections that a lane did not take", ["why"])
        self._outages = self._counter("outages", "batches given back because a store was away, by error", ["error"])
        self.up_to = Gauge("standings_updater_position", "next offset", ["partition"], registry=self.registry)

    def _counter(self, name: str, text: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(f"standings_updater_{name}", text, labels, registry=self.registry)

    def count(
        self, batch: Batch, recording: Recording, projection: Projection, undecodable: Sequence[DeadLetter]
    ) -> None:
        """Count one finished batch."""
        self._results.inc(recording.applied_results)
        self._events.labels("applied").inc(recording.applied)
        self._events.labels("repeat").inc(recording.repeats)
        self._rows.labels("written").inc(recording.written_rows)
        self._rows.labels("spared").inc(recording.prefiltered_rows)
        for letter in (*undecodable, *recording.conflicts):
            self._dead_letters.labels(letter.reason).inc()
        self.count_refusals(projection)
        for one in batch.ranges:
            self.up_to.labels(one.partition).set(one.next)

    def count_refusals(self, projection: Projection) -> None:
        """Count what lanes refused."""
        self._lanes.labels("behind").inc(len(projection.behind))
        self._lanes.labels("lost").inc(len(projection.lost_lanes))
        self._lanes.labels("unreachable").inc(len(projection.unreachable_lanes))

    def count_outage(self, error: Exception) -> None:
        """Count a batch that was given back."""
        self._outages.labels(type(error).__name__).inc()
