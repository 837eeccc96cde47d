"""Batches: whole stretches of partitions that are recorded, projected and committed together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from schemas.events import MatchEvent
from stores.deadline import Deadline
from stores.lanes import LaneIds, Range
from stores.log import Record


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that can never be applied, with why. It goes to the dead letters as it came."""

    record: Record
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """What a record turned out to be."""

    record: Record
    outcome: MatchEvent | DeadLetter

    @property
    def rows(self) -> int:
        """How many rows it may touch."""
        if isinstance(self.outcome, DeadLetter):
            return 0
        return len(self.outcome.results) * len(self.outcome.leaderboard.definition.windows)


@dataclass(frozen=True, slots=True)
class Batch:
    """Decoded records in offset order per partition, and the ranges that they fill without a gap.

    `ids` is what a lane must carry to be written; `deadline` is asked before every write of truth.
    """

    decoded: Sequence[Decoded]
    ranges: Sequence[Range]
    ids: LaneIds
    deadline: Deadline


def cut(decoded: Sequence[Decoded], max_rows: int) -> Iterator[Sequence[Decoded]]:
    """Pieces of at most so many rows (or of one event that alone has more), order kept."""
    piece: list[Decoded] = []
    rows = 0
    for one in decoded:
        if piece and rows + one.rows > max_rows:
            yield piece
            piece, rows = [], 0
        piece.append(one)
        rows += one.rows
    if piece:
        yield piece


def ranges_of(
    decoded: Sequence[Decoded], positions: Mapping[int, int], clock_skew_ms: int, partitions: int
) -> list[Range]:
    """The ranges that these records fill, each from where its partition stood; `partitions`: how many the log has.

    A record's time tells how far its partition is complete only where the broker set it.
    """
    found: dict[int, Range] = {}
    for one in decoded:
        record = one.record
        first = positions[record.partition] if record.partition not in found else found[record.partition].first
        as_of = record.timestamp - clock_skew_ms if record.appended else None
        found[record.partition] = Range(record.partition, first, record.offset + 1, as_of, partitions)
    return list(found.values())
