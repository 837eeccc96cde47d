"""The stack as a whole: real stores, real signals, real kills."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from embedded import processes
from embedded.files import hash_key
from embedded.ports import find_free_port
from embedded.stack import find_stack

from .conftest import RunningStack, wait_for

Start = Callable[..., RunningStack]

FIELDS = {"api", "submit_key", "redis", "kafka", "dynamodb", "pids", "data", "prefix"}
NAMES = {"redis", "kafka", "dynamodb", "api", "updater", "keeper"}


def all_gone(pids: dict[str, int]) -> bool:
    return not any(processes.is_alive(pid) for pid in pids.values())


def test_a_stack_is_told_in_its_file_survives_kills_and_stops_in_order(
    start_stack: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun_at = time.monotonic()
    stack = start_stack().wait_until_ready()
    assert time.monotonic() - begun_at < 10
    told = stack.file()
    assert set(told) == FIELDS
    assert set(told["pids"]) == NAMES
    assert stat.S_IMODE((stack.data / "stack.json").stat().st_mode) == 0o600
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    by_url = find_stack(None, f"http://localhost:{stack.port}/v1")
    assert by_url is not None
    assert by_url == find_stack(stack.data, None)
    assert by_url.pids == told["pids"]

    with redis.Redis.from_url(told["redis"]) as client:
        client.set("kept", "yes")
        os.kill(told["pids"]["redis"], signal.SIGKILL)
        wait_for(lambda: stack.file()["pids"]["redis"] != told["pids"]["redis"])
        assert client.get("kept") == b"yes"
    os.kill(told["pids"]["kafka"], signal.SIGKILL)
    wait_for(lambda: stack.file()["pids"]["kafka"] != told["pids"]["kafka"])
    assert stack.has_said("after kafka")

    pids = stack.file()["pids"]
    stack.process.send_signal(signal.SIGTERM)
    assert stack.process.wait(20) == 0
    assert stack.lines()[-3:] == ["unrecorded 2", "unrecorded 1", "unrecorded 0"]
    assert all_gone(pids)
    assert not (stack.data / "stack.json").exists()
    assert find_stack(stack.data, f"http://localhost:{stack.port}") is None


def test_the_submit_key_stays_the_same_over_restarts_and_only_its_hash_is_passed_on(start_stack: Start) -> None:
    first = start_stack().wait_until_ready()
    key = first.file()["submit_key"]
    environment = Path(f"/proc/{first.file()['pids']['updater']}/environ")
    if environment.exists():
        settings = environment.read_bytes().decode()
        assert f"STANDINGS_SUBMIT_KEYS=embedded:{hash_key(key)}" in settings
        assert key not in settings
    first.end()
    again = start_stack().wait_until_ready()
    assert again.file()["submit_key"] == key


@pytest.mark.parametrize("flags", [(), ("--stubborn", "--without-kernel")], ids=["by-the-kernel", "by-the-guard"])
def test_a_supervisor_that_is_killed_leaves_no_child(start_stack: Start, flags: tuple[str, ...]) -> None:
    stack = start_stack(*flags).wait_until_ready()
    pids = stack.file()["pids"]
    stack.process.kill()
    stack.process.wait()
    wait_for(lambda: all_gone(pids))
    assert find_stack(stack.data, None) is None  # though its stack.json is still there
    again = start_stack().wait_until_ready()
    assert not again.has_said("say ended")


def test_a_start_waits_for_as_long_as_the_boards_are_being_rebuilt(start_stack: Start) -> None:
    start_stack("--boards=slow").wait_until_ready()  # 2.5 s, where 1 s without any progress is too long


def test_a_start_whose_boards_make_no_progress_is_given_up(start_stack: Start) -> None:
    stack = start_stack("--boards=stuck")
    assert stack.process.wait(20) == 1
    assert stack.lines()[-1].endswith(
        "nothing moves any more: boards are being rebuilt from the scorebook: 7 rows so far"
    )
    assert not stack.has_said("ready ")


def test_a_stop_before_the_stack_is_ready_leaves_nothing(start_stack: Start) -> None:
    stack = start_stack()
    wait_for(lambda: stack.has_said("init "))
    roster = stack.data / "children.json"
    pids = {child["name"]: child["pid"] for child in json.loads(roster.read_text())["children"]}
    assert pids
    stack.process.send_signal(signal.SIGTERM)
    assert stack.process.wait(10) == 0
    assert all_gone(pids)
    assert json.loads(roster.read_text())["children"] == []
    assert not (stack.data / "stack.json").exists()


def test_a_second_interrupt_kills_at_once(start_stack: Start) -> None:
    stack = start_stack("--stubborn").wait_until_ready()
    pids = stack.file()["pids"]
    stack.process.send_signal(signal.SIGINT)
    wait_for(lambda: stack.has_said("unrecorded 0"))
    time.sleep(0.2)  # it waits for the updater now, which takes no notice
    assert processes.is_alive(pids["updater"])
    stack.process.send_signal(signal.SIGINT)
    assert stack.process.wait(5) == 130
    assert all_gone(pids)
    assert not (stack.data / "stack.json").exists()


def test_a_taken_api_port_and_a_folder_in_use_are_one_line_each(start_stack: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = start_stack(port=port)
        assert refused.process.wait(10) == 1
        assert len(refused.lines()) == 1
        assert f"port {port} on 127.0.0.1, for the api, is taken" in refused.lines()[0]
        assert "--port" in refused.lines()[0]
    first = start_stack(name="shared").wait_until_ready()
    said = first.output.read_text()
    second = start_stack(port=find_free_port(), name="shared")
    assert second.process.wait(10) == 1
    assert second.output.read_text() == (
        f"say the data folder {first.data} is in use by another stack (pid {first.process.pid}): "
        "stop it or choose another folder with --data\n"
    )
    assert said.startswith("init ")
    assert first.process.poll() is None
    assert first.file()["pids"]
