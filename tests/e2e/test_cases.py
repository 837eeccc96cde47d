"""The black-box cases, where they lie beside the project."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.stack import ROOT, RunningStack

CASES = ROOT.parent / "shared" / "cases"


@pytest.mark.timeout(400)
@pytest.mark.skipif(not (CASES / "run.py").exists(), reason="the cases are not beside this checkout")
def test_every_case_holds(stack: RunningStack, tmp_path: Path) -> None:
    command = tmp_path / "standings"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT}" XDG_STATE_HOME="{stack.data.parent / "state"}" '
        f'exec "{sys.executable}" -m cli "$@"\n'
    )
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    files = sorted(str(file) for file in CASES.glob("*.json"))
    arguments = ["--api", stack.url, "--key", stack.file["submit_key"], "--standings", str(command), *files]
    done = subprocess.run(
        [sys.executable, str(CASES / "run.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
