"""The keeper: compares every lane with what is authoritative, each second, and rebuilds what can't be whole."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from schemas.errors import StoreUnavailable
from schemas.settings import Settings
from schemas.times import SECOND_MS
from stores.dynamodb import REQUEST_TIMEOUT_S
from stores.lanes import LaneMeta, Lanes, LaneState
from stores.log import LogAdmin
from stores.registry import Registry
from rebuild.runner import Fenced, LeaseHeld, Rebuilt, Runner, World

LOOK_EVERY_S = 1.0
STUCK_AFTER_MS = 10_000
_FIRST_BACKOFF_MS = 500
_LONGEST_BACKOFF_MS = 30_000

log = structlog.get_logger("keeper")


@dataclass(slots=True)
class _Watched:
    """What the keeper remembers of a lane between two looks. All times in ms of the boot clock."""

    epoch: str = ""
    seq: int = -1
    moved_ms: int = 0
    failures: int = 0
    retry_ms: int = 0


class Keeper:
    """Looks at all lanes, and starts the rebuild of each that needs it. One thread owns it."""

    def __init__(
        self,
        lanes: Lanes,
        admin: LogAdmin,
        registry: Registry,
        runner: Runner,
        settings: Settings,
        now_at: Callable[[], int],
        boot_ms: Callable[[], int],
    ) -> None:
        self._lanes = lanes
        self._admin = admin
        self._registry = registry
        self._runner = runner
        self._now_at = now_at
        self._boot_ms = boot_ms
        # What a batch of an older log may still be writing: its deadline and one request's time-out.
        self._older_log_ms = 0 if settings.embedded else settings.deadline_ms + REQUEST_TIMEOUT_S * SECOND_MS
        self._log_id = ""
        self._log_since_ms = 0
        self._watched: dict[int, _Watched] = {}
        self._said_policy = ""

    def run(self, stopping: threading.Event) -> None:
        """Look every second until told to stop; an outage of a store is said and waited out."""
        while not stopping.is_set():
            try:
                self.look()
            except StoreUnavailable as error:
                log.warning("a store is away: lanes can't be looked at", error=str(error))
            stopping.wait(LOOK_EVERY_S)

    def look(self) -> list[Rebuilt]:
        """Look once at every lane and heal what needs it; what was rebuilt. Raises StoreUnavailable."""
        world = self._world()
        self._demand_noeviction()
        starts = self._admin.log_starts(world.log.partitions)
        healed = []
        for lane in range(world.topology.lanes):
            meta = self._lanes.read_meta(lane)
            reason = self._reason(lane, meta, world, starts)
            if reason is not None and (rebuilt := self._heal(lane, reason, meta, world)) is not None:
                healed.append(rebuilt)
        return healed

    def _world(self) -> World:
        self._registry.reread()
        topology = self._registry.topology
        if topology is None:
            raise StoreUnavailable("there is no topology yet: run `standings init`")
        found = self._admin.describe()
        if found is None:
            raise StoreUnavailable("the topic is missing: run `standings init`")
        if found.log_id != self._log_id:
            self._log_id = found.log_id
            self._log_since_ms = self._boot_ms()
        return World(found, topology, self._registry.leaderboards)

    def _reason(self, lane: int, meta: LaneMeta, world: World, starts: dict[int, int]) -> str | None:
        """Why the lane needs a rebuild; None where it doesn't, or not yet."""
        watched = self._watched.setdefault(lane, _Watched())
        now_ms = self._boot_ms()
        if (meta.epoch, meta.seq) != (watched.epoch, watched.seq):
            watched.epoch, watched.seq, watched.moved_ms = meta.epoch, meta.seq, now_ms
        if meta.state is LaneState.LOST:
            return "lost"
        if meta.state is LaneState.REBUILDING:
            return "the rebuild makes no progress" if now_ms - watched.moved_ms > STUCK_AFTER_MS else None
        if meta.ids.log_id != world.ids.log_id:
            return "of another log"
        if meta.ids.truth_id != world.ids.truth_id:
            return "of another truth"
        if meta.ids.topology != world.ids.topology:
            return "of another layout"
        if meta.partitions < world.log.partitions:
            return "unaware of new partitions"
        if any(meta.applied.get(partition, 0) < start for partition, start in starts.items()):
            return "behind the log's start"
        gone = self._missing_boards(lane, meta, world)
        return f"without the key of {gone[0]}" if gone else None

    def _missing_boards(self, lane: int, meta: LaneMeta, world: World) -> list[str]:
        """Boards that the lane names and that have no key although their time has not come."""
        now_at = self._now_at()
        alive = {board.name for board in world.boards_of(lane, now_at) if not board.is_expired(now_at)}
        return self._lanes.missing_boards(lane, sorted(meta.boards & alive))

    def _heal(self, lane: int, reason: str, meta: LaneMeta, world: World) -> Rebuilt | None:
        watched = self._watched[lane]
        now_ms = self._boot_ms()
        if now_ms < watched.retry_ms:
            return None
        if meta.ids.log_id != world.ids.log_id and now_ms - self._log_since_ms < self._older_log_ms:
            # A batch of an older log may still be writing truth. A lost lane can't tell of which log it was.
            return None
        log.warning("rebuilding a lane", lane=lane, reason=reason)
        try:
            rebuilt = self._runner.rebuild(lane, world)
        except (Fenced, LeaseHeld, StoreUnavailable) as error:
            watched.failures += 1
            watched.retry_ms = now_ms + min(_FIRST_BACKOFF_MS * 2**watched.failures, _LONGEST_BACKOFF_MS)
            log.warning("the rebuild did not finish", lane=lane, error=str(error))
            return None
        watched.failures = 0
        log.info("a lane is ready", lane=lane, boards=rebuilt.boards, rows=rebuilt.rows)
        return rebuilt

    def _demand_noeviction(self) -> None:
        policy = self._lanes.eviction_policy()
        if policy not in ("", "noeviction") and policy != self._said_policy:
            log.error("Redis may evict scores: set maxmemory-policy to noeviction", policy=policy)
        self._said_policy = policy
