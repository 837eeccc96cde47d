"""What a call may raise, sorted by what the caller must do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.errors import Fault, StandingsError

_ABOUT_BLANK = "about:blank"
_PROBLEMS = "/problems/"


class ClientError(StandingsError):
    """The base of all that the client raises on purpose."""


class Unreachable(ClientError):
    """Nobody answered in time. A submission may have been accepted all the same: repeating it is safe."""

    def __init__(self, url: str, cause: str) -> None:
        super().__init__(f"no service answers at {url} ({cause})")
        self.url = url
        self.cause = cause


class UnexpectedReply(ClientError):
    """What answers is not this API, or one that this client is too old for."""


class ProblemError(ClientError):
    """The service answered with a problem (RFC 9457). As a text: every fault with its place, or the detail.

    `name` is one of docs/http.md, such as `player-not-found`, or `about:blank` where the answer was
    no problem of this API, as a proxy's; `errors` are the faults of an `invalid-request`;
    `document` has all members. `retry_after_s` is what the service asked for.
    """

    def __init__(self, status: int, document: Mapping[str, Any], retry_after_s: float | None = None) -> None:
        self.status = status
        self.name = str(document.get("type", _ABOUT_BLANK)).removeprefix(_PROBLEMS)
        self.title = str(document.get("title", f"HTTP {status}"))
        self.detail = str(document.get("detail", self.title))
        self.errors = tuple(_faults(document))
        self.document = document
        self.retry_after_s = retry_after_s
        super().__init__(
            "; ".join(f"{fault.place}: {fault.detail}".lstrip(": ") for fault in self.errors) or self.detail
        )


class NotFound(ProblemError):
    """There is no such player on the board, board, leaderboard or match: `name` tells which."""


class MatchConflict(ProblemError):
    """Something else is recorded under this match id, and stays. Only told where the submission waited."""


class NotAppliedYet(ProblemError):
    """The position that the read wanted to see was not applied in time. The read itself is fine without `after`."""


class Unavailable(ProblemError):
    """The service can't answer at the moment, and couldn't until the deadline of the retries."""


def problem_error(status: int, document: object, retry_after_s: float | None = None) -> ProblemError:
    """The error of a reply: the class by the name of the problem, else by the status."""
    members = document if isinstance(document, Mapping) else {}
    kind = _BY_NAME.get(str(members.get("type"))) or _BY_STATUS.get(status, ProblemError)
    return kind(status, members, retry_after_s)


def _faults(document: Mapping[str, Any]) -> list[Fault]:
    listed = document.get("errors")
    faults = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    return [Fault(str(one.get("pointer", one.get("parameter", ""))), str(one.get("detail", ""))) for one in faults]


_BY_NAME: dict[str, type[ProblemError]] = {
    f"{_PROBLEMS}match-conflict": MatchConflict,
    f"{_PROBLEMS}not-applied-yet": NotAppliedYet,
}
_BY_STATUS: dict[int, type[ProblemError]] = {404: NotFound, 502: Unavailable, 503: Unavailable, 504: Unavailable}
