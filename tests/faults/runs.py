"""Runs of schedules: a stack that several of them share, and what came of each."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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


@dataclass
class Outcome:
    """One schedule, played."""

    seed: int
    schedule: list[Fault]
    injected: Counter[str]
    skipped: Counter[str]
    verdict: Verdict
    played_s: float
    healed_s: float
    took_s: float

    def as_json(self) -> dict[str, Any]:
        """What is printed of it."""
        verdict = self.verdict
        return {
            "seed": self.seed, "faults": sum(self.injected.values()), "accepted": verdict.accepted,
            "results": verdict.results, "conflicts": verdict.conflicts, "lost": verdict.lost, "reads": verdict.reads,
            "wrong_reads": verdict.wrong_reads, "audit_alarms": verdict.audit_alarms,
            "play_s": round(self.played_s, 1), "heal_s": round(self.healed_s, 2), "took_s": round(self.took_s, 1),
            "wrong": verdict.faults,
        }  # fmt: skip


@dataclass
class Runs:
    """Plays schedules one after the other on one stack, each on a leaderboard of its own."""

    stack: Stack
    broker: str
    _left: list[Rules] = field(default_factory=list)
    _made: int = 0

    def play(self, seed: int) -> Outcome:
        """One schedule, with traffic before, during and after it; then the verdict."""
        rules = self._take_leaderboard()
        began_s = time.monotonic()
        dice = random.Random(seed)
        self.stack.proxy.dice.seed(seed)
        load = Load(self.stack.api_url, self.stack.key, rules, dice)
        conductor = Conductor(self.stack, load)
        schedule = draw_schedule(seed, self.broker)
        self.stack.loop.run(load.lay_floor())
        self.stack.loop.run(load.begin(_SUBMITTERS, _READERS))
        try:
            conductor.play(schedule)
            ended_s = time.monotonic()
            played_s = ended_s - began_s
            finished = self.stack.loop.begin(load.finish_submitting())
            healed = conductor.wait(finished.done, _HEAL_S) and conductor.wait(lambda: is_healed(self.stack), _HEAL_S)
            healed_s = time.monotonic() - ended_s
            time.sleep(0.3)  # some reads of the healed boards
        finally:
            self.stack.loop.run(load.stop())
        verdict = judge(self.stack, load, conductor.letters_lost_at)
        if not healed:
            verdict.faults.insert(0, f"not healed within {_HEAL_S} s: {self.stack.metas()}")
        verdict.faults += [f"never acknowledged: {one.body}" for one in lost_submissions(load)[:5]]
        return Outcome(
            seed,
            schedule,
            conductor.injected,
            conductor.skipped,
            verdict,
            played_s,
            healed_s,
            time.monotonic() - began_s,
        )

    def _take_leaderboard(self) -> Rules:
        """The next of those that every role knows already; some are made at a time."""
        if not self._left:
            for _ in range(_LEADERBOARDS // 2):
                order, least, most = [("higher", 0, 1_000_000), ("lower", -50, 5_000)][self._made % 2]
                rules = Rules(f"game-{self._made}", order, least, most)
                self.stack.define(rules)
                self._left.append(rules)
                self._made += 1
            time.sleep(_HEARD_S)
        return self._left.pop(0)


@contextmanager
def running(folder: Path, seed: int, broker: str) -> Iterator[Runs]:
    """A stack, started, on the embedded broker or on a real Kafka. Raises Missing where that can't be had."""
    if broker == "kafka":
        settings = {"group.min.session.timeout.ms": "500", "delete.topic.enable": "true"}
        with running_kafka(folder / "kafka", settings=settings) as kafka:
            yield from _runs(Stack(folder, seed, kafka), broker)
    else:
        yield from _runs(Stack(folder, seed), broker)


def _runs(stack: Stack, broker: str) -> Iterator[Runs]:
    try:
        yield Runs(stack, broker)
    finally:
        stack.close()
