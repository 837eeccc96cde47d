"""`standings up` as a process of its own, and what tests do with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from embedded.ports import find_free_port

ROOT = Path(__file__).parents[2]
READY_WITHIN_S = 60
HEALED_WITHIN_S = 15  # on 2 quiet cores it is below 3


class RunningStack:
    """A stack on free ports in a folder of its own; its output is kept and shown when a test fails."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.data = folder / "data"
        self.output = folder / "output"
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._environment = bare_environment(folder)
        self._options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.ready_after_s = 0.0

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        began_s = time.monotonic()
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli", "up", "--data", str(self.data), "--port", str(self.port), *self._options],
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=ROOT,
            )
        while not (self.data / "stack.json").exists():
            if self.process.poll() is not None or time.monotonic() > began_s + READY_WITHIN_S:
                pytest.fail(f"no stack:\n{self.logs()}")
            time.sleep(0.05)
        self.ready_after_s = time.monotonic() - began_s

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to stop, and wait; fails unless it ends well."""
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            assert self.process.wait(40) == 0, self.output.read_text()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process = None

    @property
    def file(self) -> dict[str, Any]:
        """What stack.json says."""
        found: dict[str, Any] = json.loads((self.data / "stack.json").read_text())
        return found

    def kill(self, child: str) -> int:
        """Kill -9 of a child; its pid."""
        pid: int = self.file["pids"][child]
        os.kill(pid, signal.SIGKILL)
        return pid

    def pause(self, child: str) -> None:
        """SIGSTOP of a child."""
        os.kill(self.file["pids"][child], signal.SIGSTOP)

    def resume(self, child: str) -> None:
        """SIGCONT of a child."""
        os.kill(self.file["pids"][child], signal.SIGCONT)

    def logs(self) -> str:
        """The ends of what the stack and its children have said."""
        said = [self.output, *sorted(self.data.glob("logs/*.log"))]
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-2_000:]}" for log in said)

    def command(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        """`standings ...` against this stack, found by its folder."""
        return run_command(*arguments, stdin=stdin, environment=self.environment)

    @property
    def environment(self) -> dict[str, str]:
        """That of a command that finds this stack by its folder."""
        return self._environment | {"STANDINGS_DATA": str(self.data)}

    def open_redis(self) -> redis.Redis:
        """A client of the boards' Valkey, for the caller to close."""
        return redis.Redis.from_url(self.file["redis"])

    def audit(self, *scope: str) -> None:
        """The view agrees with the truth. A lane that isn't ready is waited for; a difference fails at once."""

        def agrees() -> bool:
            done = self.command("audit", *(scope or ("--all",)))
            assert done.returncode == 0 or done.stderr, done.stdout
            return done.returncode == 0

        wait_for("a view that agrees with the truth", agrees, 60)

    def wipe_redis(self) -> int:
        """Kill Valkey and delete its data; the pid that it had."""
        killed = self.kill("redis")
        for kept in (self.data / "redis").iterdir():
            shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
        return killed

    def delete_keys(self) -> None:
        """Every key of the prefix, while all runs."""
        with self.open_redis() as client:
            client.unlink(*client.scan_iter("lb:*"))

    def watch_healing(self, board: str, size: int, killed: int | None = None) -> float:
        """Read until the board is whole; after how many seconds. Fails where a reply shows a part of it as a whole.

        `killed`: the pid of the Valkey that was killed, in whose place another must be up.
        """
        began_s = time.monotonic()
        with httpx.Client(base_url=self.url, timeout=15) as client:
            while time.monotonic() < began_s + HEALED_WITHIN_S:
                reply = client.get(f"/v1/boards/{board}/top", params={"n": 1000})
                if reply.status_code == httpx.codes.OK:
                    assert (reply.json()["size"], len(reply.json()["entries"])) == (size, min(size, 1000))
                    if self.file["pids"]["redis"] != killed:
                        return time.monotonic() - began_s
                    continue
                assert reply.status_code == httpx.codes.SERVICE_UNAVAILABLE, reply.text
                assert reply.json()["type"].rpartition("/")[2] in {"board-not-ready", "store-unavailable"}, reply.text
                time.sleep(0.01)
        pytest.fail(f"{board} is not whole after {HEALED_WITHIN_S} s")

    def submit_csv(self, text: str, *, leaderboard: str) -> None:
        """Rows `match,player,score`, in the log once this returns."""
        rows = "".join(f"{row},{leaderboard}\n" for row in text.split())
        done = self.command("submit", "-", stdin=rows.encode())
        assert done.returncode == 0, done.stderr

    def apply(self, *names: str, **fields: Any) -> None:
        """Leaderboards, known to all roles once this returns. Takes 4 s however many they are."""
        definition = {"order": "higher", "min": 0, "max": 1_000_000, "windows": ["all"]} | fields
        lines = [f"{field} = {json.dumps(value)}" for field, value in definition.items()]
        file = self.data.parent / f"{names[0]}.toml"
        file.write_text("\n".join(line for name in names for line in (f"[leaderboards.{name}]", *lines)))
        done = self.command("apply", str(file))
        assert done.returncode == 0, done.stderr

    def get(self, path: str, **parameters: str | int) -> httpx.Response:
        """A read."""
        return httpx.get(f"{self.url}{path}", params=parameters, timeout=15)

    def submit(self, match: dict[str, Any], wait: str = "?wait=5") -> httpx.Response:
        """A match reported whole."""
        headers = {"Authorization": f"Bearer {self.file['submit_key']}"}
        return httpx.post(f"{self.url}/v1/matches{wait}", json=match, headers=headers, timeout=15)

    def entries(self, board: str) -> list[tuple[str, int]]:
        """All entries of a board, page by page; fails unless the ranks are the positions."""
        found: list[tuple[str, int]] = []
        cursor: dict[str, str] = {}
        while True:
            reply = self.get(f"/v1/boards/{board}/top", n=1000, **cursor)
            assert reply.status_code == 200, reply.text
            page = reply.json()
            for entry in page["entries"]:
                found.append((entry["player_id"], entry["score"]))
                assert entry["rank"] == len(found)
            if page["next"] is None:
                return found
            cursor = {"cursor": page["next"]}


def bare_environment(folder: Path) -> dict[str, str]:
    """The environment of this process without what names a deployment; stacks are noted in this folder alone."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("STANDINGS_")}
    return others | {"XDG_STATE_HOME": str(folder / "state"), "NO_COLOR": "1"}


def run_command(*arguments: str, environment: dict[str, str], stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    """`standings ...` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "cli", *arguments],
        input=stdin, capture_output=True, timeout=120, env=environment, cwd=ROOT, check=False,
    )  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


@contextmanager
def running_stack(folder: Path, *options: str) -> Iterator[RunningStack]:
    """A stack for the duration of the block."""
    stack = RunningStack(folder, *options)
    try:
        stack.start()
        yield stack
    except BaseException as error:
        error.add_note(stack.logs())
        raise
    finally:
        stack.stop()


def wait_for(what: str, holds: Callable[[], bool], within_s: float = 30) -> float:
    """Wait until it holds; after how many seconds it did. Errors of connections count as not yet."""
    began_s = time.monotonic()
    while True:
        try:
            if holds():
                return time.monotonic() - began_s
        except httpx.TransportError:
            pass
        if time.monotonic() > began_s + within_s:
            pytest.fail(f"not within {within_s} s: {what}")
        time.sleep(0.1)
