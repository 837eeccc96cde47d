"""The loop around sessions: joins, joins anew, waits out outages, ends when told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from stores.log import LogUnavailable
from tests.fakes.deployment import Deployment, UpdaterProcess
from tests.updater.events import score
from updater.dead_letters import TooManyDeadLetters
from updater.failpoints import Step
from updater.service import Updater


class Loop:
    """An updater's own loop over a process of the test, ended after some time that sleeps and polls take."""

    def __init__(self, deployment: Deployment, lasts_ms: int) -> None:
        self.process = UpdaterProcess(deployment)
        self.joined: list[str] = []
        self.stopping = threading.Event()
        self._clock = deployment.clock
        self._ends_ms = deployment.clock.passed_ms + lasts_ms
        self.updater = Updater(deployment.admin, self._join, self.stopping, self.sleep)
        deployment.log.idle = self.sleep

    def sleep(self, time_s: float) -> None:
        self._clock.sleep(time_s)
        if self._clock.passed_ms >= self._ends_ms:
            self.stopping.set()

    def _join(self, log_id: str) -> Any:
        self.joined.append(log_id)
        return self.process.join(log_id)


def test_it_works_until_it_is_told_to_stop_and_then_leaves_the_group(deployment: Deployment) -> None:
    deployment.submit(score("m"))
    loop = Loop(deployment, 2_000)
    loop.updater.run()
    assert (loop.joined, len(deployment.receipts())) == ([deployment.ids.log_id], 1)
    (group,) = deployment.log.groups.values()
    assert group.members == []


def test_told_to_stop_in_the_middle_of_a_batch_it_finishes_it(deployment: Deployment) -> None:
    deployment.submit(score("m"))
    loop = Loop(deployment, 10_000)

    def stop(step: Step) -> None:
        if step is Step.ROWS_WRITTEN:
            loop.stopping.set()

    loop.process.at = stop
    loop.updater.run()
    assert (len(deployment.receipts()), sum(deployment.committed().values())) == (1, 1)


def test_it_joins_the_group_of_the_log_that_there_is(deployment: Deployment) -> None:
    first = deployment.ids.log_id
    loop = Loop(deployment, 5_000)
    done: list[bool] = []

    def make_anew() -> None:
        if not done and deployment.clock.passed_ms > 1_500:
            done.append(True)
            deployment.log.recreate_topic(2)
            deployment.submit(score("m"))

    sleep = loop.sleep

    def idle(time_s: float) -> None:
        sleep(time_s)
        make_anew()

    deployment.log.idle = idle
    loop.updater.run()
    assert loop.joined == [first, deployment.ids.log_id]
    assert sum(deployment.committed().values()) == 1


def test_a_topic_that_is_missing_is_waited_for(deployment: Deployment) -> None:
    deployment.log.delete_topic()
    loop = Loop(deployment, 3_000)
    loop.updater.run()
    assert (loop.joined, deployment.clock.passed_ms) == ([], 3_000)


def test_brokers_that_are_away_are_waited_for(deployment: Deployment) -> None:
    deployment.submit(score("m"))
    deployment.log.available = False
    loop = Loop(deployment, 5_000)
    sleep = loop.sleep

    def return_later(time_s: float) -> None:
        sleep(time_s)
        deployment.log.available = deployment.clock.passed_ms >= 2_000

    loop.updater._sleep = return_later
    loop.updater.run()
    assert len(deployment.receipts()) == 1


def test_too_many_dead_letters_end_it(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1)
    for number in range(200):
        deployment.append(b"m", b"{%d" % number)
    with pytest.raises(TooManyDeadLetters):
        Loop(deployment, 10_000).updater.run()
    assert deployment.committed() == {}


def test_a_session_that_cannot_be_closed_ends_nothing(deployment: Deployment) -> None:
    loop = Loop(deployment, 3_000)
    closed: list[bool] = []

    def fail() -> None:
        closed.append(True)
        raise LogUnavailable("the brokers are gone")

    join = loop.process.join

    def joining(log_id: str) -> Any:
        session = join(log_id)
        session.close = fail  # type: ignore[method-assign]
        return session

    loop.process.join = joining  # type: ignore[method-assign]
    loop.updater.run()
    assert closed == [True]
