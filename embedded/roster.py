"""The roster of a stack's processes, on disk, so that leftovers can be known and ended.

A supervisor that is killed with -9 can't end its children. Three things do: the kernel
(Linux, at once), a guard process that sees its pipe close (everywhere), and the next start.
All of them act only on a pid that runs exactly the command line that was noted.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from embedded import processes
from embedded.children import Child
from embedded.files import write_private
from embedded.services import with_project

GRACE_S = 3.0


def write_roster(path: Path, supervisor_pid: int, children: Iterable[Child]) -> None:
    """Note the running children, atomically."""
    listed = [{"name": c.spec.name, "pid": c.pid, "argv": list(c.spec.argv)} for c in children if c.is_running()]
    write_private(path, json.dumps({"supervisor": supervisor_pid, "children": listed}))


def end_leftovers(path: Path, supervisor_pid: int | None = None) -> list[str]:
    """End what a dead supervisor left running and return the names.

    With `supervisor_pid`, only if the roster is still that supervisor's.
    """
    try:
        roster = json.loads(path.read_text())
    except (OSError, ValueError):
        return []
    if supervisor_pid is not None and roster["supervisor"] != supervisor_pid:
        return []
    children = {child["pid"]: child for child in roster["children"]}
    ended = processes.end_groups({pid: child["argv"] for pid, child in children.items()}, GRACE_S)
    return [children[pid]["name"] for pid in ended]


class Guard:
    """A process that waits for the end of this one and then ends its children."""

    def __init__(self, roster: Path, supervisor_pid: int, env: dict[str, str]) -> None:
        # -S: nothing from site-packages is needed, and it starts in a third of the time
        argv = [sys.executable, "-S", "-m", "embedded.roster", str(roster), str(supervisor_pid)]
        self._process = subprocess.Popen(  # noqa: S603 - the command line is ours
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=with_project(env),
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """End the guard without its acting."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()


def main(arguments: list[str]) -> int:
    """Wait until standard input closes, which the end of the supervisor does; end its children."""
    sys.stdin.buffer.read()
    end_leftovers(Path(arguments[0]), int(arguments[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
