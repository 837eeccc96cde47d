"""A position names the log that acknowledged, even where the topic was made anew a moment before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from api.logwatch import LogWatch
from api.threads import Threads
from schemas.errors import StoreUnavailable
from schemas.problems import Problem
from stores.log import LogAdmin, LogDescription


class Admin:
    """Which log it is, as the test says."""

    def __init__(self) -> None:
        self.answer: LogDescription | StoreUnavailable = LogDescription("one", 1)
        self.asked = 0

    def describe(self) -> LogDescription:
        self.asked += 1
        if isinstance(self.answer, StoreUnavailable):
            raise self.answer
        return self.answer


def watching(steps: Callable[[LogWatch, Admin], Awaitable[None]]) -> None:
    admin, threads = Admin(), Threads("the log", 1)
    watch = LogWatch(cast("LogAdmin", admin), threads)

    async def run() -> None:
        await watch.look()
        await steps(watch, admin)

    asyncio.run(run())
    threads.close()


def test_a_log_that_was_made_anew_since_the_last_look_confirms_nothing() -> None:
    async def steps(watch: LogWatch, admin: Admin) -> None:
        await watch.confirm("one")
        admin.answer = LogDescription("two", 1)
        with pytest.raises(Problem) as doubt:
            await watch.confirm(watch.require_log())
        assert doubt.value.more["accepted"] is None

    watching(steps)


def test_a_log_that_does_not_answer_confirms_nothing() -> None:
    async def steps(watch: LogWatch, admin: Admin) -> None:
        admin.answer = StoreUnavailable("away")
        with pytest.raises(Problem) as doubt:
            await watch.confirm("one")
        assert doubt.value.more["accepted"] is None

    watching(steps)


def test_those_who_wait_for_the_same_confirmation_share_a_question() -> None:
    async def steps(watch: LogWatch, admin: Admin) -> None:
        before = admin.asked
        await asyncio.gather(*(watch.confirm("one") for _ in range(100)))
        assert admin.asked == before + 1

    watching(steps)
