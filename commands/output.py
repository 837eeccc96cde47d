"""What commands print: tables for people, JSON for programs, one line on stderr for errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text


def console() -> Console:
    """Standard output; colour and width only where it is a terminal."""
    return Console(soft_wrap=not sys.stdout.isatty(), highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def fail(message: str) -> None:
    """One line on standard error that says what to do."""
    line = " ".join(message.split())
    sys.stderr.write(f"standings: {line}\n")


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Table:
    """A table; numbers to the right. Cells are shown as they are, never as markup."""
    made = Table(title=Text(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    listed = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numbers = bool(listed) and all(isinstance(row[index], int) for row in listed if row[index] is not None)
        made.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in listed:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    return made


def page_table(page: Mapping[str, Any], title: str | None = None) -> Table:
    """The entries of a top list as a table."""
    rows = ((one["rank"], one["player_id"], one["score"], one["achieved_at"]) for one in page["entries"])
    heading = title or f"{page['board']}  ·  {page['size']} players  ·  as of {page['as_of'] or 'unknown'}"
    return table(heading, ("rank", "player", "score", "achieved"), rows)


def progress_bar(unit: str) -> Progress:
    """A bar on standard error that shows how many are done; nothing where that is no terminal."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn(),
        console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True,
    )  # fmt: skip
