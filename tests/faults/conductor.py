"""Plays a schedule on a stack: begins each fault in its time, ends it in its time, and starts again what died."""

from __future__ import annotations

import heapq
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

from tests.faults.load import Load, now_ms
from tests.faults.proxy import Weather
from tests.faults.reference import windows_of
from tests.faults.schedule import Fault, Kind
from tests.faults.stack import LANES, Stack

_DRAIN_S = 25.0
_REVIVE_S = 0.15


class Conductor:
    """One thread plays; it is the one that started the stack."""

    def __init__(self, stack: Stack, load: Load) -> None:
        self._stack = stack
        self._load = load
        self._pending: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._dead_since: dict[str, float] = {}
        self._resting: set[str] = set()
        self._dumps: list[Path] = []
        self.letters_lost_at = 0
        self.injected: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()

    def play(self, schedule: list[Fault]) -> None:
        """From the first fault to the end of the last; then all processes run and all stores answer."""
        began_s = time.monotonic()
        for fault in schedule:
            while time.monotonic() < began_s + fault.at_s:
                self.tick()
            if self._begin(fault):
                self.injected[fault.kind] += 1
            else:
                self.skipped[fault.kind] += 1
        while self._pending or self._dead_since:
            self.tick()
        for role in self._stack.roles:
            self._stack.armed(role).unlink(missing_ok=True)
        for dump in self._dumps:
            shutil.rmtree(dump, ignore_errors=True)

    def tick(self) -> None:
        """What has to be done by now: ends of faults, starts of what died."""
        now_s = time.monotonic()
        while self._pending and self._pending[0][0] <= now_s:
            heapq.heappop(self._pending)[2]()
        for name, role in self._stack.roles.items():
            if role.is_running() or name in self._resting:
                self._dead_since.pop(name, None)
            elif now_s - self._dead_since.setdefault(name, now_s) >= _REVIVE_S:
                self._stack.restart(role)
        time.sleep(0.01)

    def wait(self, condition: Callable[[], bool], within_s: float) -> bool:
        """True once the condition holds; the rest goes on meanwhile."""
        give_up_at = time.monotonic() + within_s
        while not condition():
            if time.monotonic() > give_up_at:
                return False
            self.tick()
        return True

    # ------------------------------------------------------------------ faults

    def _begin(self, fault: Fault) -> bool:
        """Begin it, and order its end; False where it can't be done now."""
        action: Callable[[Fault], bool | None] = getattr(self, f"_{fault.kind.name.lower()}", self._change_weather)
        return action(fault) is not False

    def _later(self, after_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._pending, (time.monotonic() + after_s, next(self._order), action))

    def _pause(self, number_of: Callable[[], int], lasts_s: float) -> None:
        pid = number_of()
        os.kill(pid, signal.SIGSTOP)

        def resume() -> None:
            with suppress(ProcessLookupError):  # it was killed, and is not started again yet
                if number_of() == pid:
                    os.kill(pid, signal.SIGCONT)

        self._later(lasts_s, resume)

    def _updater(self, fault: Fault) -> str:
        number: int = fault.details["updater"]
        return self._stack.updaters[number]

    def _updater_killed_at(self, fault: Fault) -> bool | None:
        role = self._updater(fault)
        if self._stack.armed(role).exists():
            return False
        self._arm(role, fault)
        return None

    def _arm(self, role: str, fault: Fault) -> None:
        text = f"{fault.details['step']}:{fault.details['times']}"
        staged = self._stack.armed(role).with_suffix(".new")
        staged.write_text(text)
        staged.replace(self._stack.armed(role))

    def _updater_killed(self, fault: Fault) -> None:
        self._stack.roles[self._updater(fault)].kill()

    def _updater_stopped(self, fault: Fault) -> bool | None:
        name = self._updater(fault)
        role = self._stack.roles[name]
        if not role.is_running():
            return False
        os.kill(role.pid, signal.SIGTERM)
        return None

    def _updater_paused(self, fault: Fault) -> bool | None:
        role = self._stack.roles[self._updater(fault)]
        if not role.is_running():
            return False
        self._pause(lambda: role.pid, fault.lasts_s)
        return None

    def _keeper_killed_at(self, fault: Fault) -> None:
        self._arm("keeper", fault)
        self._delete(f"{{{fault.details['lane']}}}:meta")

    def _keeper_killed(self, fault: Fault) -> None:
        del fault
        self._stack.roles["keeper"].kill()

    def _api_killed(self, fault: Fault) -> None:
        del fault
        self._stack.roles["api"].kill()

    def _redis_wiped(self, fault: Fault) -> None:
        del fault
        self._stack.wipe_redis()

    def _redis_dumped(self, fault: Fault) -> None:
        """A copy of the append-only file as it is now: its end may be torn, as after a kill."""
        del fault
        dump = self._stack.folder / f"dump-{next(self._order)}"
        shutil.copytree(self._stack.folder / "redis", dump)
        self._dumps.append(dump)

    def _redis_rolled_back(self, fault: Fault) -> bool | None:
        if not self._dumps:
            return False
        self._stack.wipe_redis(self._dumps[fault.details["dump"] % len(self._dumps)])
        return None

    def _redis_killed(self, fault: Fault) -> None:
        del fault
        self._stack.redis.kill()
        self._stack.start(self._stack.redis)

    def _redis_paused(self, fault: Fault) -> None:
        self._pause(lambda: self._stack.redis.pid, fault.lasts_s)

    def _key_deleted(self, fault: Fault) -> bool:
        return self._delete(f"{{{fault.details['lane']}}}:{fault.details['key']}")

    def _board_deleted(self, fault: Fault) -> bool:
        board = windows_of(self._load.rules.leaderboard, now_ms())[fault.details["board"]][0]
        return any(self._delete(f"{{{lane}}}:{board}") for lane in range(LANES))

    def _delete(self, key: str) -> bool:
        return self._stack.delete_key(key)

    def _dynamodb_held(self, fault: Fault) -> None:
        self._change_weather(fault)

    def _change_weather(self, fault: Fault) -> None:
        share = fault.details.get("share", 0.0)
        changes = {
            Kind.STATEMENTS_FAIL: {"throttled_statements": share / 2, "conflicting_statements": share / 2},
            Kind.STATEMENTS_AMBIGUOUS: {"ambiguous_statements": share / 2},
            Kind.CALLS_THROTTLED: {"throttled_calls": share},
            Kind.KEYS_UNPROCESSED: {"unprocessed_keys": share},
            Kind.REPLIES_LATE: {"late_replies": share / 3},
            Kind.DYNAMODB_HELD: {"held": True},
        }[fault.kind]
        weather = self._stack.proxy.weather

        def clear() -> None:
            for name in changes:
                setattr(weather, name, getattr(Weather(), name))

        for name, value in changes.items():
            setattr(weather, name, value)
        self._later(fault.lasts_s, clear)

    def _dynamodb_paused(self, fault: Fault) -> None:
        self._pause(lambda: self._stack.dynamodb.pid, fault.lasts_s)

    def _dynamodb_killed(self, fault: Fault) -> None:
        del fault
        self._stack.restart(self._stack.dynamodb)

    # ------------------------------------------------------------------ the log

    def _partition_added(self, fault: Fault) -> bool | None:
        del fault
        loop = self._stack.loop
        settled = loop.begin(self._load.settle_delicate(8))
        self.wait(settled.done, 10)
        if not settled.result(1):
            return False
        self._init(self._stack.count_partitions() + 1)
        self._forget_the_former_number()
        return None

    def _init(self, partitions: int | None = None) -> None:
        """While it is tried, whatever stands in its way comes to its end."""
        if not self.wait(lambda: self._stack.try_init(partitions), 30):
            raise TimeoutError("standings init does not come through")

    def _forget_the_former_number(self) -> None:
        """A producer asks for the number of partitions every 5 minutes: until then a match's reports may part ways."""
        self._stack.restart(self._stack.roles["api"])
        self._load.only_timed = False

    def _topic_recreated(self, fault: Fault) -> bool | None:
        del fault
        return self._lose_the_log(self._stack.delete_topic)

    def _broker_emptied(self, fault: Fault) -> bool | None:
        del fault

        def empty() -> None:
            self._stack.restart(self._stack.broker)
            self.letters_lost_at = now_ms()  # the dead letters were in it, too

        return self._lose_the_log(empty)

    def _lose_the_log(self, lose: Callable[[], None]) -> bool | None:
        """What was accepted and not recorded would be gone with it: that is the log's loss, so it is drained before."""
        finished = self._stack.loop.begin(self._load.finish_submitting())
        drained = self.wait(finished.done, _DRAIN_S) and self.wait(self._stack.is_drained, _DRAIN_S)
        if drained:
            before = self._stack.count_partitions()
            lose()
            self._init()
            if self._stack.count_partitions() != before:
                self._forget_the_former_number()
        self._stack.loop.run(self._load.go_on())
        return drained

    def _broker_killed(self, fault: Fault) -> None:
        del fault
        assert self._stack.kafka is not None
        self._stack.kafka.kill()
        self._stack.kafka.start()

    def _broker_paused(self, fault: Fault) -> None:
        kafka = self._stack.kafka
        self._pause(lambda: kafka.pid if kafka else self._stack.broker.pid, fault.lasts_s)
