"""Leases: one runner per lane, or two would fence each other for ever. For liveness only; epochs keep it safe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

from schemas.errors import StandingsError, StoreUnavailable
from stores.catalogue import Catalogue

# How long a runner that died keeps its lane from the next one.
LEASE_MS = 6_000


class LeaseHeld(StandingsError):
    """Another runner holds the lane's lease: look again later."""


class Leases:
    """Leases of lanes, as rows of the catalogue."""

    def __init__(self, catalogue: Catalogue, now_at: Callable[[], int]) -> None:
        self._catalogue = catalogue
        self._now_at = now_at
        self._owner = str(uuid4())

    @contextmanager
    def hold(self, lane: int) -> Iterator[Callable[[], None]]:
        """Hold the lane's lease; what is given must be called now and then to prolong it. Raises LeaseHeld."""
        name = f"lane-{lane}"
        taken_at = 0

        def prolong() -> None:
            nonlocal taken_at
            now_at = self._now_at()
            if now_at - taken_at < LEASE_MS // 3:
                return
            try:
                taken = self._catalogue.take_lease(name, self._owner, now_at, now_at + LEASE_MS)
            except StoreUnavailable:
                if taken_at == 0:
                    raise
                return  # asked again at the next call; whoever takes the lane meanwhile fences this runner
            if not taken:
                raise LeaseHeld(f"another process is rebuilding lane {lane}")
            taken_at = now_at

        prolong()
        try:
            yield prolong
        finally:
            with suppress(StoreUnavailable):  # it runs out by itself
                self._catalogue.release_lease(name, self._owner)
