"""Deadline D: how old a fetched batch may be and still write truth (docs/recovery.md)."""

from __future__ import annotations

import time
from collections.abc import Callable

from schemas.errors import StoreUnavailable
from schemas.times import SECOND_MS

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ms() -> int:
    """Milliseconds on a clock that goes on while the process or the machine is stopped."""
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1_000_000


class DeadlineMissed(StoreUnavailable):
    """The batch is too old to write: drop it, fetch it again, take half of it."""


class Deadline:
    """Counts from `started_ms` on the boot clock; every write asks it first."""

    def __init__(self, started_ms: int, limit_ms: int, clock: Callable[[], int] = boot_ms) -> None:
        self._ends_ms = started_ms + limit_ms
        self._clock = clock

    @classmethod
    def after(cls, limit_ms: int, clock: Callable[[], int] = boot_ms) -> Deadline:
        """A deadline that counts from now."""
        return cls(clock(), limit_ms, clock)

    @property
    def left_s(self) -> float:
        """Seconds that are left; 0 when none are."""
        return max(0, self._ends_ms - self._clock()) / SECOND_MS

    def check(self) -> None:
        """Raises DeadlineMissed once the time is up."""
        if self._clock() >= self._ends_ms:
            raise DeadlineMissed("the batch missed its deadline")
