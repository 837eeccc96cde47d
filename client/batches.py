"""Batches: any number of lines, cut to what one request may hold. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import httpx
from pydantic import TypeAdapter

from client.calls import Call
from schemas.problem_replies import BatchAccepted, BatchRefused

MAX_LINES = 1_000
MAX_BYTES = 4 * 1024 * 1024

# A match, or one player's score: as a mapping, or as the JSON of one.
Line: TypeAlias = Mapping[str, Any] | str | bytes
BatchLine: TypeAlias = BatchAccepted | BatchRefused
_ANSWER: TypeAdapter[BatchLine] = TypeAdapter(BatchLine)


def cut(lines: Iterable[Line]) -> Iterator[list[bytes]]:
    """The lines in batches that keep to both limits, taken as they are needed.

    Raises ValueError for an empty line, and one that is two: the answers could not be told apart.
    """
    batch: list[bytes] = []
    size = 0
    for line in lines:
        encoded = _encode(line)
        if batch and (len(batch) >= MAX_LINES or size + len(encoded) + 1 > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(encoded)
        size += len(encoded) + 1
    if batch:
        yield batch


def submit_lines(lines: list[bytes]) -> Call[list[BatchLine]]:
    """Submit one batch; its answers, in order."""
    body = b"\n".join(lines)
    return Call("POST", "/v1/matches:batch", read_answers, body=body, media_type="application/x-ndjson", needs_key=True)


def read_answers(response: httpx.Response) -> list[BatchLine]:
    """The answer to each line of a batch."""
    return [_ANSWER.validate_json(line, extra="ignore") for line in response.content.split(b"\n") if line]


def _encode(line: Line) -> bytes:
    if isinstance(line, Mapping):
        return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
    raw = line.encode() if isinstance(line, str) else line
    raw = raw.rstrip(b"\r\n")
    if b"\n" in raw or not raw.strip():
        raise ValueError("a line of a batch is one match: not empty, and without a line break")
    return raw
