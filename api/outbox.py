"""Handing events to the log, and hearing what became of them, without ever blocking the loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from api.logwatch import refused, uncertain
from schemas.problems import Problem
from stores.log import Acknowledged, LogProducer, LogUnavailable

ANSWER_WITHIN_S = 8.0


@dataclass(frozen=True, slots=True)
class Letter:
    """One record to append: key, value, time in epoch ms."""

    key: bytes
    value: bytes
    timestamp: int


class Outbox:
    """Appends records to one topic. What is in flight is bounded, and so is the time to an answer."""

    def __init__(
        self,
        producer: LogProducer,
        topic: str,
        limit: int,
        answer_within_s: float = ANSWER_WITHIN_S,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._limit = limit
        self._answer_within_s = answer_within_s
        self._clock_s = clock_s
        self._lock = threading.Lock()
        self.in_flight = 0
        # The producer may block for seconds while brokers are away: one thread waits, for everybody.
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="log")

    async def send(self, letters: Sequence[Letter]) -> list[Acknowledged | Problem]:
        """Append the records in this order; for each, where it stands, or the problem that says whether it may."""
        with self._lock:
            taken = letters[: max(0, self._limit - self.in_flight)]
            self.in_flight += len(taken)
        outcomes: list[Acknowledged | Problem] = []
        if taken:
            outcomes += await self._send(taken)
        return outcomes + [_overloaded(self._limit)] * (len(letters) - len(taken))

    def close(self) -> None:
        """Sends what is in flight, bounded, and ends."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._producer.close()

    async def _send(self, letters: Sequence[Letter]) -> list[Acknowledged | Problem]:
        ends_at_s = self._clock_s() + self._answer_within_s
        handing = self._pool.submit(self._hand_over, letters, ends_at_s)
        # Not wait_for, here and below: cancelling would reach into the producer.
        await asyncio.wait({_watched(handing)}, timeout=self._answer_within_s)
        if handing.cancel():
            self._release(len(letters))
            return [refused("the log did not get to it in time")] * len(letters)
        if not handing.done():
            return [uncertain("the log did not answer in time")] * len(letters)
        sent = handing.result()
        await asyncio.wait({_watched(one) for one in sent}, timeout=max(0.0, ends_at_s - self._clock_s()))
        return [_outcome(one) for one in sent]

    def _hand_over(self, letters: Sequence[Letter], ends_at_s: float) -> list[Future[Acknowledged]]:
        """Runs in the outbox's thread. After the first that the producer can't take, the rest is not tried."""
        sent: list[Future[Acknowledged]] = []
        failure: LogUnavailable | None = None
        for letter in letters:
            if failure is None and self._clock_s() >= ends_at_s:
                failure = LogUnavailable("the log did not get to it in time", accepted=False)
            one: Future[Acknowledged] = Future()
            if failure is None:
                try:
                    one = self._producer.send(self._topic, letter.key, letter.value, letter.timestamp)
                except LogUnavailable as error:
                    failure = error
            if failure is not None:
                one.set_exception(failure)
            one.add_done_callback(lambda _: self._release(1))
            sent.append(one)
        return sent

    def _release(self, count: int) -> None:
        with self._lock:
            self.in_flight -= count


def _watched(future: Future[Any]) -> asyncio.Future[Any]:
    """A future of the loop for one of a thread. Its error counts as seen, also when the answer comes too late."""
    watched = asyncio.wrap_future(future)
    watched.add_done_callback(lambda done: done.cancelled() or done.exception())
    return watched


def _outcome(sent: Future[Acknowledged]) -> Acknowledged | Problem:
    if not sent.done():
        return uncertain("the log did not acknowledge in time")
    error = sent.exception()
    if error is None:
        return sent.result()
    if isinstance(error, LogUnavailable) and error.accepted is False:
        return refused(str(error))
    return uncertain(str(error))


def _overloaded(limit: int) -> Problem:
    return Problem(
        "overloaded",
        f"nothing was accepted: {limit} events are in flight already",
        headers={"Retry-After": "1"},
        more={"accepted": False},
    )
