"""Runs of schedules: a stack that several of them share, and what came of each."""

from __future__ import annotations

import random
import shutil
import time
import traceback
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.conductor import Conductor
from tests.faults.load import Load
from tests.faults.reference import Rules
from tests.faults.schedule import Fault, draw_schedule
from tests.faults.stack import Stack
from tests.faults.verdict import Verdict, is_healed, judge, lost_submissions
from tests.servers.kafka import running_kafka

_SUBMITTERS = 3
_READERS = 3
_HEAL_S = 30.0
_LEADERBOARDS = 12
# What a role needs to hear of a new leaderboard.
_HEARD_S = 3.0
_KAFKA = {"group.min.session.timeout.ms": "500"}


@dataclass
class Outcome:
    """One schedule, played."""

    seed: int
    schedule: list[Fault]
    conductor: Conductor
    verdict: Verdict = field(default_factory=Verdict)
    played_s: float = 0.0
    healed_s: float = 0.0
    took_s: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """What is printed of it."""
        verdict = self.verdict
        return {
            "seed": self.seed, "faults": sum(self.conductor.injected.values()), "accepted": verdict.accepted,
            "results": verdict.results, "conflicts": verdict.conflicts, "lost": verdict.lost, "reads": verdict.reads,
            "wrong_reads": verdict.wrong_reads, "audit_alarms": verdict.audit_alarms,
            "play_s": round(self.played_s, 1), "heal_s": round(self.healed_s, 2), "took_s": round(self.took_s, 1),
            "wrong": verdict.faults,
        }  # fmt: skip


class Runs:
    """Plays schedules one after the other on one stack, each on a leaderboard of its own.

    A stack is started anew after some schedules, and after one that went wrong: what it left is no fault of the next.
    Folders of those that went wrong stay, with all logs. Raises Missing where the broker can't be had.
    """

    def __init__(self, folder: Path, broker: str) -> None:
        self.broker = broker
        self._folder = folder
        self._open = ExitStack()
        self._stack: Stack | None = None
        self._left: list[Rules] = []
        self._made = 0
        self._stacks = 0

    def play(self, seed: int) -> Outcome:
        """One schedule, with traffic before, during and after it; then the verdict."""
        stack = self._stack or self._start()
        rules = self._take_leaderboard(stack)
        schedule = draw_schedule(seed, self.broker)
        load = Load(stack.api_url, stack.key, rules, random.Random(seed))
        stack.proxy.dice.seed(seed)
        outcome = Outcome(seed, schedule, Conductor(stack, load))
        began_s = time.monotonic()
        try:
            _play(stack, load, outcome)
        except Exception:  # noqa: BLE001 - it says something about this seed, and the others are still to come
            outcome.verdict.faults.append(traceback.format_exc())
        outcome.took_s = time.monotonic() - began_s
        if outcome.verdict.faults or (self._made >= _LEADERBOARDS and not self._left):
            self.end()
            if not outcome.verdict.faults:
                shutil.rmtree(self._place)
        return outcome

    def end(self) -> None:
        """End the stack. The next schedule gets another."""
        self._open.close()
        self._stack = None

    @property
    def _place(self) -> Path:
        return self._folder / f"stack-{self._stacks}"

    def _start(self) -> Stack:
        self._stacks += 1
        self._left, self._made = [], 0
        kafka = None
        if self.broker == "kafka":
            kafka = self._open.enter_context(running_kafka(self._place / "kafka", settings=_KAFKA))
        self._stack = Stack(self._place, self._stacks, kafka)
        self._open.callback(self._stack.close)
        return self._stack

    def _take_leaderboard(self, stack: Stack) -> Rules:
        """The next of those that every role knows already; some are made at a time."""
        if not self._left:
            for _ in range(_LEADERBOARDS // 2):
                order, least, most = [("higher", 0, 1_000_000), ("lower", -50, 5_000)][self._made % 2]
                rules = Rules(f"game-{self._made}", order, least, most)
                stack.define(rules)
                self._left.append(rules)
                self._made += 1
            time.sleep(_HEARD_S)
        return self._left.pop(0)


def _play(stack: Stack, load: Load, outcome: Outcome) -> None:
    conductor = outcome.conductor
    began_s = time.monotonic()
    stack.loop.run(load.lay_floor())
    stack.loop.run(load.begin(_SUBMITTERS, _READERS))
    try:
        conductor.play(outcome.schedule)
        ended_s = time.monotonic()
        outcome.played_s = ended_s - began_s
        finished = stack.loop.begin(load.finish_submitting())
        healed = conductor.wait(finished.done, _HEAL_S) and conductor.wait(lambda: is_healed(stack), _HEAL_S)
        outcome.healed_s = time.monotonic() - ended_s
        time.sleep(0.3)  # some reads of the healed boards
    finally:
        stack.loop.run(load.stop())
    outcome.verdict = judge(stack, load, conductor.letters_lost_at)
    if not healed:
        outcome.verdict.faults.insert(0, f"not healed within {_HEAL_S} s: {stack.metas()}")
    outcome.verdict.faults += [f"never acknowledged: {one.body}" for one in lost_submissions(load)[:5]]
