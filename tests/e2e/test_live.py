"""Live over a real connection: at once, on every change, and gone when the reader is."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.stack import RunningStack, wait_for


@pytest.fixture(scope="module")
def live_stack(stack: RunningStack) -> RunningStack:
    stack.apply("live", windows=["all", "daily"])
    stack.apply("busy", windows=["all"])
    return stack


def lists(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """The data of each event `top`."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            assert name == "top"
            yield json.loads(line.removeprefix("data: "))


def subscribers(stack: RunningStack) -> int:
    found = re.search(r"^standings_api_live_subscribers (\d+)", stack.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return int(found[1])


def test_a_stream_begins_at_once_and_tells_a_change_within_a_second(live_stack: RunningStack) -> None:
    live_stack.submit({"match_id": "l-1", "leaderboard": "live", "results": [{"player_id": "zed", "score": 1}]})
    url = f"{live_stack.url}/v1/boards/live:all/live?n=2"
    with httpx.stream("GET", url, headers={"Last-Event-ID": "never given"}, timeout=20) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        events = lists(stream.iter_lines())
        assert [one["player_id"] for one in next(events)["entries"]] == ["zed"]
        began_s = time.monotonic()
        live_stack.submit({"match_id": "l-2", "leaderboard": "live", "results": [{"player_id": "amy", "score": 2}]})
        assert [one["player_id"] for one in next(events)["entries"]] == ["amy", "zed"]
        assert time.monotonic() - began_s < 5
        assert subscribers(live_stack) >= 1
    wait_for("nobody listens", lambda: subscribers(live_stack) == 0)


def test_a_busy_board_is_told_at_most_four_times_a_second(live_stack: RunningStack) -> None:
    stopping = threading.Event()

    def feed() -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            live_stack.submit(
                {"match_id": f"b-{number}", "leaderboard": "busy", "results": [{"player_id": "zed", "score": number}]},
                "",
            )

    feeding = threading.Thread(target=feed)
    feeding.start()
    try:
        with httpx.stream("GET", f"{live_stack.url}/v1/boards/busy:all/live", timeout=20) as stream:
            events = lists(stream.iter_lines())
            next(events)
            began_s, seen = time.monotonic(), 0
            while time.monotonic() < began_s + 3:
                next(events)
                seen += 1
    finally:
        stopping.set()
        feeding.join()
    assert 2 <= seen <= 4 * 3 + 2


def test_fifty_readers_who_vanish_leave_nothing_behind(live_stack: RunningStack) -> None:
    client = httpx.Client(timeout=20, limits=httpx.Limits(max_connections=60))
    try:
        streams = [client.stream("GET", f"{live_stack.url}/v1/boards/live:all/live") for _ in range(50)]
        held = [lists(stream.__enter__().iter_lines()) for stream in streams]
        for events in held:
            next(events)
        assert subscribers(live_stack) == 50
    finally:
        client.close()
        for stream in streams:
            stream.__exit__(None, None, None)
    wait_for("nobody listens", lambda: subscribers(live_stack) == 0)
