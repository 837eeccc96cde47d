"""What the page says and does while something is away."""

from __future__ import annotations

import os
import re
import signal

import pytest
import redis
from playwright.sync_api import expect

from .conftest import Reader, Stack, find_serious

pytestmark = pytest.mark.browser


def test_the_page_survives_a_restart_of_the_api(stack: Stack, reader: Reader) -> None:
    stack.submit("gone", {"amy": 10})
    page = reader.go("gone:all", player="amy")
    expect(page.locator("#mode")).to_have_text("Live")
    os.kill(stack.process.pid, signal.SIGSTOP)  # nobody starts it again before the page was looked at
    try:
        os.kill(stack.file["pids"]["api"], signal.SIGKILL)
        expect(page.locator("#trouble")).to_have_text(re.compile("can’t be reached.*older"))
        expect(page.locator("#entries .id")).to_have_text(["amy"])
        assert find_serious(page) == []
    finally:
        os.kill(stack.process.pid, signal.SIGCONT)
    expect(page.locator("#trouble")).to_have_text("", timeout=20_000)
    stack.submit("gone", {"bo": 20})
    expect(page.locator("#entries .id")).to_have_text(["bo", "amy"], timeout=5_000)
    expect(page.locator("#mode")).to_have_text("Live")
    expect(page.locator("#player .facts")).to_have_text(re.compile("^Rank 2 of 2"))


def test_a_board_that_is_rebuilt_says_so_and_comes_back_complete(stack: Stack, reader: Reader) -> None:
    stack.submit("lost", {"amy": 10, "bo": 20})
    page = reader.go("lost:all", player="amy", friend=["amy", "bo"])
    expect(page.locator("#friends .place")).to_have_text(["1", "2"])
    keeper = stack.file["pids"]["keeper"]
    os.kill(keeper, signal.SIGSTOP)  # a rebuild as slow as can be
    try:
        with redis.Redis.from_url(stack.file["redis"]) as client:
            metas = list(client.scan_iter("*:meta"))
            assert metas
            client.unlink(*metas)
        expect(page.locator("#trouble")).to_have_text(re.compile("^This board is being rebuilt.*older"))
        expect(page.locator("#mode")).to_have_text("Not live")
        expect(page.locator("#player .facts")).to_have_text(
            "10 points. The rank is unknown while the board is rebuilt."
        )
        expect(page.locator("#friends .place")).to_have_text(["–", "–"])
    finally:
        os.kill(keeper, signal.SIGCONT)
    expect(page.locator("#trouble")).to_have_text("", timeout=30_000)
    expect(page.locator("#mode")).to_have_text("Live")
    expect(page.locator("#friends .place")).to_have_text(["1", "2"])
    expect(page.locator("#player .facts")).to_have_text(re.compile("^Rank 2 of 2"))
