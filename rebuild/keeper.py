"""The keeper: compares every lane with what is authoritative, each second, and heals what can't be whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import structlog

from rebuild.leases import LeaseHeld
from rebuild.repairs import BoardRepairer
from rebuild.runner import Fenced, Runner
from rebuild.world import World, look
from schemas.errors import StoreUnavailable
from schemas.lane_states import LaneState
from schemas.settings import Settings
from schemas.times import SECOND_MS
from stores.catalogue import Catalogue
from stores.dynamodb import REQUEST_TIMEOUT_S
from stores.lanes import LaneMeta, Lanes
from stores.log import LogAdmin
from stores.registry import Registry
from stores.repairs import LaneMoved, LaneRepairs

LOOK_EVERY_S = 1.0
# Whoever is slower than this still holds the lease.
STUCK_AFTER_MS = 3_000
_FIRST_BACKOFF_MS = 500
_LONGEST_BACKOFF_MS = 30_000

log = structlog.get_logger("keeper")


@dataclass(frozen=True, slots=True)
class Healed:
    """One cure: of a lane (board is empty) or of a board in place."""

    lane: int
    board: str
    reason: str
    rows: int


@dataclass(slots=True)
class _Watched:
    """What the keeper remembers of a lane between two looks. All times in ms of the boot clock."""

    epoch: str = ""
    seq: int = -1
    moved_ms: int = 0
    failures: int = 0
    retry_ms: int = 0


class Keeper:
    """Looks at all lanes, and heals each that needs it. One thread owns it.

    `on_healed` hears of every cure, `on_failed` of every attempt that failed (lane, reason): for metrics.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - everything it looks at, and whom it tells
        self,
        lanes: Lanes,
        repairs: LaneRepairs,
        admin: LogAdmin,
        catalogue: Catalogue,
        runner: Runner,
        repairer: BoardRepairer,
        settings: Settings,
        now_at: Callable[[], int],
        boot_ms: Callable[[], int],
        on_healed: Callable[[Healed], None] = lambda _healed: None,
        on_failed: Callable[[int, str], None] = lambda _lane, _reason: None,
    ) -> None:
        self._lanes = lanes
        self._repairs = repairs
        self._admin = admin
        self._catalogue = catalogue
        self._registry = Registry(catalogue)
        self._runner = runner
        self._repairer = repairer
        self._now_at = now_at
        self._boot_ms = boot_ms
        self._on_healed = on_healed
        self._on_failed = on_failed
        # What a batch of an older log may still be writing: its deadline and one request's time-out.
        self._older_log_ms = settings.deadline_ms + REQUEST_TIMEOUT_S * SECOND_MS
        self._log: tuple[str, int] = ("", 0)
        self._watched: dict[int, _Watched] = {}
        self._policy = ""

    def run(self, stopping: threading.Event) -> None:
        """Look every second until told to stop; an outage of a store is said and waited out."""
        while not stopping.is_set():
            try:
                self.look()
            except StoreUnavailable as error:
                log.warning("a store is away: lanes can't be looked at", error=str(error))
            stopping.wait(LOOK_EVERY_S)

    def look(self) -> list[Healed]:
        """Look once at every lane and heal what needs it; the cures. Raises StoreUnavailable."""
        world = look(self._registry, self._admin)
        if self._log[0] != world.log.log_id:
            self._log = (world.log.log_id, self._catalogue.note_log(world.log.log_id, self._now_at()))
        self._demand_noeviction()
        starts = self._admin.log_starts(world.log.partitions)
        healed = []
        for lane in range(world.topology.lanes):
            meta = self._lanes.read_meta(lane)
            reason = self._reason(lane, meta, world, starts)
            cures = self._tend(lane, meta, world) if reason is None else self._rebuild(lane, reason, world)
            for cure in cures:
                log.info("healed", lane=cure.lane, board=cure.board, reason=cure.reason, rows=cure.rows)
                self._on_healed(cure)
            healed += cures
        self._retire_lanes(world)
        return healed

    def _reason(self, lane: int, meta: LaneMeta, world: World, starts: Mapping[int, int]) -> str | None:
        """Why the lane needs a rebuild; None where it doesn't, or not yet."""
        watched = self._watched.setdefault(lane, _Watched())
        now_ms = self._boot_ms()
        if (meta.epoch, meta.seq) != (watched.epoch, watched.seq):
            watched.epoch, watched.seq, watched.moved_ms = meta.epoch, meta.seq, now_ms
        if meta.state is LaneState.LOST:
            return "lost"
        if meta.state is LaneState.REBUILDING:
            return "its rebuild makes no progress" if now_ms - watched.moved_ms > STUCK_AFTER_MS else None
        differing = {
            "of another log": meta.ids.log_id != world.ids.log_id,
            "of another truth": meta.ids.truth_id != world.ids.truth_id,
            "of another layout": meta.ids.topology != world.ids.topology,
            "unaware of new partitions": meta.partitions < world.log.partitions,
            "behind the log's start": any(meta.applied.get(one, 0) < start for one, start in starts.items()),
        }
        return next((reason for reason, holds in differing.items() if holds), None)

    def _rebuild(self, lane: int, reason: str, world: World) -> list[Healed]:
        if self._now_at() - self._log[1] < self._older_log_ms:
            return []  # a batch of an older log may still be writing truth, and nobody would replay it
        log.warning("rebuilding a lane", lane=lane, reason=reason)
        return self._attempt(lane, reason, lambda: Healed(lane, "", reason, self._runner.rebuild(lane, world).rows))

    def _tend(self, lane: int, meta: LaneMeta, world: World) -> list[Healed]:
        """In a READY lane: mend boards whose key was deleted, settle notes, forget boards whose time is over."""
        if meta.state is not LaneState.READY:
            return []
        now_at = self._now_at()
        boards = {board.name: board for board in world.boards_of(lane, now_at)}
        cures = []
        for name in sorted(meta.torn | set(self._repairs.missing_boards(lane, sorted(meta.boards)))):
            board = boards.get(name)
            if board is None:
                self._attempt(lane, "over", lambda name=name: self._forget(lane, meta, name))  # type: ignore[misc]
            elif not board.is_expired(now_at):
                log.warning("mending a board whose key was deleted", lane=lane, board=name)
                cures += self._attempt(
                    lane, "its key was deleted",
                    lambda board=board: Healed(  # type: ignore[misc]
                        lane, board.name, "its key was deleted", self._repairer.repair(board, world).rows
                    ),
                )  # fmt: skip
        if meta.expelled:
            self._attempt(lane, "notes", lambda: self._settle(lane, meta, world))
        return cures

    def _attempt(self, lane: int, reason: str, heal: Callable[[], Healed | None]) -> list[Healed]:
        """Try a cure, unless the last ones failed a moment ago."""
        watched = self._watched[lane]
        if self._boot_ms() < watched.retry_ms:
            return []
        try:
            cure = heal()
        except LeaseHeld as error:
            # Somebody is at it, or died at it: its lease runs out soon, and waiting longer would cost readers.
            watched.retry_ms = self._boot_ms() + _FIRST_BACKOFF_MS
            log.info("a cure is another's", lane=lane, reason=reason, error=str(error))
            return []
        except (Fenced, LaneMoved, StoreUnavailable) as error:
            watched.failures += 1
            wait_ms = min(_FIRST_BACKOFF_MS * 2 ** min(watched.failures, 10), _LONGEST_BACKOFF_MS)
            watched.retry_ms = self._boot_ms() + wait_ms
            log.warning("a cure did not finish", lane=lane, reason=reason, error=str(error), retry_in_ms=wait_ms)
            self._on_failed(lane, reason)
            return []
        watched.failures = 0
        return [] if cure is None else [cure]

    def _forget(self, lane: int, meta: LaneMeta, board: str) -> None:
        self._repairs.forget(lane, meta.epoch, board)

    def _settle(self, lane: int, meta: LaneMeta, world: World) -> None:
        self._repairer.settle_notes(meta, lane, world.boards_of(lane, self._now_at()))

    def _retire_lanes(self, world: World) -> None:
        """Remove lanes that an earlier layout had and this one has not."""
        for lane in range(world.topology.lanes, world.topology.lanes_before):
            meta = self._lanes.read_meta(lane)
            if meta.stored_state:
                self._repairs.retire(lane, meta)
                log.info("retired a lane that the layout no longer has", lane=lane)

    def _demand_noeviction(self) -> None:
        policy = self._lanes.eviction_policy()
        if policy not in ("", "noeviction") and policy != self._policy:
            log.error("Redis may evict scores: set maxmemory-policy to noeviction", policy=policy)
        self._policy = policy
