"""One rebuild of one lane, from the scorebook: S, begin, fill, finish. Fenced or failed, it is over.

The order matters (docs/recovery.md): S is read before the first row is, and the log is replayed from S, so
that what arrives meanwhile is in the one or in the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from rebuild.failpoints import Step, reach
from rebuild.leases import LeaseHeld, Leases
from rebuild.rows import Filling, Progress, RowStream
from rebuild.world import World
from schemas.errors import StandingsError, StoreUnavailable
from schemas.lane_states import LaneMachine, LaneStep
from schemas.leaderboards import Board
from stores.catalogue import Catalogue
from stores.lanes import Entries, Lanes
from stores.log import Committed, LogAdmin, LogDescription
from stores.scorebook import Scorebook

__all__ = ["Fenced", "LeaseHeld", "Progress", "Rebuilt", "Runner", "World"]

_TRIES = 6
_FIRST_WAIT_S = 0.1


class Fenced(StandingsError):
    """Another runner took the lane over: this one ends, and never goes on under its epoch."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a finished rebuild did."""

    lane: int
    boards: int
    rows: int


class Runner:
    """Rebuilds lanes. Raises Fenced, LeaseHeld and StoreUnavailable; a lane is never left READY and incomplete."""

    def __init__(
        self,
        scorebook: Scorebook,
        catalogue: Catalogue,
        lanes: Lanes,
        admin: LogAdmin,
        now_at: Callable[[], int],
        progress: Progress = lambda _filling: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._scorebook = scorebook
        self._lanes = lanes
        self._admin = admin
        self._now_at = now_at
        self._progress = progress
        self._sleep = sleep
        self._leases = Leases(catalogue, now_at)

    def rebuild(self, lane: int, world: World) -> Rebuilt:
        """Bring the lane back. `progress` hears of every chunk."""
        with self._leases.hold(lane) as prolong:
            seen = self._lanes.read_meta(lane)
            machine = LaneMachine(seen.state)
            epoch = str(uuid4())  # never derived from Redis, which may be rolled back to where it was used before
            offsets = self._starting_offsets(world.log)
            reach(Step.OFFSETS_READ)
            boards = world.boards_of(lane, self._now_at())
            names = [board.name for board in boards]
            machine.check(LaneStep.BEGIN)
            if not self._lanes.begin(lane, epoch, world.ids, world.log.partitions, seen, names):
                raise Fenced(f"lane {lane} was changed by another rebuild since it was looked at")
            machine.take(LaneStep.BEGIN)
            reach(Step.BEGUN)
            steps, rows = self._fill(lane, epoch, boards, machine, prolong)
            reach(Step.ALL_FILLED)
            if self._admin.describe() != world.log:
                raise Fenced(f"the log changed while lane {lane} was rebuilt")
            machine.take(LaneStep.FINISH)
            if not self._again(lambda: self._lanes.finish(lane, epoch, steps, offsets)):
                raise Fenced(f"lane {lane} was taken over by another rebuild")
            reach(Step.FINISHED)
        return Rebuilt(lane, len(boards), rows)

    def _starting_offsets(self, log: LogDescription) -> dict[int, tuple[int, int | None]]:
        """S: what is committed, but nothing that the log dropped; where nothing is, the log's start, never its end."""
        committed = self._admin.committed(log.log_id)
        offsets: dict[int, tuple[int, int | None]] = {}
        for partition, start in self._admin.log_starts(log.partitions).items():
            known = committed.get(partition, Committed(-1, None))
            offsets[partition] = (known.offset, known.as_of) if known.offset >= start else (start, None)
        return offsets

    def _fill(
        self, lane: int, epoch: str, boards: Sequence[Board], machine: LaneMachine, prolong: Callable[[], None]
    ) -> tuple[int, int]:
        steps = rows = 0
        stream = RowStream(self._scorebook, boards, self._now_at())
        for board, chunk in stream:
            entries = Entries()
            for row in chunk:
                entries.add(board, row.player_id, row.packed)
            rows += len(chunk)
            machine.take(LaneStep.FILL)
            if not self._again(lambda: self._lanes.fill(lane, epoch, steps, rows, entries)):  # noqa: B023 - called at once
                raise Fenced(f"lane {lane} was taken over by another rebuild")
            steps += 1
            reach(Step.FILLED)
            prolong()
            self._progress(Filling(lane, rows, stream.shards_done, stream.shards))
        return steps, rows

    def _again(self, script: Callable[[], bool]) -> bool:
        """Run a script that may be run again, until Redis tells how it went."""
        for attempt in range(_TRIES - 1):
            try:
                return script()
            except StoreUnavailable:
                self._sleep(_FIRST_WAIT_S * 2**attempt)
        return script()
