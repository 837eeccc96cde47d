"""The supervisor: starts the children in order, restarts what dies, stops all in order.

It is one thread (the kernel ties children to the thread that started them), polls ten times a
second, and does nothing between. Order at the start and after deaths: a child waits for those
it needs. Order at the stop: see `stop`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from embedded.children import Child, ChildSpec
from embedded.errors import KilledAtOnce, StackError, StopRequested
from embedded.roster import Guard, end_leftovers, write_roster

STOP_ORDER = ("api", "updater", "keeper", "kafka", "redis", "dynamodb")

_TICK_S = 0.1
_START_TICK_S = 0.03
_LOG_CHECK_EVERY_S = 5.0
_TELL_EVERY_S = 5.0
_BACKOFF_FIRST_S = 0.1
_BACKOFF_MAX_S = 5.0
_STEADY_AFTER_S = 10.0

Hook = Callable[[str], None]


class _Watched:
    """A child with what its restarts need to know."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.is_up = False
        self.deaths = 0  # in a row
        self.started_at = 0.0
        self.ready_by = 0.0
        self.start_at: float | None = None  # None: it runs, or is not wanted

    def back_off(self, now: float) -> None:
        if now - self.started_at > _STEADY_AFTER_S:
            self.deaths = 0
        self.start_at = now + min(_BACKOFF_MAX_S, _BACKOFF_FIRST_S * 2**self.deaths)
        self.deaths += 1
        self.is_up = False


