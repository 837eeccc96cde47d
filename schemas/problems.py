"""The problems that a reply can name (RFC 9457): one name, one status, one title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.errors import Fault

MEDIA_TYPE = "application/problem+json"

CATALOGUE: dict[str, tuple[int, str]] = {
    "invalid-json": (400, "The body is not JSON"),
    "unauthorized": (401, "A key is needed"),
    "forbidden": (403, "The key may not write this leaderboard"),
    "leaderboard-not-found": (404, "No such leaderboard"),
    "board-not-found": (404, "No such board"),
    "player-not-found": (404, "The player is not on this board"),
    "match-not-found": (404, "No receipt of this match"),
    "not-found": (404, "No such path"),
    "method-not-allowed": (405, "The path does not have this method"),
    "match-conflict": (409, "The match is recorded with other results"),
    "board-expired": (410, "The board is past its retention"),
    "too-large": (413, "The body is too large"),
    "unsupported-media-type": (415, "The body has the wrong content type"),
    "invalid-request": (422, "The request is invalid"),
    "overloaded": (503, "Too much is in flight"),
    "board-not-ready": (503, "The board is being rebuilt"),
    "store-unavailable": (503, "A store can't be reached"),
    "not-applied-yet": (504, "The position is not applied yet"),
}


@dataclass(eq=False)  # not frozen: contextlib sets __traceback__ on what passes through it
class Problem(Exception):
    """A reply that says what is wrong; raised by handlers, written once at the edge.

    `parameters` and `pointers` list every fault of a request; `more` are further members.
    """

    name: str
    detail: str
    pointers: Sequence[Fault] = ()
    parameters: Sequence[Fault] = ()
    headers: dict[str, str] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> int:
        """The HTTP status that belongs to the name."""
        return CATALOGUE[self.name][0]

    def body(self) -> dict[str, Any]:
        """The members of the problem document."""
        status, title = CATALOGUE[self.name]
        body: dict[str, Any] = {
            "type": f"/problems/{self.name}",
            "title": title,
            "status": status,
            "detail": self.detail,
        }
        errors = [{"pointer": fault.place, "detail": fault.detail} for fault in self.pointers]
        errors += [{"parameter": fault.place, "detail": fault.detail} for fault in self.parameters]
        if errors:
            body["errors"] = errors
        return body | self.more
