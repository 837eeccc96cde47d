"""What a role knows of leaderboards and topology: a copy that is reread, so that a change is seen within seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from schemas.leaderboards import Leaderboard
from schemas.rows import Topology
from stores.catalogue import Catalogue
from stores.deadline import boot_ms

REREAD_MS = 1_500
# `standings apply` returns after this long: every role has reread by then.
SEEN_WITHIN_S = 4.0


class Registry:
    """A copy of the catalogue. Reading it costs nothing; rereading two round trips. Raises StoreUnavailable."""

    def __init__(self, catalogue: Catalogue, clock: Callable[[], int] = boot_ms) -> None:
        self._catalogue = catalogue
        self._clock = clock
        self._read_at: int | None = None
        self._topology: Topology | None = None
        self.leaderboards: Mapping[str, Leaderboard] = {}

    @property
    def was_read(self) -> bool:
        """True once the catalogue was read: no leaderboards then means that there are none."""
        return self._read_at is not None

    @property
    def topology(self) -> Topology | None:
        """The topology as last read; None before the first read, or before `standings init`."""
        return self._topology

    def reread(self) -> None:
        """Read the catalogue now."""
        began_at = self._clock()
        fresh = self._catalogue.read_leaderboards()
        # A leaderboard that did not change keeps its object, and with it the cache of its boards.
        self.leaderboards = {
            name: known if (known := self.leaderboards.get(name)) == one else one for name, one in fresh.items()
        }
        self._topology = self._catalogue.read_topology()
        self._read_at = began_at

    def reread_when_old(self) -> None:
        """Read the catalogue where the copy is older than REREAD_MS."""
        if self._read_at is None or self._clock() - self._read_at >= REREAD_MS:
            self.reread()
