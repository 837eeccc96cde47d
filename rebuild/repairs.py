"""Repairs of one board of a READY lane, in place: no other board is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rebuild.leases import Leases
from rebuild.rows import Filling, Progress, RowStream
from rebuild.world import World
from schemas.errors import StoreUnavailable
from schemas.lane_states import LaneState
from schemas.leaderboards import Board
from schemas.rows import RowKey
from stores.catalogue import Catalogue
from stores.deadline import Deadline
from stores.lanes import Entries, LaneMeta, Lanes
from stores.repairs import LaneMoved, LaneRepairs, Seen
from stores.scorebook import Scorebook

_READ_MS = 10_000
_TEAR_TRIES = 5


@dataclass(frozen=True, slots=True)
class Repaired:
    """What a repair did: rows of the truth merged, entries expelled that the truth doesn't back."""

    board: str
    rows: int
    expelled: int


class BoardRepairer:
    """Repairs boards. Raises LaneMoved (begin anew), LeaseHeld and StoreUnavailable."""

    def __init__(
        self,
        scorebook: Scorebook,
        catalogue: Catalogue,
        lanes: Lanes,
        repairs: LaneRepairs,
        now_at: Callable[[], int],
        progress: Progress = lambda _filling: None,
    ) -> None:
        self._scorebook = scorebook
        self._lanes = lanes
        self._repairs = repairs
        self._now_at = now_at
        self._progress = progress
        self._leases = Leases(catalogue, now_at)

    def repair(self, board: Board, world: World) -> Repaired:
        """Bring all of the truth's rows into the board, and take out what the truth doesn't back.

        A board whose key was deleted is not served until all its rows are back; any other is served all the while.
        """
        lane = world.topology.lane_of(board.name)
        with self._leases.hold(lane) as prolong:
            meta = self._lanes.read_meta(lane)
            if meta.state is not LaneState.READY:
                # It was a moment ago: whoever comes next looks again, and finds that the lane has to be rebuilt.
                raise LaneMoved(f"lane {lane} is {meta.state}: boards are repaired in a lane that is ready")
            for _ in range(_TEAR_TRIES):
                token = self._repairs.tear(lane, meta.epoch, board)
                rows = self._merge_truth(lane, meta.epoch, board, token, prolong)
                if token is None:
                    return Repaired(board.name, rows or 0, self._expel_foreign(lane, meta.epoch, board, prolong))
                if rows is not None:
                    return Repaired(board.name, rows, 0)
        raise StoreUnavailable(f"the key of {board.name} is deleted again and again while it is mended")

    def settle_notes(self, meta: LaneMeta, lane: int, boards: Iterable[Board]) -> int:
        """Settle what a crash left between an expel and its settle; how many there were."""
        named = {board.name: board for board in boards}
        for key in meta.expelled:
            self._settle(lane, meta.epoch, key, named.get(key.board))
        return len(meta.expelled)

    def _merge_truth(
        self, lane: int, epoch: str, board: Board, token: str | None, prolong: Callable[[], None]
    ) -> int | None:
        """How many rows were merged; None where a torn board was torn anew, or rolled back, meanwhile.

        A torn board is refilled in numbered steps: it may be served again only if none of them was lost.
        """
        rows = steps = 0
        stream = RowStream(self._scorebook, [board], self._now_at())
        for _, chunk in stream:
            entries = Entries()
            for row in chunk:
                entries.add(board, row.player_id, row.packed)
            if token is None:
                self._repairs.repair(lane, epoch, entries)
            elif not self._repairs.refill(lane, epoch, board, token, steps, entries):
                return None
            steps += 1
            rows += len(chunk)
            prolong()
            self._progress(Filling(lane, rows, stream.shards_done, stream.shards))
        if token is not None and not self._repairs.mend(lane, epoch, board, token, steps):
            return None
        return rows

    def _expel_foreign(self, lane: int, epoch: str, board: Board, prolong: Callable[[], None]) -> int:
        expelled = 0
        for page in self._repairs.scan(lane, board.name):
            expelled += self._expel_page(lane, epoch, board, page)
            prolong()
        return expelled

    def _expel_page(self, lane: int, epoch: str, board: Board, page: Sequence[Seen]) -> int:
        """What the view has and the truth does not: by I1 it came from outside. The view was read first."""
        rows = self._scorebook.read_rows(((board, one.player_id) for one in page), Deadline.after(_READ_MS))
        expelled = 0
        for one in page:
            key = RowKey(board.name, one.player_id)
            row = rows.get(key)
            if row is not None and one.packed is not None and one.packed <= row.packed:
                continue
            token = self._repairs.expel(lane, epoch, key, one, None if row is None else row.packed)
            if token is not None:
                self._settle(lane, epoch, key, board, token)
                expelled += 1
        return expelled

    def _settle(self, lane: int, epoch: str, key: RowKey, board: Board | None, token: str = "") -> None:
        """Read the row once more: a result that came in between was not merged if it did not beat the foreign value."""
        entries = Entries()
        if board is not None:
            rows = self._scorebook.read_rows([(board, key.player_id)], Deadline.after(_READ_MS))
            for row in rows.values():
                entries.add(board, key.player_id, row.packed)
        self._repairs.settle(lane, epoch, key, entries, token)
