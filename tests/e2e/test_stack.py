"""The stack as a whole: it starts quickly, survives what dies in it, and comes back as it was."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.e2e.stack import RunningStack, running_stack, wait_for


def report_matches(stack: RunningStack, leaderboard: str, first: int, last: int) -> None:
    """Matches first..last-1, player n scores n, in batches; each is retried until it is answered."""
    headers = {"Authorization": f"Bearer {stack.file['submit_key']}", "Content-Type": "application/x-ndjson"}
    for start in range(first, last, 50):
        lines = [
            f'{{"match_id":"m{n}","leaderboard":"{leaderboard}","results":[{{"player_id":"p{n}","score":{n}}}]}}'
            for n in range(start, min(start + 50, last))
        ]
        while True:
            try:
                reply = httpx.post(
                    f"{stack.url}/v1/matches:batch", content="\n".join(lines), headers=headers, timeout=20
                )
            except httpx.TransportError:
                time.sleep(0.1)
                continue
            if reply.status_code == 200 and all('"status":202' in line for line in reply.text.splitlines()):
                break
            time.sleep(0.1)


def expected(last: int) -> list[tuple[str, int]]:
    return [(f"p{n}", n) for n in range(last - 1, -1, -1)]


def test_the_stack_is_ready_within_seconds(stack: RunningStack) -> None:
    sys.stdout.write(f"\nready after {stack.ready_after_s:.1f} s\n")
    assert stack.ready_after_s < 20  # on 2 quiet cores it is below 6
    assert (stack.data / "stack.json").stat().st_mode & 0o777 == 0o600
    assert set(stack.file["pids"]) == {"redis", "kafka", "dynamodb", "api", "updater", "keeper"}


def test_killing_the_updater_while_results_arrive_changes_nothing(stack: RunningStack) -> None:
    stack.apply("killed")
    feeding = threading.Thread(target=report_matches, args=(stack, "killed", 0, 1_500))
    feeding.start()
    for pause_s in (0.3, 1.1, 0.7, 1.9):
        time.sleep(pause_s)
        killed = stack.kill("updater")
        wait_for("another updater", lambda killed=killed: stack.file["pids"]["updater"] != killed)  # type: ignore[misc]
    feeding.join()
    wait_for("all results are in", lambda: len(stack.entries("killed:all")) == 1_500, 60)
    assert stack.entries("killed:all") == expected(1_500)
    wait_for("it agrees", lambda: stack.command("audit", "--board", "killed:all").returncode == 0)


@pytest.mark.parametrize("child", ["keeper", "api"])
def test_a_role_that_is_killed_comes_back(stack: RunningStack, child: str) -> None:
    killed = stack.kill(child)
    wait_for(f"another {child}", lambda: stack.file["pids"][child] != killed)
    wait_for("the stack is well", lambda: stack.get("/readyz").status_code == 200)


def test_redis_heals_by_itself_when_it_is_killed_and_its_data_deleted(stack: RunningStack) -> None:
    stack.apply("healed", windows=["all", "daily"])
    report_matches(stack, "healed", 0, 300)
    wait_for("all results are in", lambda: len(stack.entries("healed:all")) == 300)
    killed = stack.kill("redis")
    for kept in (stack.data / "redis").iterdir():
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
    began_s = time.monotonic()
    seen: set[tuple[int, int]] = set()
    while True:
        try:
            reply = stack.get("/v1/boards/healed:all/top", n=1000)
        except httpx.TransportError:
            continue
        seen.add((reply.status_code, len(reply.json().get("entries", []))))
        if reply.status_code == 200 and stack.file["pids"]["redis"] != killed:
            break
        assert time.monotonic() < began_s + 30
        time.sleep(0.02)
    sys.stdout.write(f"\nhealed after {time.monotonic() - began_s:.1f} s\n")
    # Not one reply in between showed a part of the board.
    assert {entries for status, entries in seen if status == 200} == {300}
    assert stack.entries("healed:all") == expected(300)
    wait_for("all lanes agree with the truth", lambda: stack.command("audit", "--all").returncode == 0)


def test_a_broker_that_comes_back_empty_is_another_log_and_the_work_goes_on(stack: RunningStack) -> None:
    stack.apply("broker")
    report_matches(stack, "broker", 0, 100)
    wait_for("all results are in", lambda: len(stack.entries("broker:all")) == 100)
    killed = stack.kill("kafka")
    wait_for("another broker", lambda: stack.file["pids"]["kafka"] != killed)
    report_matches(stack, "broker", 100, 200)
    wait_for(
        "what came before and after is there",
        lambda: stack.get("/v1/boards/broker:all").json().get("size") == 200,
        60,
    )
    assert stack.entries("broker:all") == expected(200)
    wait_for("it agrees", lambda: stack.command("audit", "--board", "broker:all").returncode == 0)


@pytest.mark.timeout(180)
def test_a_stack_that_was_stopped_comes_back_as_it_was(tmp_path: Path) -> None:
    with running_stack(tmp_path) as stack:
        key = stack.file["submit_key"]
        stack.apply("kept")
        report_matches(stack, "kept", 0, 500)
        # Stopped at once: the updater drains the log first, as the broker keeps it in memory.
        stack.stop()
        assert not (stack.data / "stack.json").exists()
        stack.start()
        assert stack.file["submit_key"] == key
        wait_for("the board is whole", lambda: stack.get("/v1/boards/kept:all").json().get("size") == 500)
        assert stack.entries("kept:all") == expected(500)
        wait_for("all agrees", lambda: stack.command("audit", "--all").returncode == 0)
