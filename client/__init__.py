"""A small client of the HTTP API, sync and async. Needs httpx and pydantic, and nothing of the server."""

from client.asynchronous import AsyncClient
from client.errors import (
    ClientError,
    MatchConflict,
    NotAppliedYet,
    NotFound,
    ProblemError,
    Unavailable,
    UnexpectedReply,
    Unreachable,
)
from client.retries import Retries
from client.synchronous import Client

__all__ = [
    "AsyncClient",
    "Client",
    "ClientError",
    "MatchConflict",
    "NotAppliedYet",
    "NotFound",
    "ProblemError",
    "Retries",
    "Unavailable",
    "UnexpectedReply",
    "Unreachable",
]
