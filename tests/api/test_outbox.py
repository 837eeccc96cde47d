"""Handing events to a log that is slow, full, away, or silent."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future

import pytest

from api.logwatch import LogWatch
from api.outbox import Letter, Outbox
from api.threads import Threads
from schemas.errors import StoreUnavailable
from schemas.problems import Problem
from stores.log import Acknowledged, LogDescription, LogUnavailable


class Producer:
    """A log whose answers the test gives. `gate` is where a send blocks."""

    def __init__(self) -> None:
        self.sent: list[Future[Acknowledged]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.refusal: LogUnavailable | None = None
        self.closed = False

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes,
        timestamp: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Future[Acknowledged]:
        assert (topic, headers) == ("events", ())
        self.gate.wait(10)
        if self.refusal is not None:
            raise self.refusal
        self.sent.append(Future())
        if key == b"now":
            self.sent[-1].set_result(Acknowledged(0, len(value), timestamp or 0))
        return self.sent[-1]

    def close(self) -> None:
        self.closed = True


NOW = Letter(b"now", b"12345", 7)
LATER = Letter(b"later", b"", 7)


def send(
    producer: Producer,
    *letters: Letter,
    limit: int = 10,
    meanwhile: Callable[[], None] | None = None,
) -> tuple[list[Acknowledged | Problem], Outbox]:
    """What becomes of the letters; `meanwhile` happens 0.1 s after they were sent."""
    outbox = Outbox(producer, "events", limit, 0.3)

    async def sending() -> list[Acknowledged | Problem]:
        if meanwhile is not None:
            asyncio.get_running_loop().call_later(0.1, meanwhile)
        return await outbox.send(letters)

    return asyncio.run(sending()), outbox


def accepted(outcome: Acknowledged | Problem) -> tuple[str, bool | None]:
    assert isinstance(outcome, Problem)
    assert outcome.headers == {"Retry-After": "1"}
    return outcome.name, outcome.more["accepted"]


def test_what_the_log_acknowledged_is_told_with_its_place() -> None:
    outcomes, outbox = send(Producer(), NOW, NOW)
    assert outcomes == [Acknowledged(0, 5, 7), Acknowledged(0, 5, 7)]
    assert outbox.in_flight == 0


def test_what_was_not_acknowledged_in_time_may_be_in_the_log() -> None:
    producer = Producer()
    (first, second), outbox = send(producer, NOW, LATER)
    assert first == Acknowledged(0, 5, 7)
    assert accepted(second) == ("store-unavailable", None)
    assert outbox.in_flight == 1
    producer.sent[1].set_exception(LogUnavailable("too late for anybody to hear"))
    assert outbox.in_flight == 0


@pytest.mark.parametrize("known", [False, None])
def test_what_failed_says_whether_it_may_be_in_the_log(*, known: bool | None) -> None:
    producer = Producer()
    failure = LogUnavailable("no", accepted=known)
    (outcome,), outbox = send(producer, LATER, meanwhile=lambda: producer.sent[0].set_exception(failure))
    assert accepted(outcome) == ("store-unavailable", known)
    assert outbox.in_flight == 0


def test_above_the_bound_nothing_more_is_taken() -> None:
    producer = Producer()
    (first, second, third), outbox = send(producer, NOW, LATER, NOW, limit=2)
    assert first == Acknowledged(0, 5, 7)
    assert accepted(second) == ("store-unavailable", None)
    assert accepted(third) == ("overloaded", False)
    assert len(producer.sent) == 2
    assert outbox.in_flight == 1


def test_after_the_first_that_could_not_be_taken_the_rest_is_not_tried() -> None:
    producer = Producer()
    producer.refusal = LogUnavailable("the brokers are away", accepted=False)
    outcomes, outbox = send(producer, NOW, NOW, NOW)
    assert [accepted(one) for one in outcomes] == [("store-unavailable", False)] * 3
    assert outbox.in_flight == 0


def test_a_producer_that_blocks_holds_nobody_longer_than_the_bound() -> None:
    producer = Producer()
    producer.gate.clear()
    outbox = Outbox(producer, "events", 10, 0.3)

    async def sending() -> Sequence[list[Acknowledged | Problem]]:
        return await asyncio.gather(outbox.send([NOW]), outbox.send([NOW]))

    began_s = time.monotonic()
    (blocked,), (queued,) = asyncio.run(sending())
    assert time.monotonic() - began_s < 2
    # The first may still be taken once the producer goes on; the second was not even tried.
    assert accepted(blocked) == ("store-unavailable", None)
    assert accepted(queued) == ("store-unavailable", False)
    producer.gate.set()
    outbox.close()
    assert producer.closed
    assert len(producer.sent) == 1
    assert outbox.in_flight == 0


class Admin:
    """Which log it is, as the test says; None and errors too."""

    def __init__(self) -> None:
        self.answer: LogDescription | StoreUnavailable | None = None

    def describe(self) -> LogDescription | None:
        if isinstance(self.answer, StoreUnavailable):
            raise self.answer
        return self.answer


def watched(steps: Callable[[LogWatch, Admin, list[float]], Awaitable[None]]) -> None:
    admin, now_s = Admin(), [100.0]
    threads = Threads("the log", 1)
    watch = LogWatch(admin, threads, lambda: now_s[0])  # type: ignore[arg-type]  # only describe is asked

    async def run() -> None:
        await steps(watch, admin, now_s)

    asyncio.run(run())
    threads.close()


def test_without_a_log_nothing_is_accepted() -> None:
    async def steps(watch: LogWatch, admin: Admin, now_s: list[float]) -> None:
        del admin, now_s
        for _ in range(2):
            with pytest.raises(Problem) as refusal:
                watch.require_log()
            assert accepted(refusal.value) == ("store-unavailable", False)
            await watch.look()
        assert "standings init" in str(watch.trouble)

    watched(steps)


def test_a_log_out_of_reach_is_trusted_for_a_few_seconds() -> None:
    async def steps(watch: LogWatch, admin: Admin, now_s: list[float]) -> None:
        admin.answer = LogDescription("one", 1)
        await watch.look()
        assert (watch.require_log(), watch.trouble) == ("one", None)
        admin.answer = StoreUnavailable("away")
        await watch.look()
        assert (watch.require_log(), watch.trouble) == ("one", "away")
        now_s[0] += 3
        with pytest.raises(Problem) as refusal:
            watch.require_log()
        assert accepted(refusal.value) == ("store-unavailable", False)
        admin.answer = LogDescription("one", 1)
        await watch.look()
        assert watch.require_log() == "one"

    watched(steps)


def test_a_log_that_was_made_anew_meanwhile_makes_the_outcome_unknown() -> None:
    async def steps(watch: LogWatch, admin: Admin, now_s: list[float]) -> None:
        del now_s
        admin.answer = LogDescription("one", 1)
        await watch.look()
        watch.check_still(watch.require_log())
        admin.answer = LogDescription("two", 1)
        await watch.look()
        with pytest.raises(Problem) as doubt:
            watch.check_still("one")
        assert accepted(doubt.value) == ("store-unavailable", None)

    watched(steps)
