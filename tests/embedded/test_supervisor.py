"""The supervisor over children that are a line of Python."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded import children, processes
from embedded.children import Child, ChildSpec
from embedded.errors import StackError
from embedded.probes import Probe, probe_nothing
from embedded.roster import end_leftovers, write_roster
from embedded.supervisor import Supervisor

WAIT = "import time; time.sleep(600)"


class Watch:
    """A supervisor and what it reported."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []
        self.followed: list[str] = []
        self.failures_to_come = 0
        self.changes = 0
        self.supervisor = Supervisor(folder, self.said.append, self.follow, self.note_change)

    def follow(self, name: str) -> None:
        if self.failures_to_come:
            self.failures_to_come -= 1
            raise RuntimeError("not yet")
        self.followed.append(name)

    def note_change(self) -> None:
        self.changes += 1

    def tick_until_up(self, *names: str) -> None:
        give_up_at = time.monotonic() + 10
        while not all(self.supervisor.is_up(name) for name in names):
            assert time.monotonic() < give_up_at, self.said
            self.supervisor.tick()
            time.sleep(0.02)

    def die(self, *names: str) -> None:
        for name in names:
            os.kill(self.supervisor.pids[name], signal.SIGKILL)
        give_up_at = time.monotonic() + 10
        while any(self.supervisor.is_up(name) for name in names):
            assert time.monotonic() < give_up_at
            self.supervisor.tick()


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[Watch]:
    watched = Watch(tmp_path)
    yield watched
    watched.supervisor.stop(None, 0)


def describe(name: str, program: str = WAIT, needs: tuple[str, ...] = (), probe: Probe = probe_nothing) -> ChildSpec:
    return ChildSpec(name, (sys.executable, "-c", program, name), os.environ, probe, needs, stop_timeout_s=2.0)


def test_a_child_that_dies_is_restarted_and_what_follows_comes_before_those_that_need_it(watch: Watch) -> None:
    watch.supervisor.start([describe("kafka"), describe("updater", needs=("kafka",))])
    watch.supervisor.wait_until_ready(["kafka", "updater"], 5)
    assert watch.changes == 0
    before = watch.supervisor.pids
    watch.failures_to_come = 2
    watch.die("kafka", "updater")
    watch.tick_until_up("kafka", "updater")
    assert watch.followed == ["kafka", "updater"]
    assert sum("tried again: not yet" in line for line in watch.said) == 1  # told once
    assert watch.changes == 2
    assert not set(before.values()) & set(watch.supervisor.pids.values())


def test_a_file_that_cannot_be_written_ends_nothing_and_is_written_later(watch: Watch) -> None:
    watch.supervisor.start([describe("updater")])
    watch.supervisor.wait_until_ready(["updater"], 5)
    roster = watch.folder / "children.json"
    roster.unlink()
    (roster / "in the way").mkdir(parents=True)  # as good as a full disk
    watch.die("updater")
    watch.tick_until_up("updater")
    assert any("can't be written, which is tried again" in line for line in watch.said)
    shutil.rmtree(roster)
    give_up_at = time.monotonic() + 15
    while not roster.exists():
        assert time.monotonic() < give_up_at
        watch.supervisor.tick()
        time.sleep(0.05)
    assert [child["pid"] for child in json.loads(roster.read_text())["children"]] == [watch.supervisor.pids["updater"]]


def test_a_child_that_keeps_dying_is_restarted_ever_less_often(watch: Watch) -> None:
    watch.supervisor.start([describe("updater", "raise SystemExit('no such setting')")])
    give_up_at = time.monotonic() + 1.5
    while time.monotonic() < give_up_at:
        watch.supervisor.tick()
        time.sleep(0.02)
    deaths = [line for line in watch.said if line.startswith("updater ended with exit code 1: no such setting")]
    assert 2 <= len(deaths) <= 5


def test_a_start_that_fails_is_told_with_the_last_line_of_the_log(watch: Watch) -> None:
    watch.supervisor.start(
        [describe("redis", "print('first'); raise SystemExit('the disk is full')", probe=lambda _pid: False)]
    )
    with pytest.raises(StackError, match=r"redis ended with exit code 1: the disk is full \(see .*redis.log\)"):
        watch.supervisor.wait_until_ready(["redis"], 5)


