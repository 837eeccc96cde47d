"""The state machine: everything that may happen to a deployment, in any order and in the middle of anything.

The code under test is the real one, from the updater's session down to the scripts in a real Valkey. A turn of an
updater, or a look of the keeper, may be interrupted at any step and ahead of any call to a store: there an interlude
happens, and then the interrupted one goes on, as a process that was stopped for a while, unless it was killed.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import ClassVar

import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from schemas.errors import StoreUnavailable
from tests.fakes.deployment import Deployment, UpdaterProcess
from tests.fakes.dynamo_faults import DynamoFaults
from tests.model.checks import Checks, Lost
from tests.model.disturbances import Disturber
from tests.model.reference import LEADERBOARDS, Reference
from tests.model.reports import CHANGES, SCORES, Body, changed, ended, reports
from updater.failpoints import Step

_HOUR_MS = 3_600_000
_NONSENSE = ("invalid-json", "invalid-key", "invalid-request", "leaderboard-not-found")
# Where an updater and the keeper are interrupted: at a step, ahead of a script, or of their n-th call to a store.
IN_A_TURN: Sequence[str | int] = (*Step, *Step, "prefilter", "project", *range(1, 9))
IN_A_LOOK: Sequence[str | int] = ("begin", "fill", "fill", "finish", "finish", "mend", *range(1, 6))
INTERLUDES = ("die", "vanish", "other", "keeper", *Disturber.names)
_DRAIN_TURNS = 400


class Killed(BaseException):
    """kill -9, seen from inside."""


class DeploymentMachine(RuleBasedStateMachine):
    """See the module. Subclasses narrow the search, or put a mutant in."""

    client: ClassVar[redis.Redis]
    troubles: ClassVar[Sequence[str]] = INTERLUDES
    losses: ClassVar[Sequence[str]] = ("lose all", "lose key", "rollback", "wait")
    in_a_turn: ClassVar[Sequence[str | int]] = IN_A_TURN
    in_a_look: ClassVar[Sequence[str | int]] = IN_A_LOOK
    leaderboards: ClassVar[Sequence[str]] = ("fine", "coarse", "flat")
    players: ClassVar[Sequence[str]] = ("p", "q", "a:b#{x}")
    matches: ClassVar[Sequence[str]] = ("m1", "m2", "m3", "m/{4}")

    def __init__(self) -> None:
        super().__init__()
        definitions = {
            name: {part: one[part] for part in ("order", "min", "max")}
            | {"windows": list(one["ticks"]), "retention_days": {"daily": 1}, "peak_writes_per_s": 700}
            for name, one in LEADERBOARDS.items()
        }
        self.world = Deployment(self.client, definitions, deadline_ms=3_000, batch_rows=6, max_dead_letter_share=1)
        self.prepare(self.world)
        self.is_broken = False
        self.reference = Reference()
        self.told: dict[bytes, tuple[Body, str | None]] = {}
        self.letters: set[tuple[bytes, bytes, str]] = set()
        self.mix: Sequence[str] = ()
        self.keeper = self.world.keeper()
        self.updaters = (self.world.updater(), self.world.updater())
        self.disturber = Disturber(self.world, self.updaters, self._is_movable)
        self.checks = Checks(self.world, self.reference, self.told)

    def prepare(self, world: Deployment) -> None:
        """Where a mutant is put in."""

    def teardown(self) -> None:
        try:
            if not self.is_broken:
                self.settle_and_compare()
        finally:
            self.world.close()

    # ------------------------------------------------------------------ what is reported

    @initialize(mix=st.sets(st.sampled_from(INTERLUDES), min_size=2, max_size=5), ready=st.sampled_from([1, 1, 0]))
    def start(self, mix: set[str], ready: int) -> None:
        """A first keeper and updaters have been here, or nobody. In one run few kinds of trouble are mixed."""
        self.mix = sorted(mix & {*self.troubles}) or self.troubles
        if ready:
            self.look()
            self.turn("both", 5)

    @rule(data=st.data(), times=st.integers(1, 3))
    def report(self, data: st.DataObject, times: int) -> None:
        for _ in range(times):
            leaderboard = data.draw(st.sampled_from(self.leaderboards), label="leaderboard")
            self.publish(data.draw(reports(leaderboard, self.players, self.matches), label="report"))

    @rule(data=st.data(), change=st.sampled_from(CHANGES), after_ms=st.sampled_from([0, -40, -24 * _HOUR_MS]))
    def report_again(self, data: st.DataObject, change: str, after_ms: int) -> None:
        """A repeat, or a conflict: with another score, or another time."""
        sound = [body for body, reason in self.told.values() if reason not in _NONSENSE]
        if sound:
            body = data.draw(st.sampled_from(sound), label="again")
            score = data.draw(st.sampled_from(SCORES[body["leaderboard"]]), label="score")
            self.publish(changed(body, change, score, after_ms))

    @rule(kind=st.sampled_from(["bytes", "score", "leaderboard", "ahead", "key"]))
    def report_nonsense(self, kind: str) -> None:
        body: Body = {"match_id": "m1", "leaderboard": "fine", "player_id": "p", "score": 1}
        if kind == "bytes":
            self._append({}, b"m1", b'{"match_id": "m1",', "invalid-json")
        elif kind == "key":
            self._append({}, b"m2", json.dumps(body).encode(), "invalid-key")
        elif kind == "ahead":
            self.publish(body | ended(self.world.clock.now_at() + _HOUR_MS))
        else:
            self.publish(body | {kind: {"score": 4, "leaderboard": "none"}[kind]})

    def publish(self, body: Body) -> None:
        """Tell the deployment and the reference."""
        reason = self.reference.tell(body, self.world.clock.now_at())
        value = json.dumps({name: one for name, one in body.items() if name != "ended_ms"}, ensure_ascii=False)
        self._append(body, body["match_id"].encode(), value.encode(), reason)

    def _append(self, body: Body, key: bytes, value: bytes, reason: str | None) -> None:
        self.told[value] = body, reason
        if reason is not None:
            self.letters.add((key, value, reason))
        self.world.append(key, value)

    def _is_movable(self, value: bytes) -> bool:
        """True where it would be the same event on a later topic."""
        return b"ended_at" in value and self.told[value][1] != "invalid-request"

    # ------------------------------------------------------------------ what runs, and is interrupted

    @rule(which=st.sampled_from(["both", "both", "first", "second"]), times=st.integers(1, 3))
    def turn(self, which: str, times: int) -> None:
        chosen = {"both": self.updaters, "first": self.updaters[:1], "second": self.updaters[1:]}[which]
        for _ in range(times):
            for process in chosen:
                self._turn(process)

    @rule(data=st.data(), reports=st.sampled_from([1, 1, 1, 0, 3]))
    def turn_with_interlude(self, data: st.DataObject, reports: int) -> None:
        """The first updater that gets there in its next turns is interrupted."""
        self.report(data, reports)
        self._arm(data.draw(st.sampled_from(self.in_a_turn), label="where"), self._draw_interlude(data))
        self.turn("both", 2)
        self._disarm()

    @rule(
        data=st.data(), reports=st.sampled_from([1, 1, 0, 2]), nth=st.sampled_from([1, 1, 2]), number=st.integers(0, 20)
    )
    def look_with_interlude(self, data: st.DataObject, reports: int, nth: int, number: int) -> None:
        """Something is lost, and the keeper is interrupted while it heals it, if it gets there."""
        self.disturber.do(data.draw(st.sampled_from(self.losses), label="loss"), number)
        self.report(data, reports)
        self._arm(data.draw(st.sampled_from(self.in_a_look), label="where"), self._draw_interlude(data), nth)
        self.look()
        self._disarm()

    @rule(data=st.data(), number=st.integers(0, 20))
    def disturb(self, data: st.DataObject, number: int) -> None:
        if found := [one for one in self.mix if one in Disturber.names]:
            self.disturber.do(data.draw(st.sampled_from(found), label="what"), number)

    @rule()
    def look(self) -> None:
        try:
            self.keeper.look()
        except StoreUnavailable:
            pass
        except Killed:
            self.keeper = self.world.keeper()

    def _turn(self, process: UpdaterProcess) -> None:
        if process.is_running:
            return  # it is interrupted
        if not any(one.is_running for one in self.updaters):
            self.disturber.dump([meta.applied for meta in self.checks.metas()])
        try:
            process.turn()
        except Killed:
            process.die()

    def _draw_interlude(self, data: st.DataObject) -> Callable[[], None]:
        part = st.tuples(st.sampled_from([*self.mix, "other"]), st.integers(0, 20))
        parts = data.draw(st.lists(part, min_size=1, max_size=4), label="interlude")
        return lambda: self._play(parts)

    def _play(self, parts: Sequence[tuple[str, int]]) -> None:
        interrupted = [one for one in self.updaters if one.is_running]
        for what, number in parts:
            if what == "die":
                raise Killed
            if what == "vanish":
                for one in interrupted:
                    one.vanish()
            elif what == "other":
                self.turn("both", 2)
            elif what == "keeper":
                self.look()
            else:
                self.disturber.do(what, number)
            self.check()

    def _arm(self, where: str | int, interlude: Callable[[], None], nth: int = 1) -> None:
        """Let the interlude happen once: at the n-th time that this step or script is reached, or that many calls."""
        calls: Counter[str | int] = Counter()

        def reach(name: str) -> None:
            if threading.current_thread() is threading.main_thread():
                calls[name] += 1
                if calls[where] == nth or calls.total() == where:
                    _await_readers()
                    self._disarm()
                    interlude()

        def at(step: Step) -> None:
            self.check()
            if step == where:
                self._disarm()
                interlude()

        for process in self.updaters:
            process.at = at
        self.world.redis.before = reach
        self.world.dynamodb.faults.before = lambda operation, _: reach(operation)

    def _disarm(self) -> None:
        for process in self.updaters:
            process.at = lambda _: self.check()
        self.world.redis.before = lambda _: None
        self.world.dynamodb.faults.before = None

    # ------------------------------------------------------------------ what has to hold

    @invariant()
    def check(self) -> None:
        try:
            self.checks.check_now()
        except Lost:
            self.is_broken = True
            raise

    @rule()
    def settle_and_compare(self) -> None:
        """When the disturbances have ended and all is drained, everything is exactly as the reference has it."""
        self._disarm()
        self.world.dynamodb.faults = DynamoFaults()
        self.world.redis.lost_replies = 0
        try:
            self._drain()
            self.checks.compare(self.letters)
        except Lost:
            self.is_broken = True
            raise

    def _drain(self) -> None:
        for _ in range(_DRAIN_TURNS // 3):
            self.turn("both", 3)
            self.disturber.advance(400)
            self.look()
            if self.checks.is_drained():
                return
        raise Lost(f"not drained: committed {self.world.committed()}, {self.checks.metas()}")


def _await_readers() -> None:
    """Let the keeper's queries that are under way end, so that what they have read doesn't depend on threads."""
    for thread in threading.enumerate():
        if thread.name.startswith("rows"):
            thread.join(10)
