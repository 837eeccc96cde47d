"""The web page at `/`: static files from api/page/, held in memory."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from api.calls import Call
from api.replies import Headers, Reply
from schemas.problems import Problem

INDEX = "index.html"

_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
}

# Players choose their ids: nothing but this origin's own files may run or be shown here, whatever an id says.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Headers = [
    (b"cache-control", b"no-cache"),  # kept, but asked for anew: files of two versions never mix for long
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]


class Page:
    """GET / and /page/{name}."""

    def __init__(self) -> None:
        self._files = _read_files()

    async def index(self, call: Call) -> Reply:
        """The document. What is in its query is of no concern to the server."""
        return self._show(INDEX, call)

    async def file(self, call: Call) -> Reply:
        """What the document refers to."""
        return self._show(call.part("name") or "", call)

    def _show(self, name: str, call: Call) -> Reply:
        found = self._files.get(name)
        if found is None:
            raise Problem("not-found", "the page has no such file")
        media_type, tag, body = found
        headers: Headers = [(b"etag", tag), *_HEADERS]
        known = (call.header(b"if-none-match") or b"").split(b",")
        if any(one.strip().removeprefix(b"W/") in (tag, b"*") for one in known):
            return Reply(304, b"", headers)
        return Reply(200, body, [(b"content-type", media_type), *headers])


def _read_files() -> dict[str, tuple[bytes, bytes, bytes]]:
    """(media type, tag, body) by name."""
    found: dict[str, tuple[bytes, bytes, bytes]] = {}
    for file in files("api").joinpath("page").iterdir():
        media_type = _TYPES.get("." + file.name.rpartition(".")[2])
        if media_type is not None:
            body = file.read_bytes()
            tag = b'"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode("ascii") + b'"'
            found[file.name] = (media_type, tag, body)
    return found
