"""The vocabulary of the API's description: operations, with parameters, bodies, answers and problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from api.submits import JSON
from schemas.settings import Role

EVENTS = "text/event-stream"
HTML = "text/html"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that stands in the path, the query or the headers."""

    name: str
    place: Literal["path", "query", "header"]
    says: str
    schema: Mapping[str, Any]
    example: Any = None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """What an operation takes. A model's text is JSON; of NDJSON, each line is one of the models."""

    says: str
    models: tuple[type[BaseModel], ...]
    examples: Mapping[str, Any]
    media: str = JSON


@dataclass(frozen=True, slots=True)
class Answer:
    """What an operation answers when all is well. Without models: text, or nothing where there is no media type."""

    status: int
    says: str
    models: tuple[type[BaseModel], ...] = ()
    example: Any = None
    media: str | None = JSON
    headers: tuple[str, ...] = ("Cache-Control",)


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `serves`: the route set that it belongs to; None where every process has it."""

    method: Literal["GET", "POST"]
    path: str
    name: str
    says: str
    serves: Role | None
    answers: tuple[Answer, ...]
    parameters: tuple[Parameter, ...] = ()
    problems: tuple[str, ...] = ()
    body: Body | None = None
    more: str = ""

    @property
    def needs_key(self) -> bool:
        """Whether it is for game servers alone."""
        return self.serves == "submit"
