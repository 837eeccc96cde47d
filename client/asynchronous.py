"""The client for asyncio. Each method does what the one of the same name does in client/synchronous.py."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
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
    def __get__(self, client: AsyncClient, owner: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(
        self, client: AsyncClient | None, owner: type[Any]
    ) -> Callable[P, Call[T]] | Callable[P, Coroutine[Any, Any, T]]:
        describe = self._describe
        if client is None:
            return describe

        @functools.wraps(describe)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            return await client.call(describe(*args, **kwargs))

        return call


class AsyncClient:
    """A deployment over HTTP. Parameters as of Client; calls of several tasks at once are fine."""

    def __init__(
        self,
        url: str,
        key: str = "",
        *,
        read_own_writes: bool = False,
        timeout_s: float = 10.0,
        retries: Retries | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._session = Session(url, key, timeout_s, retries or Retries(), read_own_writes=read_own_writes)
        self._http = httpx.AsyncClient(base_url=url, transport=transport)
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

    async def submit_batch(self, lines: Iterable[Line]) -> AsyncIterator[BatchLine]:
        """Submit matches and scores, as many as there are; the answer to each, in order, as batches are answered.

        Nothing is sent before the first answer is asked for. Where this raises, a repeat of the whole is safe.
        """
        first_line = 1
        for batch in cut(lines):
            for answer in await self._carry_out(self._session.run_batch(batch, first_line)):
                yield answer
            first_line += len(batch)

    async def pages(self, board: str, n: int = 1_000, *, ties: Ties = "unique") -> AsyncIterator[TopPage]:
        """The whole board, page by page. Who stays put meanwhile is on exactly one of them."""
        page = await self.top(board, n, ties=ties)
        yield page
        while page.next is not None:
            page = await self.top(page.board, n, ties=ties, cursor=page.next)
            yield page

    async def live(self, board: str, n: int = 10) -> AsyncIterator[TopPage]:
        """The top of a board at once, and whenever it changes, until the iterator is closed. It reconnects."""
        feed = Feed(self._session, board, n)
        while True:
            outcome: httpx.Response | httpx.RequestError
            try:
                async with self._http.stream(**feed.options()) as response:
                    outcome = response
                    if response.is_success:
                        async for chunk in response.aiter_bytes():
                            for page in feed.take(chunk):
                                yield page
                    else:
                        await response.aread()
            except httpx.RequestError as error:
                outcome = error
            await self._sleep(feed.pause_s(outcome))

    async def call(self, call: Call[T]) -> T:
        """Make a call that was described before."""
        return await self._carry_out(self._session.run(call))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _carry_out(self, steps: Steps[T]) -> T:
        outcome: Outcome = None
        while True:
            try:
                step = steps.send(outcome)
            except StopIteration as done:
                result: T = done.value
                return result
            outcome = await self._take(step)

    async def _take(self, step: Attempt | Pause) -> Outcome:
        if isinstance(step, Pause):
            await self._sleep(step.seconds)
            return None
        try:
            return await self._http.request(**step.options)
        except httpx.RequestError as error:
            return error
