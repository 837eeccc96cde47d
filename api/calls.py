"""Calls: one request as handlers see it, free of any framework: path parts, query, headers, body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from schemas.problems import Problem

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGone(Exception):
    """The client went away before its body was whole: there is nobody to answer."""


_DISCARD_BYTES = 8 * 1024 * 1024
_DISCARD_S = 1.0


@dataclass(slots=True)
class Call:
    """One request. `parts` are path parts as they were sent, in latin-1; `receive` gives the body's ASGI messages."""

    parts: Mapping[str, str]
    query_string: bytes
    headers: Sequence[tuple[bytes, bytes]]
    receive: Receive
    _body_ended: bool = False

    def part(self, name: str) -> str | None:
        """A path part, percent-decoded once; None where that is not UTF-8."""
        sent = self.parts[name]
        if "%" not in sent and sent.isascii():
            return sent
        try:
            return unquote_to_bytes(sent.encode("latin-1")).decode("utf-8")
        except UnicodeDecodeError:
            return None

    def header(self, name: bytes) -> bytes | None:
        """The first header of this name (in lower case)."""
        return next((value for known, value in self.headers if known == name), None)

    def knows(self, tag: bytes) -> bool:
        """Whether If-None-Match names this ETag (weakly compared), or any."""
        known = [one.strip().removeprefix(b"W/") for one in (self.header(b"if-none-match") or b"").split(b",")]
        return b"*" in known or tag.removeprefix(b"W/") in known

    def check_content_type(self, wanted: str) -> None:
        """Raises the problem unless the body says that it is of this media type; parameters do no harm."""
        sent = (self.header(b"content-type") or b"").split(b";")[0].strip().lower()
        if sent != wanted.encode("ascii"):
            shown = sent.decode("ascii", "replace") or "nothing"
            raise Problem("unsupported-media-type", f"send this body as {wanted}; it says that it is {shown}")

    async def body(self, limit: int) -> bytes:
        """The whole body. Raises ClientGone, and the problem once more than `limit` bytes come or are announced."""
        announced = self.header(b"content-length")
        if announced is not None and announced.isdigit() and int(announced[:20]) > limit:
            raise _too_large(limit)
        chunks: list[bytes] = []
        size = 0
        while True:
            chunk = await self._next_chunk()
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            chunks.append(chunk)
            if self._body_ended:
                return b"".join(chunks)

    async def discard_body(self) -> None:
        """Read what the client still sends, within bounds: a connection that is closed on it may lose the reply."""
        if self.header(b"expect") is not None:
            return  # the client waits to be told whether it should send at all
        size = 0
        try:
            async with asyncio.timeout(_DISCARD_S):
                while not self._body_ended and size <= _DISCARD_BYTES:
                    size += len(await self._next_chunk())
        except TimeoutError:
            return

    async def next_message(self) -> None:
        """Wait for what comes after the body. Raises ClientGone when that is the client's end."""
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone

    async def _next_chunk(self) -> bytes:
        message = await self.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._body_ended = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


def _too_large(limit: int) -> Problem:
    # What the client still sends can't be told from the next request: the connection ends here.
    return Problem("too-large", f"a body of this call has at most {limit} bytes", headers={"Connection": "close"})
