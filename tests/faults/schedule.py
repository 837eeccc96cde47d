"""Schedules: which faults happen when, all of it decided by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rebuild.failpoints import Step as RebuildStep
from updater.failpoints import Step as UpdaterStep


class Kind(StrEnum):
    """What is done to the deployment."""

    UPDATER_KILLED_AT = "updater killed at a step"
    UPDATER_KILLED = "updater killed"
    UPDATER_STOPPED = "updater stopped and started"
    UPDATER_PAUSED = "updater paused past its session"
    KEEPER_KILLED_AT = "keeper killed at a step of a rebuild"
    KEEPER_KILLED = "keeper killed"
    API_KILLED = "api killed"
    REDIS_WIPED = "redis killed with its data deleted"
    REDIS_DUMPED = "redis dumped"
    REDIS_ROLLED_BACK = "redis killed and restored from an older dump"
    REDIS_KILLED = "redis killed"
    REDIS_PAUSED = "redis paused"
    KEY_DELETED = "key deleted"
    BOARD_DELETED = "board's key deleted"
    STATEMENTS_FAIL = "statements throttled and in conflict"
    STATEMENTS_AMBIGUOUS = "statements executed and said to have failed"
    CALLS_THROTTLED = "calls throttled"
    KEYS_UNPROCESSED = "keys left unprocessed"
    REPLIES_LATE = "replies later than the time-out"
    DYNAMODB_HELD = "calls held"
    DYNAMODB_PAUSED = "emulator paused"
    DYNAMODB_KILLED = "emulator killed"
    PARTITION_ADDED = "partition added"
    TOPIC_RECREATED = "topic deleted and created anew"
    BROKER_EMPTIED = "broker restarted empty"
    BROKER_KILLED = "broker killed"
    BROKER_PAUSED = "broker paused"


# How often each is drawn. Of those that cost seconds of waiting a schedule has one at most.
_COMMON = {
    Kind.UPDATER_KILLED_AT: 8,
    Kind.UPDATER_KILLED: 2,
    Kind.UPDATER_PAUSED: 3,
    Kind.KEEPER_KILLED_AT: 4,
    Kind.KEEPER_KILLED: 1,
    Kind.API_KILLED: 1,
    Kind.REDIS_WIPED: 4,
    Kind.REDIS_ROLLED_BACK: 5,
    Kind.REDIS_KILLED: 1,
    Kind.REDIS_PAUSED: 3,
    Kind.KEY_DELETED: 5,
    Kind.BOARD_DELETED: 5,
    Kind.STATEMENTS_FAIL: 2,
    Kind.STATEMENTS_AMBIGUOUS: 2,
    Kind.CALLS_THROTTLED: 2,
    Kind.KEYS_UNPROCESSED: 2,
    Kind.REPLIES_LATE: 2,
    Kind.DYNAMODB_HELD: 2,
    Kind.DYNAMODB_PAUSED: 1,
    Kind.DYNAMODB_KILLED: 1,
}
# The embedded broker never again gives partitions to a group that one of several members has left in good order
# (all that stay are told to wait for the one that led them). One that dies is no trouble to it.
_ONLY_ON: dict[str, dict[Kind, int]] = {"embedded": {}, "kafka": {Kind.UPDATER_STOPPED: 2}}
_OF_THE_LOG = {
    # It can't add partitions.
    "embedded": [Kind.BROKER_EMPTIED, Kind.TOPIC_RECREATED, Kind.BROKER_PAUSED],
    "kafka": [Kind.BROKER_KILLED, Kind.TOPIC_RECREATED, Kind.PARTITION_ADDED, Kind.BROKER_PAUSED],
}
_KEYS = ["meta", "applied", "boards", "as_of"]
_PLAYS_S = 6.0


@dataclass(frozen=True)
class Fault:
    """One fault: when it begins (seconds into the schedule), how long it lasts, and the details of its kind."""

    at_s: float
    kind: Kind
    lasts_s: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)


def draw_schedule(seed: int, broker: str) -> list[Fault]:
    """The faults of a seed, in order."""
    dice = random.Random(f"{seed} {broker}")
    weights = _COMMON | _ONLY_ON[broker]
    kinds = dice.choices(list(weights), list(weights.values()), k=dice.randint(10, 16))
    kinds.append(Kind.REDIS_DUMPED)
    if dice.random() < 0.6:
        kinds.append(dice.choice(_OF_THE_LOG[broker]))
    faults = [_draw_fault(dice, kind) for kind in kinds]
    faults.append(Fault(0.0, Kind.REDIS_DUMPED))  # something to go back to
    return sorted(faults, key=lambda one: one.at_s)


def _draw_fault(dice: random.Random, kind: Kind) -> Fault:
    at_s = dice.uniform(0.5, _PLAYS_S)
    shortest_s, longest_s = _LASTS_S.get(kind, (0.0, 0.0))
    details = _DETAILS[kind](dice) if kind in _DETAILS else {}
    return Fault(round(at_s, 2), kind, round(dice.uniform(shortest_s, longest_s), 2), details)


def _one_of_two(dice: random.Random) -> dict[str, Any]:
    return {"updater": dice.randrange(2)}


def _share(dice: random.Random) -> dict[str, Any]:
    return {"share": round(dice.uniform(0.1, 0.7), 2)}


_LASTS_S = {
    Kind.UPDATER_PAUSED: (1.8, 3.0),
    Kind.REDIS_PAUSED: (0.3, 1.5),
    Kind.BROKER_PAUSED: (0.3, 1.5),
    Kind.DYNAMODB_HELD: (0.5, 2.5),
    Kind.DYNAMODB_PAUSED: (0.5, 1.5),
    Kind.STATEMENTS_FAIL: (0.5, 2.0),
    Kind.STATEMENTS_AMBIGUOUS: (0.5, 2.0),
    Kind.CALLS_THROTTLED: (0.5, 2.0),
    Kind.KEYS_UNPROCESSED: (0.5, 2.0),
    Kind.REPLIES_LATE: (0.5, 2.0),
}
_DETAILS: dict[Kind, Callable[[random.Random], dict[str, Any]]] = {
    Kind.UPDATER_KILLED_AT: lambda dice: {
        **_one_of_two(dice), "step": dice.choice(list(UpdaterStep)), "times": dice.choice([1, 1, 2, 3])
    },
    Kind.UPDATER_KILLED: _one_of_two,
    Kind.UPDATER_STOPPED: _one_of_two,
    Kind.UPDATER_PAUSED: _one_of_two,
    Kind.KEEPER_KILLED_AT: lambda dice: {
        "step": dice.choice(list(RebuildStep)), "times": dice.choice([1, 2, 3]), "lane": dice.randrange(3)
    },
    Kind.KEY_DELETED: lambda dice: {"lane": dice.randrange(3), "key": dice.choice(_KEYS)},
    Kind.BOARD_DELETED: lambda dice: {"board": dice.randrange(3)},
    Kind.REDIS_ROLLED_BACK: lambda dice: {"dump": dice.randrange(100)},
    Kind.STATEMENTS_FAIL: _share,
    Kind.STATEMENTS_AMBIGUOUS: _share,
    Kind.CALLS_THROTTLED: _share,
    Kind.KEYS_UNPROCESSED: _share,
    Kind.REPLIES_LATE: _share,
}  # fmt: skip
