"""The audit: does the view agree with the scorebook? Exact or sampled, and never a false alarm while scores arrive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from rebuild.rows import RowStream
from rebuild.world import World
from schemas.errors import BoardNotReady, StandingsError
from schemas.lane_states import LaneState
from schemas.leaderboards import Board
from schemas.rows import Row, RowKey
from stores.deadline import Deadline
from stores.lanes import Lanes
from stores.log import LogAdmin
from stores.repairs import LaneRepairs, Seen
from stores.scorebook import Scorebook

_READ_MS = 10_000
_POLL_S = 0.1
APPLIED_WITHIN_S = 30.0
MOST_LISTED = 1_000


class Undecided(StandingsError):
    """The audit can't tell: the lane was begun anew, or the updaters did not catch up. Run it again."""


class Kind(StrEnum):
    """How an entry differs from the truth."""

    MISSING = "missing"
    LOWER = "lower"
    HIGHER = "higher"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Difference:
    """One entry that differs: what the scorebook's row has (None: no row) and what the view shows."""

    board: str
    player_id: str
    kind: Kind
    truth: int | None
    view: str | None


@dataclass(slots=True)
class Audited:
    """What an audit found of one board. `differences` lists at most 1,000, `differing` counts all."""

    board: str
    rows: int = 0
    entries: int = 0
    differing: int = 0
    differences: list[Difference] = field(default_factory=list)

    def add(self, difference: Difference) -> None:
        """Count a difference, and list it while there is room."""
        self.differing += 1
        if len(self.differences) < MOST_LISTED:
            self.differences.append(difference)


class Auditor:
    """Audits boards of READY lanes. Raises BoardNotReady, Undecided and StoreUnavailable.

    Why it never cries wolf: a row that was read before the view is only missing or lower there if it still
    is after the lane has applied all that the log held when the row was read. And an entry that was read
    before its row can't be above it, because a result is durable before it is visible.
    """

    def __init__(
        self,
        scorebook: Scorebook,
        lanes: Lanes,
        repairs: LaneRepairs,
        admin: LogAdmin,
        now_at: Callable[[], int],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._scorebook = scorebook
        self._lanes = lanes
        self._repairs = repairs
        self._admin = admin
        self._now_at = now_at
        self._sleep = sleep

    def audit(self, board: Board, world: World, sample: int | None = None) -> Audited:
        """Compare all rows and entries, or about so many of each, drawn at random. Memory: the suspects alone."""
        lane = world.topology.lane_of(board.name)
        meta = self._lanes.read_meta(lane)
        if meta.state is not LaneState.READY or meta.ids != world.ids or board.name in meta.torn:
            raise BoardNotReady(lane, "rebuilding" if board.name in meta.torn else str(meta.state), meta.progress)
        audited = Audited(board.name)
        suspects: dict[str, int] = {}
        for chunk in self._rows(board, sample):
            audited.rows += len(chunk)
            view = self._view(lane, meta.epoch, board, [row.player_id for row in chunk])
            suspects |= {row.player_id: row.packed for row in chunk if view.get(row.player_id, -1) < row.packed}
        for page in self._entries(lane, board, sample):
            audited.entries += len(page)
            self._compare_entries(board, page, audited)
        if suspects:
            self._await_applied(lane, meta.epoch, world)
            self._compare_suspects(lane, meta.epoch, board, suspects, audited)
        if self._lanes.read_meta(lane).epoch != meta.epoch:
            raise Undecided(f"lane {lane} was begun anew while {board.name} was audited: run the audit again")
        return audited

    def _rows(self, board: Board, sample: int | None) -> Iterator[Sequence[Row]]:
        if sample is None:
            for _, chunk in RowStream(self._scorebook, [board], self._now_at()):
                yield chunk
        else:
            # A shard without a row gives an empty chunk, and a view of nobody can't be asked for.
            yield from filter(None, self._scorebook.sample_rows(board, sample, self._now_at()))

    def _entries(self, lane: int, board: Board, sample: int | None) -> Iterator[Sequence[Seen]]:
        if sample is None:
            yield from self._repairs.scan(lane, board.name)
        else:
            yield self._repairs.sample(lane, board.name, sample)

    def _view(self, lane: int, epoch: str, board: Board, player_ids: list[str]) -> dict[str, int]:
        found_epoch, view = self._repairs.view(lane, board.name, player_ids)
        if found_epoch != epoch:
            raise Undecided(f"lane {lane} was begun anew while {board.name} was audited: run the audit again")
        return view

    def _compare_entries(self, board: Board, page: Iterable[Seen], audited: Audited) -> None:
        """The entries were read first: whatever is above its row now was never backed by the truth."""
        listed = list(page)
        keys = [(board, one.player_id) for one in listed]
        rows = self._scorebook.read_rows(keys, Deadline.after(_READ_MS)) if keys else {}
        for one in listed:
            row = rows.get(RowKey(board.name, one.player_id))
            if row is None:
                audited.add(Difference(board.name, one.player_id, Kind.UNKNOWN, None, one.text))
            elif one.packed is None or one.packed > row.packed:
                audited.add(Difference(board.name, one.player_id, Kind.HIGHER, row.packed, one.text))

    def _await_applied(self, lane: int, epoch: str, world: World) -> None:
        """Until the lane has applied all that the log holds now, after the suspects' rows were read."""
        ends = self._admin.log_ends(world.log.partitions)
        for _ in range(int(APPLIED_WITHIN_S / _POLL_S)):
            meta = self._lanes.read_meta(lane)
            if meta.epoch == epoch and all(meta.applied.get(one, 0) >= end for one, end in ends.items()):
                return
            self._sleep(_POLL_S)
        raise Undecided(f"lane {lane} does not catch up with the log: are updaters running?")

    def _compare_suspects(
        self, lane: int, epoch: str, board: Board, suspects: dict[str, int], audited: Audited
    ) -> None:
        view = self._view(lane, epoch, board, list(suspects))
        for player_id, packed in suspects.items():
            shown = view.get(player_id)
            if shown is None:
                audited.add(Difference(board.name, player_id, Kind.MISSING, packed, None))
            elif shown < packed:
                audited.add(Difference(board.name, player_id, Kind.LOWER, packed, str(shown)))
