"""Names in the stores: Redis keys, tables, topics, groups. One prefix keeps two deployments apart."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

EVENTS = "match-events"
DEAD_LETTERS = "match-events.dlq"


@dataclass(frozen=True)
class LaneKeys:
    """The Redis keys of one lane. All share the hash tag `{lane}`, so that a script may touch them together."""

    prefix: str
    lane: int

    @cached_property
    def _stem(self) -> str:
        return f"{self.prefix}:{{{self.lane}}}:"

    @cached_property
    def meta(self) -> str:
        """HASH: state, epoch, ids, seq, as_of, progress. Absent: the lane is lost."""
        return self._stem + "meta"

    @cached_property
    def applied(self) -> str:
        """HASH: partition to next offset."""
        return self._stem + "applied"

    @cached_property
    def as_of(self) -> str:
        """HASH: partition to the time up to which its records are applied."""
        return self._stem + "as_of"

    @cached_property
    def boards(self) -> str:
        """SET of the boards that have a key in this lane."""
        return self._stem + "boards"

    @cached_property
    def expelled(self) -> str:
        """SET of (board, player) that were expelled and not yet settled."""
        return self._stem + "expelled"

    @cached_property
    def torn(self) -> str:
        """HASH: board to how often its key was found deleted by hand; not served until it was mended."""
        return self._stem + "torn"

    def board(self, board: str) -> str:
        """ZSET: player to packed. A board's name has a colon, so that it is none of the keys above."""
        return self._stem + board


@dataclass(frozen=True)
class Names:
    """The names of tables, topics, groups and lanes under a prefix."""

    prefix: str

    @property
    def scores(self) -> str:
        """The table of best scores."""
        return f"{self.prefix}-scores"

    @property
    def matches(self) -> str:
        """The table of receipts."""
        return f"{self.prefix}-matches"

    @property
    def leaderboards(self) -> str:
        """The table of definitions, with the topology and the leases."""
        return f"{self.prefix}-leaderboards"

    @property
    def events(self) -> str:
        """The topic of match events."""
        return f"{self.prefix}-{EVENTS}"

    @property
    def dead_letters(self) -> str:
        """The topic of dead letters."""
        return f"{self.prefix}-{DEAD_LETTERS}"

    def group(self, log_id: str) -> str:
        """The consumer group of a log: offsets that were committed for another log can't be met under it."""
        return f"{self.prefix}-updater-{log_id}"

    def lane(self, lane: int) -> LaneKeys:
        """The Redis keys of a lane."""
        return LaneKeys(self.prefix, lane)
