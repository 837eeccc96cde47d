"""Endpoints: the one place where ASGI meets handlers: requests become calls, replies and problems become responses."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog

from api.calls import Call, ClientGone
from api.entries import not_ready
from api.metrics import Metrics
from api.replies import Headers, Reply, Stream, defect_reply, problem_reply
from schemas.errors import BoardNotReady, StoreUnavailable
from schemas.problems import Problem

Handler = Callable[[Call], Awaitable[Reply | Stream]]
Scope = Any
Send = Callable[[Any], Awaitable[None]]

log = structlog.get_logger("api")
_CORS: Headers = [
    (b"access-control-allow-origin", b"*"),
    (b"access-control-expose-headers", b"etag, retry-after, standings-as-of"),
]


class Endpoint:
    """One path: an ASGI app over a handler for each method. HEAD and OPTIONS come with it.

    `public`: any web page may call it. `route` is its name in the metrics.
    """

    def __init__(self, route: str, handlers: Mapping[str, Handler], metrics: Metrics, *, public: bool) -> None:
        self._route = route
        self._handlers = dict(handlers)
        if "GET" in handlers:
            self._handlers["HEAD"] = handlers["GET"]
        self._metrics = metrics
        self._cors = _CORS if public else []
        self._allow = ", ".join([*self._handlers, "OPTIONS"])

    async def __call__(self, scope: Scope, receive: Callable[[], Awaitable[Any]], send: Send) -> None:
        """Answers one request, whatever happens."""
        began_s = time.perf_counter()
        method = scope["method"]
        try:
            reply = await self._reply(scope, receive, method)
        except ClientGone:
            return
        self._metrics.count_request(
            self._route,
            method if method in self._handlers or method == "OPTIONS" else "other",
            reply.status,
            time.perf_counter() - began_s,
        )
        if isinstance(reply, Stream):
            await _send_stream(reply, self._cors, send, bodiless=method == "HEAD")
        else:
            await _send(reply, self._cors, send, bodiless=method == "HEAD")

    async def _reply(self, scope: Scope, receive: Callable[[], Awaitable[Any]], method: str) -> Reply | Stream:
        handler = self._handlers.get(method)
        if handler is None:
            return self._options() if method == "OPTIONS" else problem_reply(self._not_allowed(method))
        call = Call(scope["path_params"], scope["query_string"], scope["headers"], receive)
        try:
            return await handler(call)
        except Problem as problem:
            if method == "POST":
                await call.discard_body()
            return problem_reply(problem)
        except BoardNotReady as error:
            return problem_reply(not_ready(error))
        except StoreUnavailable as error:
            log.warning("a store is unavailable", route=self._route, error=str(error))
            return problem_reply(Problem("store-unavailable", _first_words(error), headers={"Retry-After": "1"}))
        except ClientGone:
            raise
        except Exception:
            log.exception("a request met a defect", route=self._route)
            return defect_reply()

    def _options(self) -> Reply:
        headers: Headers = [(b"allow", self._allow.encode("ascii"))]
        if self._cors:
            headers += [
                (b"access-control-allow-methods", self._allow.encode("ascii")),
                (b"access-control-allow-headers", b"content-type, if-none-match"),
                (b"access-control-max-age", b"86400"),
            ]
        return Reply(204, b"", headers)

    def _not_allowed(self, method: str) -> Problem:
        return Problem(
            "method-not-allowed", f"this path has no {method}; it has {self._allow}", headers={"Allow": self._allow}
        )


class NotFound:
    """Every path that there is not."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        """Answers the problem; a web socket is closed."""
        del receive
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})
            return
        reply = problem_reply(Problem("not-found", "there is no such path; ids in a path are percent-encoded"))
        self._metrics.count_request("none", "other", reply.status, 0.0)
        await _send(reply, _CORS, send, bodiless=scope["method"] == "HEAD")


class RawPaths:
    """Routes by the path as it was sent, so that `a%2Fb` is one part of it; parts are decoded once, by the call."""

    def __init__(self, app: Callable[[Scope, Any, Any], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Passes the request on under its raw path."""
        raw = scope.get("raw_path")
        if raw is not None:
            scope["path"] = raw.split(b"?", 1)[0].decode("latin-1")
        await self._app(scope, receive, send)


async def _send(reply: Reply, more: Headers, send: Send, *, bodiless: bool) -> None:
    headers = [*reply.headers, *more]
    if reply.status not in (204, 304):
        headers.append((b"content-length", str(len(reply.body)).encode("ascii")))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if bodiless else reply.body})


async def _send_stream(stream: Stream, more: Headers, send: Send, *, bodiless: bool) -> None:
    await send({"type": "http.response.start", "status": stream.status, "headers": [*stream.headers, *more]})
    if not bodiless:
        await stream.run(lambda piece: send({"type": "http.response.body", "body": piece, "more_body": True}))
    await send({"type": "http.response.body", "body": b""})


def _first_words(error: StoreUnavailable) -> str:
    """What failed, without the driver's words about it: those name hosts."""
    return str(error).split(":", 1)[0]
