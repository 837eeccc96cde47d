"""Retries: how long a call is tried, and how long it pauses in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True)
class Retries:
    """A call that nobody answers, or that is answered by 502, 503 or 504, is repeated until `deadline_s` has passed.

    The pause is random, from 0 to `first_s`, twice that, and so on up to `most_s`, on top of what
    the service asks for by Retry-After. A service that takes no connection at all is only waited for
    until `connect_deadline_s`. `deadline_s=0`: no retries. Submissions are idempotent, so that their
    retries are safe.
    """

    deadline_s: float = 30.0
    connect_deadline_s: float = 30.0
    first_s: float = 0.1
    most_s: float = 5.0
    clock_s: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random


class Budget:
    """What is left of one call's time."""

    def __init__(self, retries: Retries) -> None:
        self._retries = retries
        self._began_s = 0.0
        self._failures = 0
        self.renew()

    def renew(self) -> None:
        """Something came through: all begins anew."""
        self._began_s = self._retries.clock_s()
        self._failures = 0

    def limit_s(self, timeout_s: float) -> float:
        """How long the next attempt may wait for something to happen."""
        if self._failures == 0:
            return timeout_s
        return max(0.001, min(timeout_s, self._ends_at_s() - self._retries.clock_s()))

    def pause_s(self, asked_s: float | None = None, *, is_connected: bool = True) -> float | None:
        """How long to pause before the next attempt; None where the deadline would pass meanwhile."""
        retries = self._retries
        most_s = min(retries.most_s, retries.first_s * 2 ** min(self._failures, 30))
        self._failures += 1
        pause_s = (asked_s or 0.0) + retries.chance() * most_s
        ends_at_s = self._ends_at_s()
        if not is_connected:
            ends_at_s = min(ends_at_s, self._began_s + retries.connect_deadline_s)
        return pause_s if retries.clock_s() + pause_s < ends_at_s else None

    def _ends_at_s(self) -> float:
        return self._began_s + self._retries.deadline_s


def parse_retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After, which may also be a date; None where it says nothing."""
    if text is None:
        return None
    if text.strip().isdecimal():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