class Supervisor:
    """Owns the children of one stack, in the main thread.

    `after_restart` is called with the name of a child that was restarted and is ready, before
    those that need it are started; if it raises, that is told and it is tried again. `changed`
    is called when a restart is complete. `say` takes a line for the user.
    """

    def __init__(self, folder: Path, say: Hook, after_restart: Hook, changed: Callable[[], None]) -> None:
        self._roster = folder / "children.json"
        self._logs = folder / "logs"
        self._say = say
        self._after_restart = after_restart
        self._changed = changed
        self._watched: dict[str, _Watched] = {}
        self._guard: Guard | None = None
        self._signals = 0
        self._raise_on_signal = False
        self._is_launching = False
        self._must_kill = False
        self._complaint = ""
        self._logs_checked_at = 0.0
        self._unwritten: list[Callable[[], None]] = []

    def end_leftovers(self) -> None:
        """End what a crashed supervisor of this folder left running."""
        for name in end_leftovers(self._roster):
            self._say(f"ended {name}, left over from a stack that crashed")

    @property
    def pids(self) -> dict[str, int]:
        return {name: watched.child.pid for name, watched in self._watched.items()}

    def is_up(self, name: str) -> bool:
        """Tell whether a child is ready, and what follows its restart is done."""
        return self._watched[name].is_up

    def start(self, specs: Sequence[ChildSpec]) -> None:
        """Start children side by side; they are watched, and not yet known to be ready."""
        with self._holding_signals():
            if self._guard is None:
                self._guard = Guard(self._roster, os.getpid(), dict(os.environ))
            for spec in specs:
                child = Child(spec, self._logs / f"{spec.name}.log")
                child.begin_log()
                self._watched[spec.name] = _Watched(child)
                self._launch(self._watched[spec.name])

    def wait_until_ready(self, names: Sequence[str], timeout_s: float, tries: int = 1) -> None:
        """Wait until all of these are ready, restarting one that dies up to `tries` - 1 times.

        Errors: StackError with the last line of the log of the one that isn't.
        """
        give_up_at = time.monotonic() + timeout_s
        while not all(self._watched[name].is_up for name in names):
            for watched in self._watched.values():
                died = watched.child.exit_code() is not None
                if died and watched.deaths + 1 >= tries and watched.start_at is None:
                    raise StackError(watched.child.explain_end())
            if time.monotonic() > give_up_at:
                late = next(self._watched[name] for name in names if not self._watched[name].is_up)
                raise StackError(late.child.explain_end())
            self.wait_a_turn()

    def wait_a_turn(self) -> None:
        """Look at every child, and wait a moment; for who waits for more than children at the start."""
        if self._signals:  # what a hook swallowed
            raise StopRequested
        self.tick()
        time.sleep(_START_TICK_S)

    def supervise(self) -> None:
        """Watch until SIGINT or SIGTERM asks to stop."""
        self._raise_on_signal = False
        while not self._signals:
            self.tick()
            time.sleep(_TICK_S)

    def tick(self) -> None:
        """Look at every child once: note deaths, restart what is due, see what became ready."""
        now = time.monotonic()
        for watched in self._watched.values():
            if watched.start_at is not None:
                if now >= watched.start_at and all(self.is_up(name) for name in self._needs(watched)):
                    self._launch(watched)
            elif watched.child.exit_code() is not None:
                self._note_death(watched, now)
            elif not watched.is_up:
                self._see_ready(watched, now)
        if now - self._logs_checked_at > _LOG_CHECK_EVERY_S:
            self._logs_checked_at = now
            for watched in self._watched.values():
                self._write(watched.child.bound_log)
            for write in self._unwritten:
                self._write(write)

    def stop(self, count_unrecorded: Callable[[], int] | None, drain_timeout_s: float) -> None:
        """Stop all in order: api, and once the log is drained updater, keeper, broker, stores.

        While it drains, the others are still restarted when they die. Without `count_unrecorded` (nothing
        was ever accepted) it isn't asked. The wait ends where the count has not fallen for so long: what
        is left in the log then is told. Errors: KilledAtOnce at a second SIGINT.
        """
        self._raise_on_signal = False
        self._stop_one("api")
        if count_unrecorded is not None and "updater" in self._watched:
            self._drain(count_unrecorded, drain_timeout_s)
        for name in [*STOP_ORDER, *reversed(self._watched)]:
            self._stop_one(name)
        self._dismiss_guard()
        self._write(self._write_roster)

    @contextmanager
    def handling_signals(self) -> Iterator[None]:
        """Take SIGINT and SIGTERM while this is open; before `supervise` they raise StopRequested."""
        self._raise_on_signal = True
        former = {number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        if self._signals > 1 and number == signal.SIGINT:
            self._must_kill = True
        if not self._is_launching:
            self._act_on_signals()

    def _act_on_signals(self) -> None:
        if self._must_kill:
            self._must_kill = False
            for watched in self._watched.values():
                watched.child.kill()
            self._dismiss_guard()
            raise KilledAtOnce
        if self._signals and self._raise_on_signal:
            self._raise_on_signal = False
            raise StopRequested

    @contextmanager
    def _holding_signals(self) -> Iterator[None]:
        """Put off what a signal does, so that no process is started and then not known."""
        former, self._is_launching = self._is_launching, True
        try:
            yield
        finally:
            self._is_launching = former
        if not former:
            self._act_on_signals()

    def _needs(self, watched: _Watched) -> list[str]:
        return [name for name in watched.child.spec.needs if name in self._watched]

    def _launch(self, watched: _Watched) -> None:
        with self._holding_signals():
            watched.child.start()
            watched.started_at = time.monotonic()
            watched.ready_by = watched.started_at + watched.child.spec.ready_timeout_s
            watched.start_at = None
            self._write(self._write_roster)

    def _write_roster(self) -> None:
        write_roster(self._roster, os.getpid(), [each.child for each in self._watched.values()])

    def _write(self, write: Callable[[], None]) -> None:
        """Write a file now or, where the disk is full, a little later: that ends nothing."""
        self._unwritten = [one for one in self._unwritten if one != write]
        try:
            write()
        except OSError as error:
            self._unwritten.append(write)
            self._complain(f"a file can't be written, which is tried again: {error}")

    def _note_death(self, watched: _Watched, now: float) -> None:
        self._say(f"{watched.child.explain_end()}; it is started again")
        watched.child.kill()  # what it left in its group
        watched.back_off(now)

    def _see_ready(self, watched: _Watched, now: float) -> None:
        name = watched.child.spec.name
        if not watched.child.is_ready():
            if now > watched.ready_by and watched.deaths:
                watched.child.kill()
            return
        if watched.deaths:
            try:
                self._after_restart(name)
            except Exception as error:  # noqa: BLE001 - a hook's failure must not end the supervision
                self._complain(f"{name} runs again, but what has to follow failed and is tried again: {error}")
                time.sleep(_TICK_S)
                return
        watched.is_up = True
        if watched.deaths:
            self._say(f"{name} runs again (pid {watched.child.pid})")
            self._write(self._changed)

    def _drain(self, count_unrecorded: Callable[[], int], timeout_s: float) -> None:
        fell_at = told_at = time.monotonic()
        least = sys.maxsize  # until it was told
        while (now := time.monotonic()) < fell_at + timeout_s:
            self.tick()
            try:
                count = count_unrecorded()
            except Exception as error:  # noqa: BLE001 - asked again until the time runs out
                self._complain(f"can't tell yet whether the log is drained: {error}")
                count = sys.maxsize
            if count == 0:
                return
            if count < least:
                least, fell_at = count, time.monotonic()
            if least < sys.maxsize and now > told_at + _TELL_EVERY_S:
                told_at = now
                self._say(f"{least} events are still to be recorded; Ctrl-C once more gives them up")
            time.sleep(_TICK_S)
        left = "those in it" if least == sys.maxsize else f"up to {least} events"
        self._say(f"the log was not drained any further for {timeout_s:g} s: {left} are lost with the broker")

    def _stop_one(self, name: str) -> None:
        watched = self._watched.pop(name, None)
        if watched is None:
            return
        try:
            if not watched.child.stop():
                self._say(f"{name} did not end within {watched.child.spec.stop_timeout_s:g} s and was killed")
        except KilledAtOnce:
            watched.child.kill()
            raise

    def _complain(self, line: str) -> None:
        """Say what is tried again several times a second only when it has changed."""
        if line != self._complaint:
            self._say(line)
        self._complaint = line

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None
