"""The states of a lane and the only ways between them: one table, anything else is refused.

The scripts enforce the same in Redis, each by its precondition; this is what a process holds itself to.
A failure of Redis may put a lane back to LOST or to any earlier state at any time: that is no step of
ours, and is only ever learnt by looking.
"""

from __future__ import annotations

from enum import StrEnum

from schemas.errors import StandingsError


class LaneState(StrEnum):
    """What a lane can be. Readers read READY lanes only."""

    LOST = "lost"
    REBUILDING = "rebuilding"
    READY = "ready"


class LaneStep(StrEnum):
    """What is done to a lane."""

    BEGIN = "begin"
    FILL = "fill"
    FINISH = "finish"
    PROJECT = "project"
    REPAIR = "repair"
    RETIRE = "retire"


TRANSITIONS: dict[tuple[LaneState, LaneStep], LaneState] = {
    (LaneState.LOST, LaneStep.BEGIN): LaneState.REBUILDING,
    (LaneState.REBUILDING, LaneStep.BEGIN): LaneState.REBUILDING,
    (LaneState.READY, LaneStep.BEGIN): LaneState.REBUILDING,
    (LaneState.REBUILDING, LaneStep.FILL): LaneState.REBUILDING,
    (LaneState.REBUILDING, LaneStep.FINISH): LaneState.READY,
    (LaneState.READY, LaneStep.PROJECT): LaneState.READY,
    (LaneState.READY, LaneStep.REPAIR): LaneState.READY,
    (LaneState.LOST, LaneStep.RETIRE): LaneState.LOST,
    (LaneState.REBUILDING, LaneStep.RETIRE): LaneState.LOST,
    (LaneState.READY, LaneStep.RETIRE): LaneState.LOST,
}


class IllegalStep(StandingsError):
    """A step that a lane in this state can't take: a bug of the caller, refused before Redis is asked."""


class LaneMachine:
    """Where a process has brought a lane; `take` refuses what the table doesn't have."""

    def __init__(self, seen: LaneState) -> None:
        self.state = seen

    def check(self, step: LaneStep) -> LaneState:
        """The state after the step. Raises IllegalStep."""
        after = TRANSITIONS.get((self.state, step))
        if after is None:
            raise IllegalStep(f"a lane that is {self.state} can't {step}")
        return after

    def take(self, step: LaneStep) -> None:
        """The step was taken."""
        self.state = self.check(step)
