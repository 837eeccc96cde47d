"""One child of the stack: how it is started, asked, and stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from embedded import processes
from embedded.probes import Probe, probe_nothing

LOG_BYTES_MAX = 16 * 1024 * 1024
_POLL_S = 0.02


@dataclass(frozen=True)
class ChildSpec:
    """What a child is: its command line, its environment, and what it needs of others."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)  # holds keys
    probe: Probe = probe_nothing
    needs: tuple[str, ...] = ()
    ready_timeout_s: float = 120.0  # reading a large append-only file or journal takes its time
    stop_timeout_s: float = 10.0
    orphan_signal: int = signal.SIGTERM
    """What the kernel sends it when the supervisor is killed (Linux)."""


class Child:
    """A process that follows a ChildSpec; restartable; one thread owns it (the main one)."""

    def __init__(self, spec: ChildSpec, log: Path) -> None:
        self.spec = spec
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._log_begins_at = 0

    @property
    def pid(self) -> int:
        """The pid of the present or last process, 0 before the first start."""
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start the process in a session of its own, so that Ctrl-C reaches the supervisor alone."""
        with self.log.open("ab") as log:
            self._log_begins_at = log.tell()
            self._process = subprocess.Popen(  # noqa: S603 - the command lines are ours
                self.spec.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self.spec.env),
                cwd=self.log.parent,
                start_new_session=True,
                preexec_fn=processes.make_parent_death_hook(self.spec.orphan_signal),  # noqa: PLW1509 - takes no lock
            )

    def exit_code(self) -> int | None:
        """Return the exit code, negative for a signal; None while it runs or before it started."""
        return self._process.poll() if self._process else None

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_ready(self) -> bool:
        """Ask the probe once; a child that has ended is not ready, whoever answers in its place."""
        return self.is_running() and self.spec.probe(self.pid) and self.is_running()

    def kill(self) -> None:
        """Kill it and all that it started, at once; no zombie stays."""
        if self._process is not None:
            processes.signal_group(self.pid, signal.SIGKILL)
            self._process.wait()

    def stop(self) -> bool:
        """Ask it to end, wait at most `stop_timeout_s`, then kill; False if it had to be killed."""
        if self._process is None:
            return True
        willing = True
        if self.is_running():
            self._process.send_signal(signal.SIGTERM)
            give_up_at = time.monotonic() + self.spec.stop_timeout_s
            # not wait(timeout): a signal handler that raises must be able to poll the same process
            while self.is_running() and time.monotonic() < give_up_at:
                time.sleep(_POLL_S)
            willing = not self.is_running()
        self.kill()  # what it left in its group, too
        return willing

    def wait_until_ready(self) -> bool:
        """Wait at most `ready_timeout_s`; False if it ended or the time ran out."""
        give_up_at = time.monotonic() + self.spec.ready_timeout_s
        while self.is_running() and time.monotonic() < give_up_at:
            if self.is_ready():
                return True
            time.sleep(_POLL_S)
        return False

    def begin_log(self) -> None:
        """Put the log of the last run aside as NAME.log.1 and start an empty one."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists():
            self.log.replace(self.log.with_name(f"{self.log.name}.1"))
        self.log.touch(mode=0o600)

    def bound_log(self) -> None:
        """Copy a log above LOG_BYTES_MAX to NAME.log.1 and empty it; the child appends on."""
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES_MAX:
            shutil.copyfile(self.log, self.log.with_name(f"{self.log.name}.1"))
            os.truncate(self.log, 0)

    def explain_end(self) -> str:
        """Say in one line how it ended, with the last line of its log and where the rest is."""
        code = self.exit_code()
        if code is None:
            how = f"is not ready after {self.spec.ready_timeout_s:g} s"
        elif code < 0:
            how = f"was ended by {signal.Signals(-code).name}"
        else:
            how = f"ended with exit code {code}"
        return f"{self.spec.name} {how}: {_read_last_line(self.log, self._log_begins_at)} (see {self.log})"


def _read_last_line(log: Path, begins_at: int) -> str:
    """The last line of those after this place, unless the log was emptied since."""
    if not log.exists():
        return "no output"
    with log.open("rb") as file:
        size = log.stat().st_size
        file.seek(max(0 if begins_at > size else begins_at, size - 4096))
        lines = file.read().decode("utf-8", "replace").split("\n")
    told = [line.strip() for line in lines if line.strip()]
    return told[-1][:300] if told else "no output"
