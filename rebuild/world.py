"""What is authoritative: the log there is, the layout and the truth there are, the leaderboards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.errors import StoreUnavailable
from schemas.leaderboards import Board, Leaderboard
from schemas.rows import Topology
from stores.lanes import LaneIds, topology_ids
from stores.log import LogAdmin, LogDescription
from stores.registry import Registry


@dataclass(frozen=True, slots=True)
class World:
    """One look at all of it."""

    log: LogDescription
    topology: Topology
    leaderboards: Mapping[str, Leaderboard]

    @property
    def ids(self) -> LaneIds:
        """What every lane must carry."""
        return topology_ids(self.log.log_id, self.topology)

    def boards(self, now_at: int) -> list[Board]:
        """All boards that may have entries now: by definitions and calendar, no registry is needed."""
        return [board for one in self.leaderboards.values() for board in one.existing_boards(now_at)]

    def boards_of(self, lane: int, now_at: int) -> list[Board]:
        """Those of a lane."""
        return [board for board in self.boards(now_at) if self.topology.lane_of(board.name) == lane]


def look(registry: Registry, admin: LogAdmin) -> World:
    """The world as it is now. Raises StoreUnavailable, also before `standings init`."""
    registry.reread()
    topology = registry.topology
    if topology is None:
        raise StoreUnavailable("there is no layout yet: run `standings init`")
    found = admin.describe()
    if found is None:
        raise StoreUnavailable("the topic is missing: run `standings init`")
    return World(found, topology, registry.leaderboards)
