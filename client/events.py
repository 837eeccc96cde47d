"""Server-sent events, parsed as the HTML standard says, from chunks that may be cut anywhere. No I/O."""

from __future__ import annotations

import codecs
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name, `message` by default, and its data, lines joined by a line feed."""

    name: str
    data: str


class EventParser:
    """Takes the chunks of one stream. `retry_s`: how long the server asks to pause before the next; None: not said."""

    def __init__(self) -> None:
        self.retry_s: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pieces: list[str] = []
        self._has_begun = False
        self._ended_by_cr = False
        self._name = ""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes. One that the end of the stream cuts off never comes."""
        text = self._decoder.decode(chunk)
        if text and not self._has_begun:
            self._has_begun = True
            text = text.removeprefix("\ufeff")
        if self._ended_by_cr and text:
            self._ended_by_cr = False
            text = text.removeprefix("\n")
        if not text:
            return []
        self._ended_by_cr = text.endswith("\r")
        *complete, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        events: list[Event] = []
        for line in complete:
            self._pieces.append(line)
            event = self._take("".join(self._pieces))
            self._pieces.clear()
            if event is not None:
                events.append(event)
        if rest:
            self._pieces.append(rest)
        return events

    def _take(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        elif field == "retry" and value.isascii() and value.isdigit():
            self.retry_s = int(value[:9]) / 1_000
        return None

    def _dispatch(self) -> Event | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return Event(name or "message", "\n".join(data)) if data else None
