"""Step 3, project: what was recorded becomes visible, whole ranges at a time, in every lane."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.errors import StoreUnavailable
from schemas.rows import RowKey, Topology
from stores.lanes import Behind, Entries, LaneIds, Lanes, Projected, Range
from updater.batch import Batch
from updater.record import Recording

# A script call with more entries makes readers wait behind it.
MAX_ENTRIES = 250
_UNREACHABLE_MS = 1_000


@dataclass(slots=True)
class Projection:
    """What the lanes answered. `behind`: per partition the offset that some lane needs the log from again."""

    behind: dict[int, int] = field(default_factory=dict)
    lost_lanes: set[int] = field(default_factory=set)
    unreachable_lanes: set[int] = field(default_factory=set)


class Projector:
    """Calls project on every lane.

    A lane that is lost, behind or unreachable stops nothing: the next range or heartbeat shows what it lacks.
    """

    def __init__(self, lanes: Lanes, now_at: Callable[[], int], boot_ms: Callable[[], int]) -> None:
        self._lanes = lanes
        self._now_at = now_at
        self._boot_ms = boot_ms
        self._retry_at: dict[int, int] = {}

    def project(self, batch: Batch, recording: Recording, topology: Topology) -> Projection:
        """Bring a recorded batch into every lane. Round trips: one per lane and 250 entries."""
        projection = Projection()
        now_at = self._now_at()
        for ranges, keys in _portions(batch, recording):
            entries = [Entries() for _ in range(topology.lanes)]
            for key in keys:
                board = recording.boards[key.board]
                # An event for a board past its retention is recorded and not projected: it stays gone.
                if key in recording.images and (board.expires_at is None or board.expires_at > now_at):
                    entries[topology.lane_of(key.board)].add(board, key.player_id, recording.images[key])
            self._call(batch.ids, ranges, entries, projection)
        return projection

    def heartbeat(self, ids: LaneIds, ranges: Sequence[Range], topology: Topology) -> Projection:
        """Show the lanes where the partitions stand, with no entries: gaps are seen without traffic, as_of moves on."""
        projection = Projection()
        if ranges:
            self._call(ids, ranges, [Entries() for _ in range(topology.lanes)], projection)
        return projection

    def _call(self, ids: LaneIds, ranges: Sequence[Range], entries: Sequence[Entries], projection: Projection) -> None:
        for lane, mine in enumerate(entries):
            if lane in projection.lost_lanes or lane in projection.unreachable_lanes:
                continue  # what follows would leave a gap, and be refused
            if self._boot_ms() < self._retry_at.get(lane, 0):
                projection.unreachable_lanes.add(lane)
                continue
            try:
                answer = self._lanes.project(lane, ids, ranges, mine)
            except StoreUnavailable:
                projection.unreachable_lanes.add(lane)
                self._retry_at[lane] = self._boot_ms() + _UNREACHABLE_MS
                continue
            if isinstance(answer, Behind):
                for partition, offset in answer.applied.items():
                    projection.behind[partition] = min(offset, projection.behind.get(partition, offset))
            elif answer is Projected.LOST:
                projection.lost_lanes.add(lane)


def _portions(batch: Batch, recording: Recording) -> Iterator[tuple[list[Range], set[RowKey]]]:
    """Split by offsets, never by entries: each portion holds whole ranges and every row that they touch."""
    touched: dict[tuple[int, int], set[RowKey]] = {}
    for decoded, rows in recording.touched:
        touched.setdefault((decoded.record.partition, decoded.record.offset), set()).update(rows)
    whole = {one.partition: one for one in batch.ranges}
    first = {one.partition: one.first for one in batch.ranges}
    reached: dict[int, int] = {}
    keys: set[RowKey] = set()
    for decoded in batch.decoded:
        partition, offset = decoded.record.partition, decoded.record.offset
        more = touched.get((partition, offset), set())
        if reached and len(keys | more) > MAX_ENTRIES:
            yield _ranges(first, reached, whole), keys
            first |= reached
            reached, keys = {}, set()
        keys |= more
        reached[partition] = offset + 1
    if reached:
        yield _ranges(first, reached, whole), keys


def _ranges(first: Mapping[int, int], reached: Mapping[int, int], whole: Mapping[int, Range]) -> list[Range]:
    return [
        whole[partition]._replace(
            first=first[partition], next=after, as_of=whole[partition].as_of if after == whole[partition].next else None
        )
        for partition, after in reached.items()
    ]
