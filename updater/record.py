"""Step 2, record: results become durable in the scorebook before anyone sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from schemas.errors import StoreUnavailable
from schemas.events import MatchEvent
from schemas.leaderboards import Board
from schemas.rows import (
    Candidate,
    Receipt,
    ReceiptKey,
    RowKey,
    Topology,
    candidates_of,
    receipt_key,
    receipt_of,
)
from stores.lanes import LaneIds, Lanes
from stores.scorebook import Scorebook
from updater.batch import Batch, DeadLetter, Decoded
from updater.failpoints import Reach, Step, reach


@dataclass(slots=True)
class Recording:
    """What recording a batch brought about.

    `images`: for every row that an event touches, the packed value of an image that the truth had at or
    after that event's own attempt. `touched`: which rows each record touches. `conflicts`: reports that
    contradict a match that is recorded already.
    """

    images: dict[RowKey, int] = field(default_factory=dict)
    boards: dict[str, Board] = field(default_factory=dict)
    touched: list[tuple[Decoded, Sequence[RowKey]]] = field(default_factory=list)
    conflicts: list[DeadLetter] = field(default_factory=list)
    applied: int = 0
    applied_results: int = 0
    repeats: int = 0
    written_rows: int = 0
    prefiltered_rows: int = 0


@dataclass(slots=True)
class _Sorted:
    """A batch's events by what has to be done for them."""

    fresh: dict[ReceiptKey, tuple[Decoded, MatchEvent]] = field(default_factory=dict)
    repeats: list[tuple[Decoded, MatchEvent]] = field(default_factory=list)
    conflicts: list[tuple[Decoded, MatchEvent]] = field(default_factory=list)


class Recorder:
    """Writes what changes and nothing else. Raises StoreUnavailable and DeadlineMissed: then commit nothing."""

    def __init__(self, scorebook: Scorebook, lanes: Lanes, now_at: Callable[[], int], reach: Reach = reach) -> None:
        self._scorebook = scorebook
        self._lanes = lanes
        self._now_at = now_at
        self._reach = reach

    def record(self, batch: Batch, topology: Topology) -> Recording:
        """Make a batch durable: rows first, receipts last, so that a crash between them repeats harmless writes."""
        recording = Recording()
        by_kind = self._sort(batch)
        candidates = _merge(recording, by_kind.fresh.values())
        self._write_rows(candidates, batch, topology, recording)
        self._reach(Step.ROWS_WRITTEN)
        self._write_receipts(by_kind, batch)
        self._read_rows_of_repeats(by_kind.repeats, batch, recording)
        recording.applied = len(by_kind.fresh)
        recording.applied_results = sum(len(event.results) for _, event in by_kind.fresh.values())
        recording.repeats = len(by_kind.repeats)
        recording.conflicts = [_conflict(decoded) for decoded, _ in by_kind.conflicts]
        return recording

    def _sort(self, batch: Batch) -> _Sorted:
        """Settle repeats and conflicts, inside the batch in offset order, and against the receipts."""
        events = [(one, one.outcome) for one in batch.decoded if isinstance(one.outcome, MatchEvent)]
        receipts: Mapping[ReceiptKey, Receipt] = {}
        if events:
            keys = dict.fromkeys(receipt_key(event) for _, event in events)
            receipts = self._scorebook.read_receipts(keys, batch.deadline)
        by_kind = _Sorted()
        for decoded, event in events:
            key = receipt_key(event)
            first = receipts.get(key)
            if first is None and key in by_kind.fresh:
                first = receipt_of(by_kind.fresh[key][1], 0)
            if first is None:
                by_kind.fresh[key] = (decoded, event)
            elif first.contradicts(event):
                by_kind.conflicts.append((decoded, event))
            else:
                by_kind.repeats.append((decoded, event))
        return by_kind

    def _write_rows(
        self, candidates: dict[RowKey, Candidate], batch: Batch, topology: Topology, recording: Recording
    ) -> None:
        view = self._prefilter(candidates, batch.ids, topology)
        kept = []
        for key, candidate in candidates.items():
            if candidate.row.packed < view.get(key, -1):
                # The truth has more than the view, and the view has more than this: nothing to write. It stays
                # among the entries all the same: the view may be rolled back before it is projected.
                recording.images[key] = candidate.row.packed
                recording.prefiltered_rows += 1
            else:
                kept.append(candidate)
        if kept:
            written = self._scorebook.write_rows(kept, set(view), batch.deadline)
            recording.images |= {key: row.packed for key, row in written.items()}
            recording.written_rows = len(kept)

    def _prefilter(self, candidates: dict[RowKey, Candidate], ids: LaneIds, topology: Topology) -> dict[RowKey, int]:
        """What the view holds for the candidates; nothing for lanes that can't be believed or reached."""
        wanted: dict[int, dict[str, list[str]]] = {}
        for board, player_id in candidates:
            wanted.setdefault(topology.lane_of(board), {}).setdefault(board, []).append(player_id)
        view: dict[RowKey, int] = {}
        for lane, players in wanted.items():
            try:
                view |= self._lanes.prefilter(lane, ids, players) or {}
            except StoreUnavailable:
                continue  # Redis being away stops nothing but reads
        return view

    def _write_receipts(self, by_kind: _Sorted, batch: Batch) -> None:
        if not by_kind.fresh:
            return
        applied_at = self._now_at()
        receipts = [receipt_of(event, applied_at) for _, event in by_kind.fresh.values()]
        for key, first in self._scorebook.insert_receipts(receipts, batch.deadline).items():
            # Another updater was quicker with this match: it was the first.
            decoded, event = by_kind.fresh.pop(key)
            if first.contradicts(event):
                by_kind.conflicts.append((decoded, event))
            else:
                by_kind.repeats.append((decoded, event))

    def _read_rows_of_repeats(
        self, repeats: Sequence[tuple[Decoded, MatchEvent]], batch: Batch, recording: Recording
    ) -> None:
        """A repeat is projected from the scorebook's row: its own score may never have been the best."""
        unread: dict[RowKey, tuple[Board, str]] = {}
        for decoded, event in repeats:
            keys = []
            for candidate in candidates_of(event):
                keys.append(candidate.key)
                recording.boards[candidate.board.name] = candidate.board
                unread[candidate.key] = (candidate.board, candidate.row.player_id)
            recording.touched.append((decoded, keys))
        if unread:
            rows = self._scorebook.read_rows(unread.values(), batch.deadline)
            for key, row in rows.items():
                recording.images[key] = max(row.packed, recording.images.get(key, -1))


def _merge(recording: Recording, fresh: Iterable[tuple[Decoded, MatchEvent]]) -> dict[RowKey, Candidate]:
    """The best candidate for each row: a batch may not touch one item twice."""
    best: dict[RowKey, Candidate] = {}
    for decoded, event in fresh:
        keys = []
        for candidate in candidates_of(event):
            key = candidate.key
            keys.append(key)
            recording.boards[candidate.board.name] = candidate.board
            known = best.get(key)
            if known is None or candidate.row.beats(known.row):
                best[key] = candidate
        recording.touched.append((decoded, keys))
    return best


def _conflict(decoded: Decoded) -> DeadLetter:
    return DeadLetter(decoded.record, "match-conflict", "the match is recorded with other results or another end time")
