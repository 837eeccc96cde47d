"""A whole stack in a process of its own, to be killed at will."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.ports import find_free_port

DRIVER = Path(__file__).with_name("stack_driver.py")


def wait_for(what: Callable[[], Any], timeout_s: float = 15.0) -> Any:
    """Return the first true answer; fail when the time runs out."""
    give_up_at = time.monotonic() + timeout_s
    while time.monotonic() < give_up_at:
        if answer := what():
            return answer
        time.sleep(0.03)
    return pytest.fail(f"not within {timeout_s} s")


class RunningStack:
    """The driver process, what it has said, and its stack.json."""

    def __init__(self, data: Path, *flags: str, port: int | None = None) -> None:
        self.data = data
        self.port = port or find_free_port()
        self.output = data.with_name(f"{data.name}-output")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(DRIVER), str(data), str(self.port), *flags],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "XDG_STATE_HOME": str(data.with_name("state"))},
                start_new_session=True,
            )

    def lines(self) -> list[str]:
        return self.output.read_text().splitlines()

    def has_said(self, start: str) -> bool:
        return any(line.startswith(start) for line in self.lines())

    def file(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.data / "stack.json").read_text())
        return found

    def wait_until_ready(self) -> RunningStack:
        wait_for(lambda: self.has_said("ready ") or self.process.poll() is not None)
        assert self.has_said("ready "), self.output.read_text()
        return self

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


@pytest.fixture
def start_stack(tmp_path: Path) -> Iterator[Callable[..., RunningStack]]:
    started: list[RunningStack] = []

    def start(*flags: str, port: int | None = None, name: str = "data") -> RunningStack:
        started.append(RunningStack(tmp_path / name, *flags, port=port))
        return started[-1]

    yield start
    for stack in started:
        stack.end()
