"""Processes of this machine: who is alive, what it runs, and how it ends with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PROC = Path("/proc/self/cmdline")


def is_alive(pid: int) -> bool:
    """Tell whether this pid is a process that runs; a zombie does not, and holds no port or lock."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    if not _PROC.exists():
        return read_command_line(pid) != []
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in {"Z", "X"}


def read_command_line(pid: int) -> list[str]:
    """Return the arguments of a process, [] if there is none or it is a zombie.

    Without /proc (macOS) `ps` answers, and the arguments come split at blanks.
    """
    entry = Path(f"/proc/{pid}/cmdline")
    if _PROC.exists():
        try:
            return [os.fsdecode(part) for part in entry.read_bytes().split(b"\0")[:-1]]
        except OSError:
            return []
    command = ["/bin/ps", "-ww", "-o", "stat=,command=", "-p", str(pid)]
    answer = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - a fixed command
    words = answer.stdout.split()
    return [] if not words or words[0].startswith("Z") else words[1:]


def runs(pid: int, argv: Sequence[str]) -> bool:
    """Tell whether this pid runs exactly this command line (so that a reused pid doesn't)."""
    found = read_command_line(pid)
    return found != [] and " ".join(found).split() == " ".join(argv).split()


def signal_group(pid: int, number: int) -> None:
    """Signal the whole session that a child leads; silently nothing when it is gone."""
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        # macOS answers EPERM where only zombies are left
        return


def end_groups(commands: Mapping[int, Sequence[str]], grace_s: float) -> list[int]:
    """End children that a dead process left, with their groups: SIGTERM, after `grace_s` SIGKILL.

    Takes the command line of each pid; leaves alone, and out of the answer, one that runs
    something else by now.
    """
    ended = [pid for pid, argv in commands.items() if runs(pid, argv)]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in ended:
            signal_group(pid, number)
        give_up_at = time.monotonic() + grace_s
        while any(is_alive(pid) for pid in ended) and time.monotonic() < give_up_at:
            time.sleep(0.02)
    return ended


def make_parent_death_hook(number: int) -> Callable[[], None] | None:
    """Return what a forked child calls before exec, so that it gets `number` when this process dies.

    However that happens. None where the kernel can't do that (not Linux). The kernel watches the
    *thread* that forked: start children from the main thread only.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl  # loaded here: no import after the fork
    parent = os.getpid()

    def tie_to_parent() -> None:
        prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:  # it died between fork and prctl
            os._exit(1)

    return tie_to_parent
