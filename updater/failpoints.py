"""The steps of an updater at which a test can end the process, or look around; see stores/failpoints.py.

Inside one process a test passes a Reach of its own, and may raise, wait or look around there.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from stores.failpoints import reach

__all__ = ["Reach", "Step", "reach"]


class Step(StrEnum):
    """The steps of an updater's batch."""

    DECODED = "decoded"
    ROWS_WRITTEN = "rows-written"
    RECORDED = "recorded"
    DEAD_LETTERED = "dead-lettered"
    PROJECTED = "projected"
    COMMITTED = "committed"


Reach = Callable[[Step], None]
