"""Replies: what a handler hands back, free of any framework."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from schemas.problems import MEDIA_TYPE, Problem
from schemas.wire import encode_json

Headers = list[tuple[bytes, bytes]]

JSON_TYPE = (b"content-type", b"application/json")
EVENTS_TYPE = (b"content-type", b"text/event-stream")
UNSTORED = (b"cache-control", b"no-store")
_PROBLEM_TYPE = (b"content-type", MEDIA_TYPE.encode("ascii"))


@dataclass(slots=True)
class Reply:
    """Status, body and headers (names in lower case), ready to be sent."""

    status: int
    body: bytes
    headers: Headers = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """A reply without an end of its own: `run` sends piece after piece, until the client or the server goes."""

    run: Callable[[Callable[[bytes], Awaitable[None]]], Awaitable[None]]
    status: int = 200
    headers: Headers = field(default_factory=lambda: [EVENTS_TYPE, UNSTORED, (b"x-accel-buffering", b"no")])


def json_reply(value: Any, status: int = 200, headers: Iterable[tuple[bytes, bytes]] = (UNSTORED,)) -> Reply:
    """The value as JSON. Nobody may store it, unless the headers say otherwise."""
    return Reply(status, encode_json(value), [JSON_TYPE, *headers])


def problem_reply(problem: Problem) -> Reply:
    """The problem document."""
    named = [(name.lower().encode("ascii"), value.encode("ascii")) for name, value in problem.headers.items()]
    return Reply(problem.status, encode_json(problem.body()), [_PROBLEM_TYPE, UNSTORED, *named])


def defect_reply() -> Reply:
    """What a defect of ours looks like from outside: a plain 500 that gives nothing away."""
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    body = {
        "type": "about:blank",
        "title": status.phrase,
        "status": status.value,
        "detail": "this is a defect of the service; it is in the log, and a retry is safe",
    }
    return Reply(status.value, encode_json(body), [_PROBLEM_TYPE, UNSTORED])
