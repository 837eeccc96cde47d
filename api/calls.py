"""Calls: one request as handlers see it, free of any framework: path parts, query, headers, body."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from schemas.problems import Problem

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGone(Exception):
    """The client went away before its body was whole: there is nobody to answer."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `parts` are path parts as they were sent, in latin-1; `receive` gives the body's ASGI messages."""

    parts: Mapping[str, str]
    query_string: bytes
    headers: Sequence[tuple[bytes, bytes]]
    receive: Receive

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
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise _too_large(limit)
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)


def _too_large(limit: int) -> Problem:
    # What the client still sends can't be told from the next request: the connection ends here.
    return Problem("too-large", f"a body of this call has at most {limit} bytes", headers={"Connection": "close"})
