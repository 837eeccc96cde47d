"""What both clients share: from a call to attempts and pauses, to its reply or its error. No I/O.

A generator of steps decides, and a client carries out: it sends back what came of each step.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import httpx
from pydantic import ValidationError

from client.batches import BatchLine, submit_lines
from client.calls import Call
from client.errors import ClientError, UnexpectedReply, Unreachable, problem_error
from client.retries import Budget, Retries, parse_retry_after
from schemas.problem_replies import BatchAccepted
from schemas.replies import Accepted

T = TypeVar("T")
_REPLIES = (200, 202)
_TRANSIENT = (502, 503, 504)
# What will fail again in the same way, although it looks like a failure of the network.
_HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A request to send: the options of an httpx client's `request`. Answered by what came of it."""

    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """A time to wait. Answered by None."""

    seconds: float


Outcome: TypeAlias = httpx.Response | httpx.RequestError | None
Steps: TypeAlias = Generator[Attempt | Pause, Outcome, T]


class Session:
    """The settings of a client, and the position of its last submission."""

    def __init__(self, url: str, key: str, timeout_s: float, retries: Retries, *, read_own_writes: bool) -> None:
        self.url = url
        self.retries = retries
        self.last_position: str | None = None
        self._key = key
        self._timeout_s = timeout_s
        self._read_own_writes = read_own_writes
        try:
            address = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ClientError(f"{url!r} is no address of a service: {error}") from None
        if address.scheme not in ("http", "https") or not address.host:
            raise ClientError(f"{url!r} is no address of a service: it looks like http://127.0.0.1:8080")

    def run(self, call: Call[T]) -> Steps[T]:
        """The steps of one call. Raises what client/errors.py says."""
        reply = yield from self._exchange(call, Budget(self.retries))
        if isinstance(reply, Accepted):
            self.last_position = reply.position
        return reply

    def run_batch(self, lines: list[bytes], first_line: int) -> Steps[list[BatchLine]]:
        """The steps of one batch of lines, numbered from `first_line`. What is refused for the moment is sent again."""
        budget = Budget(self.retries)
        answers: dict[int, BatchLine] = {}
        waiting = dict(enumerate(lines, first_line))
        while True:
            answered = yield from self._exchange(submit_lines(list(waiting.values())), budget)
            if len(answered) != len(waiting):
                raise UnexpectedReply(f"{len(answered)} lines came back for {len(waiting)}")
            for number, answer in zip(waiting, answered, strict=True):
                answers[number] = answer.model_copy(update={"line": number})
                if isinstance(answer, BatchAccepted):
                    self.last_position = answer.position
            waiting = {number: line for number, line in waiting.items() if answers[number].status in _TRANSIENT}
            pause_s = budget.pause_s() if waiting else None
            if pause_s is None:
                return [answers[number] for number in sorted(answers)]
            yield Pause(pause_s)

    def options(self, call: Call[Any], timeout_s: float) -> dict[str, Any]:
        """The request of a call, for an httpx client."""
        query = call.query
        if self._read_own_writes and call.takes_after and self.last_position and "after" not in dict(query):
            query = (*query, ("after", self.last_position))
        headers = {"Accept": "application/json, application/problem+json, application/x-ndjson, text/event-stream"}
        if call.needs_key and self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if call.body is not None:
            headers["Content-Type"] = call.media_type
        return {
            "method": call.method,
            "url": call.path,
            "params": list(query),
            "content": call.body,
            "headers": headers,
            "timeout": timeout_s,
        }

    def pause_s(self, error: ClientError, outcome: Outcome, budget: Budget) -> float:
        """How long to pause before the next attempt. Raises the error where there is none to be made."""
        if isinstance(outcome, httpx.Response):
            is_hopeless = outcome.status_code not in _TRANSIENT or getattr(error, "name", "") == "not-applied-yet"
        else:
            is_hopeless = isinstance(outcome, _HOPELESS) or not isinstance(outcome, httpx.TransportError)
        if is_hopeless:
            raise error
        is_connected = not isinstance(outcome, httpx.ConnectError)
        pause_s = budget.pause_s(getattr(error, "retry_after_s", None), is_connected=is_connected)
        if pause_s is None:
            raise error
        return pause_s

    def error(self, outcome: Outcome) -> ClientError:
        """The error of what was no reply."""
        if not isinstance(outcome, httpx.Response):
            return Unreachable(self.url, str(outcome) or type(outcome).__name__)
        try:
            document = outcome.json()
        except ValueError:
            document = None
        return problem_error(outcome.status_code, document, parse_retry_after(outcome.headers.get("retry-after")))

    def _exchange(self, call: Call[T], budget: Budget) -> Steps[T]:
        while True:
            outcome = yield Attempt(self.options(call, budget.limit_s(self._timeout_s + call.wait_s)))
            if isinstance(outcome, httpx.Response) and outcome.status_code in _REPLIES:
                return _read(call, outcome)
            yield Pause(self.pause_s(self.error(outcome), outcome, budget))


def _read(call: Call[T], response: httpx.Response) -> T:
    try:
        return call.read(response)
    except (ValidationError, ValueError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise UnexpectedReply(f"{call.method} {call.path} was answered by something else: {first}") from None
