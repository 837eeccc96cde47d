"""The commands' side of the HTTP contract: requests with retries that are safe, and problems as one line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Self
from urllib.parse import quote

import httpx

from schemas.errors import StandingsError

_TRIES = 8
_FIRST_WAIT_S = 0.25
_TIMEOUT_S = 30.0


class RequestRefused(StandingsError):
    """The service answered with a problem."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(describe_problem(problem))
        self.problem = problem


class Service:
    """A deployment over HTTP. Requests are repeated while nobody answers: submissions are idempotent."""

    def __init__(self, url: str, key: str, sleep: Callable[[float], None] = time.sleep) -> None:
        self._url = url
        self._sleep = sleep
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=_TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def get(self, path: str, **parameters: str | int) -> Any:
        """The JSON of a read. Raises RequestRefused with the problem, and StandingsError when nobody answers."""
        return self._answer(lambda: self._client.get(path, params=parameters))

    def post(self, path: str, body: bytes, media_type: str = "application/json") -> Any:
        """The JSON of a submission, retried until it is answered or has failed often enough."""
        return self._answer(lambda: self._client.post(path, content=body, headers={"Content-Type": media_type}))

    def _answer(self, request: Callable[[], httpx.Response]) -> Any:
        reason = ""
        for attempt in range(_TRIES):
            try:
                reply = request()
            except httpx.TransportError as error:
                reason = (
                    f"no service answers at {self._url} ({error}): is it running? STANDINGS_URL or --data tell where"
                )
                if isinstance(error, httpx.ConnectError) and attempt >= 2:
                    break
            else:
                if reply.status_code < 400:
                    return _lines_or_json(reply)
                problem = _problem(reply)
                if reply.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                    raise RequestRefused(problem)
                reason = describe_problem(problem)
            self._sleep(_FIRST_WAIT_S * 2 ** min(attempt, 4))
        raise StandingsError(reason)


def quoted(part: str) -> str:
    """A path part, percent-encoded whole."""
    return quote(part, safe="")


def describe_problem(problem: Mapping[str, Any]) -> str:
    """A problem as one line: every fault with its place, or the detail."""
    faults = [f"{one.get('pointer', one.get('parameter'))}: {one['detail']}" for one in problem.get("errors", [])]
    return "; ".join(faults) or str(problem.get("detail") or problem.get("title") or problem.get("status"))


def _problem(reply: httpx.Response) -> dict[str, Any]:
    try:
        found = reply.json()
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {"status": reply.status_code, "detail": f"HTTP {reply.status_code}"}


def _lines_or_json(reply: httpx.Response) -> Any:
    if "ndjson" in reply.headers.get("content-type", ""):
        return [httpx.Response(200, content=line).json() for line in reply.content.splitlines() if line.strip()]
    return reply.json()
