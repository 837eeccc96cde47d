"""The client for code that blocks."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, ParamSpec, Self, TypeVar, overload

import httpx

from client import calls
from client.batches import BatchLine, Line, cut
from client.calls import Call, Ties
from client.live import Feed
from client.retries import Retries
from client.session import Attempt, Outcome, Pause, Session, Steps
from schemas.replies import TopPage

P = ParamSpec("P")
T = TypeVar("T")


class _Operation(Generic[P, T]):
    """A method of the client, made of what describes the call."""

    def __init__(self, describe: Callable[P, Call[T]]) -> None:
        self._describe = describe
        self.__doc__ = describe.__doc__

    @overload
    def __get__(self, client: None, owner: type[Any]) -> Callable[P, Call[T]]: ...
    @overload
    def __get__(self, client: Client, owner: type[Any]) -> Callable[P, T]: ...
    def __get__(self, client: Client | None, owner: type[Any]) -> Callable[P, Call[T]] | Callable[P, T]:
        describe = self._describe
        if client is None:
            return describe

        @functools.wraps(describe)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return client.call(describe(*args, **kwargs))

        return call


class Client:
    """A deployment over HTTP. What its methods take is in client/calls.py, what they raise in client/errors.py.

    `key` is sent with submissions and receipts alone. `timeout_s` bounds each wait of an attempt,
    `wait_s` of the call on top. With `read_own_writes` every read of boards waits for the last
    submission of this client, `last_position`; that is one submission, not all before it. Calls from
    several threads are fine; then it is the last one of them all.
    """

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        read_own_writes: bool = False,
        timeout_s: float = 10.0,
        retries: Retries | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._session = Session(url, key, timeout_s, retries or Retries(), read_own_writes=read_own_writes)
        self._http = httpx.Client(base_url=url, transport=transport)
        self._sleep = sleep

    submit_score = _Operation(calls.submit_score)
    submit_match = _Operation(calls.submit_match)
    receipt = _Operation(calls.receipt)
    leaderboards = _Operation(calls.leaderboards)
    leaderboard = _Operation(calls.leaderboard)
    board = _Operation(calls.board)
    top = _Operation(calls.top)
    player = _Operation(calls.player)
    around = _Operation(calls.around)
    friends = _Operation(calls.friends)
    player_boards = _Operation(calls.player_boards)

    @property
    def last_position(self) -> str | None:
        """The position of the last submission, for `after=`; of a batch, its last accepted line's."""
        return self._session.last_position

    @last_position.setter
    def last_position(self, position: str | None) -> None:
        self._session.last_position = position

    def submit_batch(self, lines: Iterable[Line]) -> Iterator[BatchLine]:
        """Submit matches and scores, as many as there are; the answer to each, in order, as batches are answered.

        Nothing is sent before the first answer is asked for. Where this raises, a repeat of the whole is safe.
        """
        first_line = 1
        for batch in cut(lines):
            yield from self._carry_out(self._session.run_batch(batch, first_line))
            first_line += len(batch)

    def pages(self, board: str, n: int = 1_000, *, ties: Ties = "unique") -> Iterator[TopPage]:
        """The whole board, page by page. Who stays put meanwhile is on exactly one of them."""
        page = self.top(board, n, ties=ties)
        yield page
        while page.next is not None:
            page = self.top(page.board, n, ties=ties, cursor=page.next)
            yield page

    def live(self, board: str, n: int = 10) -> Iterator[TopPage]:
        """The top of a board at once, and whenever it changes, until the iterator is closed. It reconnects."""
        feed = Feed(self._session, board, n)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                with self._http.stream(**feed.options()) as response:
                    outcome = response
                    if response.is_success:
                        for chunk in response.iter_bytes():
                            yield from feed.take(chunk)
                    else:
                        response.read()
            except httpx.RequestError as error:
                outcome = error
            self._sleep(feed.pause_s(outcome))

    def call(self, call: Call[T]) -> T:
        """Make a call that was described before."""
        return self._carry_out(self._session.run(call))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _carry_out(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            outcome = self._take(step)

    def _take(self, step: Attempt | Pause) -> Outcome:
        if isinstance(step, Pause):
            self._sleep(step.seconds)
            return None
        try:
            return self._http.request(**step.options)
        except httpx.RequestError as error:
            return error
