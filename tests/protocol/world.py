"""The state that the model searches."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.reference_lane import Ids, Lane, find

TRUTH = "truth"
FAULTS = (
    "crash", "timeout", "abort", "zombie", "keep", "rollback", "loss", "delete", "retention", "new log", "new layout",
    "grow", "rebuild", "mend", "expel",
)  # fmt: skip
Offsets = tuple[int, int | None]  # offset, as_of; offset -1: none committed


class Event(NamedTuple):
    """A result: it brings a value to a row. The same name twice is a repeat."""

    name: str
    row: int
    value: int


class Scope(NamedTuple):
    """How much is searched. `logs`: per log and partition the events that may be accepted, in order.

    `rows`: board and player; the board's number decides its lane. `layouts`: numbers of lanes, one after the other.
    `budget`: how often each fault may happen. `foreign`: an entry that nobody recorded (row, value).
    """

    name: str
    logs: tuple[tuple[tuple[Event, ...], ...], ...]
    rows: tuple[tuple[str, str], ...]
    budget: dict[str, int]
    layouts: tuple[int, ...] = (1,)
    partitions: int = 0
    batch: int = 1
    prefilter: bool = False
    foreign: tuple[int, int] | None = None
    foreign_truth: bool = False
    lost_at_first: bool = False
    cures: int = 1


class Updater(NamedTuple):
    """An updater of one partition, in the midst of a batch or idle."""

    partition: int
    log: int
    layout: int
    position: int
    at: str = "idle"
    first: int = 0
    after: int = 0
    as_of: int | None = None
    partitions: int = 0
    todo: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()
    repeats: tuple[int, ...] = ()
    images: tuple[tuple[int, int], ...] = ()
    lane: int = 0
    seek: int = -1
    zombie: bool = False


class Cure(NamedTuple):
    """A rebuild of a lane, a mending of a torn board, an expulsion of an entry, or an operator adding a partition."""

    kind: str
    lane: int
    at: str
    epoch: str = ""
    log: int = 0
    layout: int = 0
    offsets: tuple[Offsets, ...] = ()
    partitions: int = 0
    seen: tuple[str, str] = ("", "")
    board: str = ""
    token: str = ""
    row: int = 0
    image: int = 0
    score: int = 0
    steps: int = 0


class World(NamedTuple):
    """Everything there is. `accepted`: (log, partition, offset) in order; a time is how many were accepted by then.

    `written`: the events whose rows were attempted.
    """

    log: int
    ends: tuple[int, ...]
    starts: tuple[int, ...]
    accepted: tuple[tuple[int, int, int], ...]
    truth: tuple[int, ...]
    written: frozenset[str]
    receipts: frozenset[str]
    committed: tuple[tuple[Offsets, ...], ...]
    lanes: tuple[Lane, ...]
    kept: tuple[tuple[Lane, ...], ...]
    updaters: tuple[Updater, ...]
    zombies: tuple[Updater, ...]
    cures: tuple[Cure, ...]
    layout: int
    fresh: int
    budget: tuple[int, ...]


def ids_of(log: int, layout: int) -> Ids:
    """What a lane of this log and layout carries."""
    return (f"log{log}", TRUTH, f"{layout} lanes")


def lane_of(board: str, layout: int) -> int:
    """The lane of a board, `b0`, `b1`, ..., among so many lanes."""
    return int(board[1:]) % layout


def is_whole(lane: Lane, board: str) -> bool:
    """True where neither the lane nor a look at its keys shows that the board was deleted by hand."""
    return find(lane.torn, board) is None and (board not in lane.boards or find(lane.zsets, board) is not None)
