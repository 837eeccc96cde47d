"""A service that answers by a script, and both clients behind one face."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from inspect import isasyncgen, iscoroutine, isgenerator
from itertools import islice
from typing import Any

import httpx

from client import AsyncClient, Client, Retries

URL = "http://service"
Answer = httpx.Response | Exception | Callable[[httpx.Request], httpx.Response]


class Chunks(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that comes in these pieces; an exception among them breaks it off."""

    def __init__(self, pieces: Sequence[bytes | Exception]) -> None:
        self._pieces = pieces
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


class Script:
    """What the service answers, one after the other; the last answer stays. Time passes by pauses alone."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        self.now_s = 100.0

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, httpx.Response):
            # An answer that stays is another one each time: a client changes what it was given.
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        return answer(request)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_s += seconds

    @property
    def queries(self) -> list[str]:
        return [request.url.query.decode() for request in self.requests]


class Caller:
    """One of the two clients over a script."""

    def __init__(self, kind: str, script: Script, chance: float = 1.0, **options: Any) -> None:
        retries = {"clock_s": lambda: script.now_s, "chance": lambda: chance}
        options["retries"] = Retries(**retries | options.pop("retries", {}))
        transport = httpx.MockTransport(script.answer)
        self.client: Client | AsyncClient
        if kind == "sync":
            self.client = Client(URL, transport=transport, sleep=script.pause, **options)
        else:

            async def pause(seconds: float) -> None:
                script.pause(seconds)

            self.client = AsyncClient(URL, transport=transport, sleep=pause, **options)

    def __call__(self, name: str, *args: Any, most: int | None = None, **kwargs: Any) -> Any:
        """What a method answers; of an iterator a list, at most so many."""
        found = getattr(self.client, name)(*args, **kwargs)
        if isgenerator(found):
            listed = list(islice(found, most))
            found.close()
            return listed
        if isasyncgen(found):
            return asyncio.run(_list(found, most))
        return asyncio.run(found) if iscoroutine(found) else found


async def _list(found: Any, most: int | None) -> list[Any]:
    listed = []
    async for one in found:
        listed.append(one)
        if len(listed) == most:
            break
    await found.aclose()
    return listed


def problem(name: str, status: int, headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    """A problem document."""
    document = {"type": f"/problems/{name}", "title": "A title", "status": status, "detail": f"{name} it is"} | more
    return httpx.Response(
        status, json=document, headers={"Content-Type": "application/problem+json", **(headers or {})}
    )