def test_what_an_earlier_run_said_is_not_told_as_the_cause(tmp_path: Path) -> None:
    child = Child(
        describe("api", "import sys; print('of the first') if sys.argv[1] == 'api' else None"), tmp_path / "l"
    )
    child.begin_log()
    child.start()
    while child.is_running():
        time.sleep(0.01)
    assert "of the first" in child.explain_end()
    child.spec = describe("quiet", child.spec.argv[2])
    child.start()
    while child.is_running():
        time.sleep(0.01)
    assert "ended with exit code 0: no output" in child.explain_end()


def test_a_start_that_takes_too_long_is_told(watch: Watch) -> None:
    watch.supervisor.start([describe("redis", probe=lambda _pid: False)])
    with pytest.raises(StackError, match="redis is not ready"):
        watch.supervisor.wait_until_ready(["redis"], 0.3)


def test_all_stop_in_order_and_the_updater_only_after_the_log_is_drained(watch: Watch) -> None:
    program = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        f"    open({str(watch.folder / 'order')!r}, 'a').write(sys.argv[1] + ' ')\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        f"open({str(watch.folder)!r} + '/on-' + sys.argv[1], 'w')\n"
        "time.sleep(600)\n"
    )
    names = ["dynamodb", "redis", "kafka", "api", "updater", "keeper"]

    def is_on(name: str) -> Probe:
        return lambda _pid: (watch.folder / f"on-{name}").exists()

    watch.supervisor.start([describe(name, program, probe=is_on(name)) for name in names])
    watch.supervisor.wait_until_ready(names, 10)
    stopped_before_draining: list[str] = []
    answers = iter([1, 0])

    def count_unrecorded() -> int:
        stopped_before_draining.append((watch.folder / "order").read_text())
        return next(answers)

    watch.supervisor.stop(count_unrecorded, 5)
    assert stopped_before_draining == ["api ", "api "]
    assert (watch.folder / "order").read_text() == "api updater keeper kafka redis dynamodb "


def test_a_log_that_never_drains_is_told_and_not_waited_for(watch: Watch) -> None:
    watch.supervisor.start([describe("updater")])
    begun_at = time.monotonic()
    watch.supervisor.stop(lambda: 7, 0.3)
    assert time.monotonic() - begun_at < 3
    assert any("for 0.3 s: up to 7 events are lost" in line for line in watch.said)


def test_a_stop_waits_for_as_long_as_the_log_is_being_drained(watch: Watch) -> None:
    watch.supervisor.start([describe("updater")])
    left = iter(range(12, -1, -1))
    watch.supervisor.stop(lambda: next(left), 0.3)
    assert next(left, None) is None  # over a second, at a tenth each
    assert not any("lost" in line for line in watch.said)


def test_a_child_leaves_nothing_of_its_group_behind(tmp_path: Path) -> None:
    program = (
        "import subprocess, sys, time\n"
        "worker = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(worker.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    child = Child(
        describe("api", program, probe=lambda _pid: (tmp_path / "api.log").stat().st_size > 0), tmp_path / "api.log"
    )
    child.begin_log()
    child.start()
    assert child.wait_until_ready()
    worker = int((tmp_path / "api.log").read_text())
    assert child.stop()
    give_up_at = time.monotonic() + 5
    while processes.is_alive(worker) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    assert not processes.is_alive(worker)


def test_a_leftover_is_ended_and_a_pid_that_runs_something_else_is_not(tmp_path: Path) -> None:
    left, other = (Child(describe(name), tmp_path / f"{name}.log") for name in ("left", "other"))
    left.start()
    other.start()
    roster = tmp_path / "children.json"
    write_roster(roster, 1, [left, other])
    roster.write_text(roster.read_text().replace('"other"]', '"another"]'))
    assert end_leftovers(roster, supervisor_pid=2) == []
    assert end_leftovers(roster) == ["left"]
    assert not left.is_running()
    assert other.is_running()
    other.kill()


def test_logs_are_kept_for_one_more_run_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "LOG_BYTES_MAX", 10)
    child = Child(describe("api"), tmp_path / "logs" / "api.log")
    child.begin_log()
    child.log.write_text("of the first run")
    child.begin_log()
    assert child.log.read_text() == ""
    assert (tmp_path / "logs" / "api.log.1").read_text() == "of the first run"
    child.log.write_text("much of the second run")
    child.bound_log()
    assert child.log.read_text() == ""
    assert (tmp_path / "logs" / "api.log.1").read_text() == "much of the second run"
