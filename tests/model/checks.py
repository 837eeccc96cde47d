"""What has to hold: at every moment, and in the end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from schemas.rows import RowKey
from stores.lanes import LaneMeta, LaneState
from tests.fakes.deployment import Deployment, header
from tests.model.reference import Reference, images, window_of
from tests.model.reports import Body

_DAY_MS = 86_400_000
_KEPT_DAYS = {"daily": 1, "weekly": 21, "monthly": 62}


# The member by which a board that is being mended counts its steps.
MENDING = ""


class Lost(AssertionError):
    """Something that has to hold does not."""


class Checks:
    """Compares a deployment with the reference. `told`: of each value on the topic the report, and why it is dead."""

    def __init__(self, world: Deployment, reference: Reference, told: Mapping[bytes, tuple[Body, str | None]]) -> None:
        self._world = world
        self._reference = reference
        self._told = told

    def check_now(self) -> None:
        """No view is ahead of the truth, and no lane claims what it lacks."""
        truth = {key: row.packed for key, row in self._world.rows().items()}
        view = self._world.view(board for board, _ in {*truth, *self._reference.rows})
        for key, packed in view.items():
            if key.player_id != MENDING and packed > truth.get(key, -1):
                raise Lost(f"I1: {key} is {packed} in the view and {truth.get(key)} in the truth")
        for lane, meta in enumerate(self.metas()):
            if meta.state is LaneState.READY and meta.ids == self._world.ids:
                self._check_lane(lane, meta, view)

    def _check_lane(self, lane: int, meta: LaneMeta, view: Mapping[RowKey, int]) -> None:
        ((flat),) = self._world.ask([("HGETALL", self._world.settings.names.lane(lane).as_of)])
        pairs = flat.items() if isinstance(flat, dict) else zip(flat[::2], flat[1::2], strict=True)
        as_of = {int(partition): int(at) for partition, at in pairs}
        for board in meta.boards - meta.torn:
            if RowKey(board, MENDING) in view:
                raise Lost(f"lane {lane} serves {board}, which is being mended")
        for number, partition in enumerate(self._world.log.topics[self._world.settings.names.events].partitions):
            for record in partition.records:
                if record.offset < meta.applied.get(number, 0):
                    self._check_contained(record.value, lane, meta, view)
                elif record.timestamp < as_of.get(number, 0):
                    raise Lost(f"I4: lane {lane} claims to be complete up to {as_of}, and lacks {record}")

    def _check_contained(self, value: bytes, lane: int, meta: LaneMeta, view: Mapping[RowKey, int]) -> None:
        body, reason = self._told[value]
        if reason is not None:
            return
        part = body["leaderboard"] + ("#*" if "results" in body else "#=" + body["player_id"])
        results, ended_at, _ = self._reference.receipts[body["match_id"], part]
        for board, player_id, (_, packed, _, _) in images(body["leaderboard"], results, ended_at, body["match_id"]):
            here = self._world.topology.lane_of(board) == lane and self._is_alive(board, ended_at)
            # Somebody deleted its key: a read refuses, and the keeper mends.
            torn = board in meta.torn or (board in meta.boards and all(held != board for held, _ in view))
            if here and not torn and view.get(RowKey(board, player_id), -1) < packed:
                raise Lost(f"I3: lane {lane} has applied {body}, and lacks {player_id} on {board}")

    def is_drained(self) -> bool:
        """All is recorded, committed and visible."""
        committed, ids, metas = self._world.committed(), self._world.ids, self.metas()
        if any(meta.state is not LaneState.READY or meta.ids != ids or meta.torn for meta in metas):
            return False
        for number, partition in enumerate(self._world.log.topics[self._world.settings.names.events].partitions):
            after = partition.records[-1].offset + 1 if partition.records else 0
            if min(committed.get(number, 0), *(meta.applied.get(number, 0) for meta in metas)) < after:
                return False
        return True

    def compare(self, letters: Collection[tuple[bytes, bytes, str]]) -> None:
        """Rows, receipts, views and dead letters are exactly those of the reference, to the last field."""
        rows = self._world.rows()
        bests = {tuple(key): (one.score, one.packed, one.achieved_at, one.match_id) for key, one in rows.items()}
        _equal("rows", bests, self._reference.rows)
        receipts = {tuple(one.key): (one.results, one.ended_at, one.time_given) for one in self._world.receipts()}
        _equal("receipts", receipts, self._reference.receipts)
        alive = {key: best[1] for key, best in self._reference.rows.items() if self._is_alive(key[0], best[2])}
        view = self._world.view({board for board, _ in self._reference.rows})
        _equal("view", {tuple(key): packed for key, packed in view.items()}, alive)
        found = {(one.key, one.value, header(one, "standings-reason")) for one in self._world.letters()}
        _equal("dead letters", dict.fromkeys(found), dict.fromkeys(letters))

    def metas(self) -> list[LaneMeta]:
        """What the lanes say, asked past all faults."""
        gate = self._world.redis
        before, lost = gate.before, gate.lost_replies
        gate.before, gate.lost_replies = (lambda _: None), 0
        try:
            return self._world.metas()
        finally:
            gate.before, gate.lost_replies = before, lost

    def _is_alive(self, board: str, ended_at: int) -> bool:
        kind = board.split(":")[1]
        if kind == "all":
            return True
        return window_of(kind, ended_at)[2] + _KEPT_DAYS[kind] * _DAY_MS > self._world.clock.now_at()


def _equal(what: str, found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> None:
    if found != expected:
        one, other = ({(key, str(value)) for key, value in side.items()} for side in (found, expected))
        raise Lost(f"{what}: {sorted(one - other, key=str)} should be {sorted(other - one, key=str)}")
