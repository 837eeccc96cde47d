"""Problem documents (RFC 9457) as models, and the lines of a batch's reply, each of which may be one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from schemas.problems import CATALOGUE
from schemas.replies import LaneInfo, ReplyBody, StoreStates, Token


def _example(name: str, detail: str, **more: Any) -> ConfigDict:
    """The part of a model's settings that shows one problem."""
    status, title = CATALOGUE[name]
    shown: dict[str, Any] = {"type": f"/problems/{name}", "title": title, "status": status, "detail": detail}
    return ConfigDict(json_schema_extra={"examples": [shown | more]})


class BodyFault(ReplyBody):
    """Something that is wrong with a body: where, as a JSON pointer, and what would be right."""

    pointer: Annotated[str, Field(examples=["/results/0/score"])]
    detail: Annotated[str, Field(examples=["must be from 0 to 100 on main"])]


class ParameterFault(ReplyBody):
    """Something that is wrong with a parameter of the query or the path."""

    parameter: Annotated[str, Field(examples=["n"])]
    detail: Annotated[str, Field(examples=["must be a plain integer from 1 to 1000"])]


Faults = Annotated[list[BodyFault | ParameterFault], Field(min_length=1, description="Every fault of the request")]
Outcome = Annotated[
    Literal[False] | None,
    Field(description="Of a submission: false, nothing was accepted; null, nobody knows, and a retry is safe"),
]


class ProblemReply(ReplyBody):
    """What is wrong: `type` tells which problem it is, `detail` what it is this time."""

    model_config = _example("player-not-found", "'ghost' has no score on main:all")
    type: Annotated[str, Field(pattern=r"^/problems/[a-z-]+$")]
    title: str
    status: Annotated[int, Field(ge=400, le=599)]
    detail: str


class InvalidRequestReply(ProblemReply):
    """422: the request is invalid."""

    model_config = _example(
        "invalid-request", "n must be a plain integer from 1 to 1000",
        errors=[{"parameter": "n", "detail": "must be a plain integer from 1 to 1000"}],
    )  # fmt: skip
    type: Literal["/problems/invalid-request"]
    errors: Faults


class OverloadedReply(ProblemReply):
    """503: too many events are in flight. Nothing was accepted."""

    model_config = _example(
        "overloaded", "nothing was accepted: 10000 events are in flight already", accepted=False
    )  # fmt: skip
    type: Literal["/problems/overloaded"]
    accepted: Literal[False]


class StoreUnavailableReply(ProblemReply):
    """503: a store or the log is out of reach. `accepted` stands in replies to submissions."""

    model_config = _example("store-unavailable", "nobody knows whether the log has it: a retry is safe", accepted=None)
    type: Literal["/problems/store-unavailable"]
    accepted: Outcome = None


class RebuildProgress(ReplyBody):
    """How far a rebuild has come."""

    rows: Annotated[int, Field(ge=0, description="How many rows it has brought back")]


class BoardNotReadyReply(ProblemReply):
    """503: the board is being brought back. `progress` is null while no rebuild runs."""

    model_config = _example(
        "board-not-ready", "the board is in lane 3, which is rebuilding; it is being brought back from the scorebook",
        state="rebuilding", progress={"rows": 12_000},
    )  # fmt: skip
    type: Literal["/problems/board-not-ready"]
    state: Literal["rebuilding"]
    progress: RebuildProgress | None


class UnreadyReply(ProblemReply):
    """503 of `/readyz`: something that is served here does not work."""

    model_config = _example(
        "board-not-ready", "lane 1 is rebuilding", stores={"redis": "ok", "kafka": "ok", "dynamodb": "ok"},
        lanes=[{"lane": 1, "state": "rebuilding", "as_of": None, "progress": "12000"}],
    )  # fmt: skip
    type: Literal["/problems/board-not-ready", "/problems/store-unavailable"]
    stores: StoreStates
    lanes: list[LaneInfo]


class DefectReply(ReplyBody):
    """500: a defect of the service, which gives nothing away."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "about:blank",
                    "title": "Internal Server Error",
                    "status": 500,
                    "detail": "this is a defect of the service; it is in the log, and a retry is safe",
                }
            ]
        }
    )
    type: Literal["about:blank"]
    title: str
    status: Literal[500]
    detail: str


_WITH_MORE: dict[str, type[ProblemReply]] = {
    "invalid-request": InvalidRequestReply,
    "overloaded": OverloadedReply,
    "store-unavailable": StoreUnavailableReply,
    "board-not-ready": BoardNotReadyReply,
}
# The document of each problem that the catalogue names. Those of /readyz are UnreadyReply.
PROBLEM_REPLIES: dict[str, type[ProblemReply]] = {name: _WITH_MORE.get(name, ProblemReply) for name in CATALOGUE}


class BatchAccepted(ReplyBody):
    """A line of a batch that the log has."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"line": 1, "status": 202, "position": "fcm1eKikAt0B"}]})
    line: Annotated[int, Field(ge=1, description="From 1, in the order of the lines sent")]
    status: Literal[202]
    position: Token


class BatchRefused(ProblemReply):
    """A line of a batch that was refused: the line's number, and the members of a problem."""

    model_config = _example(
        "invalid-request", "/results is required", line=3, errors=[{"pointer": "/results", "detail": "is required"}]
    )  # fmt: skip
    line: Annotated[int, Field(ge=1, description="From 1, in the order of the lines sent")]
    errors: Annotated[Faults | None, Field(description="Stands where the problem is invalid-request")] = None
    accepted: Outcome = None
