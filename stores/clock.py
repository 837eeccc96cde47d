"""The wall clock, in epoch milliseconds."""

from __future__ import annotations

import time


def now_ms() -> int:
    """UTC epoch ms; an integer all the way, unlike time.time()."""
    return time.time_ns() // 1_000_000
