"""The API's description, to read and to try, at `/docs`: Swagger UI from its package, so that no network is needed."""

from __future__ import annotations

from importlib.resources import files

from swagger_ui_bundle import swagger_ui_path

from api.calls import Call
from api.files import Files
from api.replies import Reply

# Of some 20 files, those that the document refers to.
_VIEWER = ("swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png")
# Swagger UI puts its icons into data: addresses. All else is of this origin.
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Docs:
    """GET /docs and /docs/{name}."""

    def __init__(self) -> None:
        own = files("api").joinpath("docs").iterdir()
        self._files = Files([*own, *(swagger_ui_path / name for name in _VIEWER)], _POLICY)

    async def index(self, call: Call) -> Reply:
        """The document."""
        return self._files.show("index.html", call)

    async def file(self, call: Call) -> Reply:
        """What the document refers to."""
        return self._files.show(call.part("name"), call)
