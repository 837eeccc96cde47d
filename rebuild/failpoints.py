"""The steps of a rebuild at which a test can end the process; see stores/failpoints.py."""

from __future__ import annotations

from enum import StrEnum

from stores.failpoints import reach

__all__ = ["Step", "reach"]


class Step(StrEnum):
    """The steps of a rebuild."""

    OFFSETS_READ = "offsets-read"
    BEGUN = "begun"
    FILLED = "filled"
    ALL_FILLED = "all-filled"
    FINISHED = "finished"
