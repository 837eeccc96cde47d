"""The app in process as a transport whose replies stream, which httpx's own does not do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx

from api.app import create_app
from tests.api.world import Api


class _Body(httpx.AsyncByteStream):
    def __init__(self, pieces: asyncio.Queue[dict[str, Any]], gone: asyncio.Event, work: asyncio.Task[None]) -> None:
        self._pieces = pieces
        self._gone = gone
        self._work = work

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            message = await self._pieces.get()
            yield message.get("body", b"")
            if not message.get("more_body", False):
                return

    async def aclose(self) -> None:
        self._gone.set()
        await asyncio.wait_for(self._work, 10)


class StreamingTransport(httpx.AsyncBaseTransport):
    """Requests go to the app as they are; who closes a reply has gone away."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        body = await request.aread()
        sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        gone = asyncio.Event()
        unread = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if unread:
                return unread.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        scope = {
            "type": "http",
            "method": request.method,
            "path": request.url.path,
            "raw_path": request.url.raw_path,
            "query_string": request.url.query,
            "headers": [(name.lower(), value) for name, value in request.headers.raw],
        }
        work = asyncio.create_task(self._app(scope, receive, sent.put))
        begun = await sent.get()
        return httpx.Response(begun["status"], headers=begun["headers"], stream=_Body(sent, gone, work))


class BlockingTransport(httpx.BaseTransport):
    """The same for code that blocks, which runs beside the app's loop."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._inner = StreamingTransport(create_app(api.services))

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._api.run(self._exchange(request))

    async def _exchange(self, request: httpx.Request) -> httpx.Response:
        again = httpx.Request(request.method, request.url, headers=request.headers, content=request.content)
        response = await self._inner.handle_async_request(again)
        content = await response.aread()
        await response.aclose()
        return httpx.Response(response.status_code, headers=response.headers, content=content)
