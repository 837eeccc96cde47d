"""Failpoints: where a test can end the process, named. Without STANDINGS_FAILPOINT they do nothing.

STANDINGS_FAILPOINT=recorded:3 ends the process as kill -9 does, the third time that step is reached. With
STANDINGS_FAILPOINT=@FILE the file says so instead, now or later: it arms a process that runs already, and is gone
once it has fired.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum
from pathlib import Path

VARIABLE = "STANDINGS_FAILPOINT"


def reach(step: StrEnum) -> None:
    """Ends the process here if it is the time that the variable, or its file, names."""
    wanted = os.environ.get(VARIABLE)
    if not wanted:
        return
    file = Path(wanted[1:]) if wanted.startswith("@") else None
    if file is not None:
        if not file.exists():
            return
        wanted = file.read_text(encoding="utf-8")
    name, _, times = wanted.partition(":")
    if name != step:
        return
    left = int(times or "1") - 1
    if left <= 0:
        if file is not None:
            file.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if file is not None:
        file.write_text(f"{name}:{left}", encoding="utf-8")
    else:
        os.environ[VARIABLE] = f"{name}:{left}"
