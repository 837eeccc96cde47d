"""Live boards: events out of chunks, and streams that follow each other."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client import NotFound, UnexpectedReply, Unreachable
from client.events import Event, EventParser
from tests.client.script import Caller, Chunks, Script, problem

Make = Callable[..., Caller]
STREAM = (
    "\ufeff: hello\n\nevent: top\ndata: {\ndata:  1}\n\nretry: 1500\nretry: x\nid: 7\ndata\n\ndata: é🏆\r\n\r\n"
    "event: other\r\rdata: a\rdata:b\r\revent: top\n\nnonsense: 1\ndata: {}\n:\n\ndata: cut off"
).encode()
EVENTS = [
    Event("top", "{\n 1}"),
    Event("message", ""),
    Event("message", "é🏆"),
    Event("message", "a\nb"),
    Event("message", "{}"),
]


def page(size: int) -> dict[str, Any]:
    return {"board": "main:all", "as_of": None, "size": size, "entries": [], "next": None}


def event(size: int) -> bytes:
    return f"event: top\ndata: {json.dumps(page(size))}\n\n".encode()


def stream(*pieces: bytes | Exception) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(200, stream=Chunks(pieces), request=request)


def parse(chunks: list[bytes]) -> list[Event]:
    parser = EventParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def test_events_are_told_apart_however_their_lines_end() -> None:
    parser = EventParser()
    assert parser.feed(STREAM) == EVENTS
    assert parser.retry_s == 1.5


def test_a_stream_may_be_cut_between_any_bytes() -> None:
    for at in range(len(STREAM)):
        assert parse([STREAM[:at], STREAM[at:]]) == EVENTS, at
    assert parse([STREAM[at : at + 1] for at in range(len(STREAM))]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_a_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    assert parse([STREAM[a:b] for a, b in pairwise(places)]) == EVENTS


def test_a_live_board_is_a_page_whenever_it_changes(caller: Make) -> None:
    pieces = [event(1)[:9], event(1)[9:] + b": still here\n\n" + event(2), b"event: more\ndata: 1\n\n", event(3)]
    script = Script(stream(*pieces))
    sizes = [one.size for one in caller(script)("live", "main:all", 5, most=3)]
    assert sizes == [1, 2, 3]
    (request,) = script.requests
    assert (request.url.raw_path, request.extensions["timeout"]["read"]) == (b"/v1/boards/main%3Aall/live?n=5", 40)


def test_whatever_ends_a_stream_the_next_one_is_begun(caller: Make) -> None:
    script = Script(
        stream(event(1)),
        stream(event(2), httpx.ReadError("reset")),
        httpx.ConnectError("refused"),
        problem("store-unavailable", 503, {"Retry-After": "3"}),
        stream(b"retry: 9000\n\n", event(3), event(3)[:20]),
        stream(event(4)),
    )
    assert [one.size for one in caller(script, chance=0.5)("live", "all", most=4)] == [1, 2, 3, 4]
    assert script.pauses == pytest.approx([1.05, 1.05, 1.1, 4.2, 10])


def test_a_stream_that_says_nothing_for_long_is_given_up_at_the_deadline(caller: Make) -> None:
    script = Script(stream(event(1)), stream())
    with pytest.raises(Unreachable, match="the stream ended"):
        caller(script)("live", "all")
    assert len(script.requests) > 5


def test_a_live_board_that_there_is_not_is_told(caller: Make) -> None:
    script = Script(stream(event(1)), problem("board-not-found", 404))
    with pytest.raises(NotFound, match="board-not-found it is"):
        caller(script)("live", "all")


def test_an_event_that_is_no_page_is_told(caller: Make) -> None:
    with pytest.raises(UnexpectedReply):
        caller(Script(stream(b"event: top\ndata: {}\n\n")))("live", "all")


def test_who_stops_listening_closes_the_stream(caller: Make) -> None:
    body = Chunks([event(1), event(2)])
    script = Script(lambda request: httpx.Response(200, stream=body, request=request))
    caller(script)("live", "all", most=1)
    assert body.closed
