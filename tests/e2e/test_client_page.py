"""The examples of docs/client.md do what the page says, in curl and in Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.stack import ROOT, running_stack
from tests.servers.missing import Missing, skip_or_fail

PAGE = (ROOT / "docs" / "client.md").read_text(encoding="utf-8")
# So that a refusal is an error, other than of the stream that is cut after its time.
CURL = 'set -e\ncurl() { command curl -sS --fail-with-body "$@" || [ $? -eq 28 ]; echo; }\n'


def examples(language: str, port: int) -> str:
    """All tested examples of a language as one program."""
    blocks = re.findall(rf"<!-- test: {language} -->\n```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 4
    program = "\n".join(blocks)
    assert program.count(":8080") == 1
    return program.replace(":8080", f":{port}")


@pytest.mark.timeout(180)
def test_the_examples_do_what_the_page_says(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        skip_or_fail(Missing("curl"))
    with running_stack(tmp_path) as stack:
        (tmp_path / ".standings").symlink_to(stack.data)
        python, shell = examples("python", stack.port), examples("sh", stack.port)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(
            [sys.executable, "-c", python], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines() == re.findall(r"# → (.*)", python)
        # The same in curl: it repeats what Python submitted, so that it changes nothing, and sees the same.
        done = subprocess.run(
            ["bash", "-c", CURL + shell], capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        replies = [line for line in done.stdout.splitlines() if line]
        assert [line for line in replies if '"status":422' in line] == [replies[3]]
        for shown in (
            '"player_id":"bo","score":12',
            '"missing":["ghost"]',
            "event: top",
            '"applied_at"',
            '"standings"',
        ):
            assert shown in done.stdout
