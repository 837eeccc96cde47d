"""Failpoints: where a test can end the process, named. Without STANDINGS_FAILPOINT they do nothing.

STANDINGS_FAILPOINT=recorded:3 ends the process as kill -9 does, the third time that step is reached.
Inside one process a test passes a Reach of its own, and may raise, wait or look around there.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from enum import StrEnum

VARIABLE = "STANDINGS_FAILPOINT"


class Step(StrEnum):
    """The steps of an updater's batch."""

    DECODED = "decoded"
    ROWS_WRITTEN = "rows-written"
    RECORDED = "recorded"
    DEAD_LETTERED = "dead-lettered"
    PROJECTED = "projected"
    COMMITTED = "committed"


Reach = Callable[[Step], None]


def reach(step: Step) -> None:
    """Ends the process here if it is the time that the variable names."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    name, _, times = wanted.partition(":")
    if name != step:
        return
    left = int(times or "1") - 1
    if left <= 0:
        os.kill(os.getpid(), signal.SIGKILL)
    os.environ[VARIABLE] = f"{name}:{left}"
