"""rebuild and audit: which boards are meant, what is done for each, and whether it held."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from rebuild.audit import Audited
from rebuild.repairs import Repaired
from rebuild.rows import Filling
from rebuild.runner import Fenced, LeaseHeld, Rebuilt
from rebuild.service import RebuildService
from rebuild.world import World
from schemas.boards import resolve_board
from schemas.errors import StandingsError, UnknownLeaderboard
from schemas.lane_states import LaneState
from schemas.leaderboards import Board
from schemas.settings import Settings
from stores.clock import now_ms
from stores.repairs import LaneMoved

_TRIES = 20
_WAIT_S = 1.0
_SERVED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Scope:
    """What a command is about: exactly one of these is set."""

    board: str | None = None
    leaderboard: str | None = None
    lane: int | None = None
    everything: bool = False

    def is_one(self) -> bool:
        """True where exactly one is set."""
        return [self.board is not None, self.leaderboard is not None, self.lane is not None, self.everything].count(
            True
        ) == 1


@contextmanager
def open_rebuild(
    settings: Settings, progress: Callable[[Filling], None] = lambda _filling: None
) -> Iterator[RebuildService]:
    """What rebuilds and audits, closed at the end."""
    service = RebuildService(settings, progress)
    try:
        yield service
    finally:
        service.close()


def boards_in(scope: Scope, world: World) -> list[Board]:
    """The boards of a scope that may have entries now. Raises StandingsError for a name that is none."""
    now_at = now_ms()
    if scope.board is not None:
        return [resolve_board(scope.board, world.leaderboards, now_at)]
    if scope.leaderboard is not None and scope.leaderboard not in world.leaderboards:
        raise UnknownLeaderboard(scope.leaderboard)
    return [
        board
        for board in world.boards(now_at)
        if not board.is_expired(now_at)
        and (scope.leaderboard is None or board.leaderboard == scope.leaderboard)
        and (scope.lane is None or world.topology.lane_of(board.name) == scope.lane)
    ]


def rebuild(service: RebuildService, scope: Scope) -> list[Rebuilt | Repaired]:
    """Bring the scope back from the scorebook; returns once its boards are served again.

    Boards of READY lanes are repaired in place; whole lanes (--lane, --all, or one that isn't READY) are
    rebuilt. Raises StandingsError where that didn't come about.
    """
    world = service.look()
    done: list[Rebuilt | Repaired] = []
    if scope.lane is not None and scope.lane >= world.topology.lanes:
        raise StandingsError(f"there is no lane {scope.lane}: the layout has {world.topology.lanes}")
    if scope.lane is not None or scope.everything:
        lanes = [scope.lane] if scope.lane is not None else range(world.topology.lanes)
        done += [_again(partial(_rebuild_lane, service, lane)) for lane in lanes]
        return _served(service, world, done)
    done += [_again(partial(_rebuild_board, service, board)) for board in boards_in(scope, world)]
    return _served(service, world, done)


def audit(service: RebuildService, scope: Scope, sample: int | None) -> Iterator[Audited]:
    """Audit every board of the scope, one after the other."""
    world = service.look()
    for board in boards_in(scope, world):
        yield service.auditor.audit(board, world, sample)


def _rebuild_lane(service: RebuildService, lane: int) -> Rebuilt:
    return service.runner.rebuild(lane, service.look())


def _rebuild_board(service: RebuildService, board: Board) -> Rebuilt | Repaired:
    world = service.look()
    lane = world.topology.lane_of(board.name)
    meta = service.lanes.read_meta(lane)
    if meta.state is LaneState.READY and meta.ids == world.ids:
        return service.repairer.repair(board, world)
    return service.runner.rebuild(lane, world)


def _again(work: Callable[[], Rebuilt | Repaired]) -> Rebuilt | Repaired:
    """Try until it is done: another runner, such as the keeper, may be at the lane."""
    for _ in range(_TRIES - 1):
        try:
            return work()
        except (Fenced, LaneMoved, LeaseHeld):
            time.sleep(_WAIT_S)
    return work()


def _served(service: RebuildService, world: World, done: list[Rebuilt | Repaired]) -> list[Rebuilt | Repaired]:
    """Wait until the lanes that were touched are READY."""
    lanes = {one.lane if isinstance(one, Rebuilt) else world.topology.lane_of(one.board) for one in done}
    until_s = time.monotonic() + _SERVED_WITHIN_S
    while waiting := [lane for lane in lanes if service.lanes.read_meta(lane).state is not LaneState.READY]:
        if time.monotonic() > until_s:
            raise StandingsError(f"lane {waiting[0]} is not served: see `standings status`")
        time.sleep(0.1)
    return done
