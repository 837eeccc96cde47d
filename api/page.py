"""The web page at `/`: static files from api/page/."""

from __future__ import annotations

from importlib.resources import files

from api.calls import Call
from api.files import Files
from api.replies import Reply

# Players choose their ids: nothing but this origin's own files may run or be shown here, whatever an id says.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Page:
    """GET / and /page/{name}."""

    def __init__(self) -> None:
        self._files = Files(files("api").joinpath("page").iterdir(), _POLICY)

    async def index(self, call: Call) -> Reply:
        """The document. What is in its query is of no concern to the server."""
        return self._files.show("index.html", call)

    async def file(self, call: Call) -> Reply:
        """What the document refers to."""
        return self._files.show(call.part("name"), call)
