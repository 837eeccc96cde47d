"""submit: matches or scores from a file, over HTTP in batches; what is refused is told by line."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

from client import Client
from client.batches import MAX_BYTES
from client.errors import ClientError, problem_error
from schemas.errors import StandingsError
from schemas.problem_replies import BatchAccepted

_COLUMNS = ("match_id", "player_id", "score", "leaderboard", "ended_at")
_NEEDED = 3
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,30})", re.ASCII)


@dataclass(slots=True)
class Submitted:
    """How it went: lines accepted, and those refused with the reason, by line number."""

    accepted: int = 0
    refused: list[tuple[int, str]] = field(default_factory=list)
    position: str | None = None


def submit_lines(
    client: Client, lines: Iterable[tuple[int, str | csv.Error]], progress: Callable[[int], None] = lambda _: None
) -> Submitted:
    """Submit numbered NDJSON lines in batches; returns once all are in the log or refused. Safe to repeat whole.

    A line that couldn't be read comes as its error, and counts as refused.
    """
    result = Submitted()
    unanswered: deque[int] = deque()

    def encoded() -> Iterator[bytes]:
        for number, line in lines:
            if isinstance(line, csv.Error):
                result.refused.append((number, f"is no CSV: {line}"))
                continue
            raw = line.encode("utf-8", "surrogateescape")
            if len(raw) > MAX_BYTES:
                result.refused.append((number, f"has {len(raw)} bytes: one match is a line"))
                continue
            unanswered.append(number)
            yield raw

    try:
        for answer in client.submit_batch(encoded()):
            number = unanswered.popleft()
            if isinstance(answer, BatchAccepted):
                result.accepted += 1
                result.position = answer.position
            else:
                refusal = problem_error(answer.status, answer.model_dump(exclude_unset=True))
                result.refused.append((number, str(refusal)))
            progress(1)
    except ClientError as error:
        if not result.accepted and not result.refused:
            raise
        told = f"{result.accepted} lines were accepted before this, the next may have been: submit the whole again"
        raise StandingsError(f"{error}; {told}") from error
    result.refused.sort()
    return result


def read_lines(source: TextIO, name: str) -> Iterator[tuple[int, str | csv.Error]]:
    """Numbered NDJSON lines of a file: as they are, or made of the rows of a CSV (by its name or its first line)."""
    first = source.readline().removeprefix("\ufeff")
    rest = _chain(first, source)
    if name.endswith(".csv") or (
        not name.endswith(("json", "jsonl")) and first.lstrip()[:1] not in ("", "{", "[", '"')
    ):
        yield from _csv_lines(rest)
        return
    for number, line in enumerate(rest, 1):
        if line.strip():
            yield number, line.rstrip("\r\n")


def _csv_lines(lines: Iterable[str]) -> Iterator[tuple[int, str | csv.Error]]:
    """A row is one player's score; an empty cell is left out; what is no integer goes on as text, to be refused."""
    columns: tuple[str, ...] = _COLUMNS
    for number, row in _csv_rows(lines):
        if isinstance(row, csv.Error):
            yield number, row
            continue
        if not any(row):
            continue
        if number == 1 and row[0].strip() == "match_id":
            columns = tuple(cell.strip() for cell in row)
            continue
        cells: dict[str, Any] = {name: cell for name, cell in zip(columns, row, strict=False) if cell != ""}
        cells |= {f"column {extra + 1}": row[extra] for extra in range(len(columns), len(row))}
        if _INTEGER.fullmatch(cells.get("score", "")):
            cells["score"] = int(cells["score"])
        yield number, json.dumps(cells, ensure_ascii=False)


def _csv_rows(lines: Iterable[str]) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """Rows by the number of their last line; one that can't be read is its error, and the next line begins anew."""
    reader = csv.reader(lines)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield reader.line_num, error
        else:
            yield reader.line_num, row


def _chain(first: str, rest: Iterable[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest


def open_text(raw: Any) -> TextIO:
    """A byte stream as text whose broken UTF-8 travels on, to be refused by line."""
    return io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="")
