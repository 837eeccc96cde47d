"""Errors, sorted by what the caller must do.

A repeat or a lower score is a result, not an error, and has no class here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an input: where it stands and what would be right.

    `place` is a JSON pointer (`/results/0/score`) in a body, or the name of a query parameter.
    """

    place: str
    detail: str


class StandingsError(Exception):
    """The base of all errors that Standings raises on purpose."""


class InvalidEvent(StandingsError):
    """The event can never be applied: dead-letter it (updater) or refuse it (edge)."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{fault.place}: {fault.detail}" for fault in faults))
        self.faults = faults


class MalformedJson(StandingsError):
    """The bytes are not JSON at all: refuse them; a retry of the same bytes can't succeed."""


class UnknownLeaderboard(StandingsError):
    """No leaderboard has this id: refuse, or dead-letter when a strong read confirms it."""

    def __init__(self, leaderboard: str) -> None:
        super().__init__(f"no leaderboard is called {leaderboard!r}")
        self.leaderboard = leaderboard


class UnknownBoard(StandingsError):
    """The name is not that of a board, or its window has not opened yet."""


class BoardExpired(StandingsError):
    """The board's window closed longer ago than its retention."""


class InvalidDefinition(StandingsError):
    """A leaderboard's definition contradicts itself, or can't be changed in this way."""


class StoreUnavailable(StandingsError):
    """A store did not do what was asked, or nobody knows whether it did: retry, commit nothing."""


class BoardNotReady(StandingsError):
    """The board's lane can't prove that it is whole: answer 503, never its content.

    `progress` is what the rebuild says of itself, None where none is running.
    """

    def __init__(self, lane: int, state: str, progress: str | None = None) -> None:
        super().__init__(f"lane {lane} is {state}")
        self.lane = lane
        self.state = state
        self.progress = progress
