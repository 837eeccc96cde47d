"""Static files, held in memory, that may load and run nothing but what their policy says."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from importlib.resources.abc import Traversable

from api.calls import Call
from api.replies import Headers, Reply
from schemas.problems import Problem

_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
}


class Files:
    """What these files are, by name; others than the known types are left out."""

    def __init__(self, files: Iterable[Traversable], policy: bytes) -> None:
        self._found = dict(_read(files))
        self._headers: Headers = [
            (b"cache-control", b"no-cache"),  # kept, but asked for anew: files of two versions never mix for long
            (b"content-security-policy", policy),
            (b"x-content-type-options", b"nosniff"),
            (b"referrer-policy", b"no-referrer"),
        ]

    def show(self, name: str | None, call: Call) -> Reply:
        """The file, or that the client has it already; raises the problem for a name that there is not."""
        found = self._found.get(name or "")
        if found is None:
            raise Problem("not-found", "the page has no such file")
        media_type, tag, body = found
        headers: Headers = [(b"etag", tag), *self._headers]
        if call.knows(tag):
            return Reply(304, b"", headers)
        return Reply(200, body, [(b"content-type", media_type), *headers])


def tag_of(body: bytes) -> bytes:
    """The strong ETag of a body."""
    return b'"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode("ascii") + b'"'


def _read(files: Iterable[Traversable]) -> Iterable[tuple[str, tuple[bytes, bytes, bytes]]]:
    """(media type, tag, body) by name."""
    for file in files:
        media_type = _TYPES.get("." + file.name.rpartition(".")[2])
        if media_type is not None:
            body = file.read_bytes()
            yield file.name, (media_type, tag_of(body), body)
