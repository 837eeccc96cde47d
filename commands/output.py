"""What commands print: tables for people, JSON for programs, one line on stderr for errors."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:  # what they import would slow down every command
    from rebuild.audit import Audited
    from rebuild.rows import Filling
    from schemas.replies import ReplyBody, TopPage

_LINE_EVERY_S = 2.0
_NO_WIDTH = 100_000  # wider than any row: nothing is folded


def console() -> Console:
    """Standard output; colour and width only where it is a terminal."""
    return Console(width=None if sys.stdout.isatty() else _NO_WIDTH, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def print_reply(reply: ReplyBody) -> None:
    """A reply of the service as the JSON that it was."""
    print_json(reply.model_dump(mode="json", exclude_unset=True))


def fail(message: str) -> None:
    """One line on standard error that says what to do."""
    line = " ".join(message.split())
    sys.stderr.write(f"standings: {line}\n")


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> Group:
    """A table under its title; numbers to the right. Cells are shown as they are, never as markup."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    listed = [list(row) for row in rows]
    for index, column in enumerate(columns):
        numbers = bool(listed) and all(isinstance(row[index], int) for row in listed if row[index] is not None)
        made.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in listed:
        made.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    # rich would fold a title of its own to the width of the columns
    return Group(*([Text(title, style="italic")] if title else []), made)


def page_table(page: TopPage, title: str | None = None) -> Group:
    """The entries of a top list as a table."""
    rows = ((one.rank, one.player_id, one.score, one.achieved_at) for one in page.entries)
    heading = title or f"{page.board}  ·  {page.size} players  ·  as of {page.as_of or 'unknown'}"
    return table(heading, ("rank", "player", "score", "achieved"), rows)


def _shows_bars() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


def progress_bar(unit: str) -> Progress:
    """A bar on standard error that shows how many are done; nothing where that is no terminal, or with NO_COLOR."""
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeElapsedColumn(),
        console=Console(stderr=True), disable=not _shows_bars(), transient=True,
    )  # fmt: skip


@contextmanager
def filling_bar() -> Iterator[Callable[[Filling], None]]:
    """Shows rows, rate and time left of each lane: as a bar, or where bars are off as a line now and then."""
    bar = Progress(
        TextColumn("lane {task.fields[lane]}"), BarColumn(), TextColumn("{task.fields[rows]} rows"),
        TextColumn("{task.fields[rate]} rows/s"), TimeRemainingColumn(),
        console=Console(stderr=True), disable=not _shows_bars(), transient=True,
    )  # fmt: skip
    tasks: dict[int, tuple[Any, float]] = {}
    said_s = time.monotonic()

    def show(filling: Filling) -> None:
        nonlocal said_s
        now_s = time.monotonic()
        if filling.lane not in tasks:
            tasks[filling.lane] = (bar.add_task("", total=filling.shards, lane=filling.lane, rows=0, rate=0), now_s)
        task, began_s = tasks[filling.lane]
        rate = int(filling.rows / max(now_s - began_s, 0.001))
        bar.update(task, completed=filling.shards_done, rows=filling.rows, rate=rate)
        if not _shows_bars() and now_s - said_s > _LINE_EVERY_S:
            said_s = now_s
            left_s = (now_s - began_s) * (filling.shards - filling.shards_done) / max(filling.shards_done, 1)
            sys.stderr.write(f"lane {filling.lane}: {filling.rows} rows, {rate} rows/s, about {left_s:.0f} s left\n")

    with bar:
        yield show


def print_done(done: Sequence[Mapping[str, Any]], *, as_json: bool) -> None:
    """What a rebuild did."""
    if as_json:
        print_json(done)
        return
    rows = ((one.get("board") or "(whole)", one.get("lane"), one["rows"], one.get("expelled", 0)) for one in done)
    console().print(table("rebuilt from the scorebook", ("board", "lane", "rows", "expelled"), rows))


def print_audits(found: Sequence[Audited], *, as_json: bool) -> None:
    """What an audit found: every board, and the entries that differ."""
    if as_json:
        print_json([asdict(one) for one in found])
        return
    rows = ((one.board, one.rows, one.entries, one.differing) for one in found)
    console().print(table("audit", ("board", "rows", "entries", "differing"), rows))
    differing = [(d.board, d.player_id, str(d.kind), d.truth, d.view) for one in found for d in one.differences]
    if differing:
        console().print(table("differences", ("board", "player", "the view is", "scorebook", "view"), differing))
    wrong = sum(one.differing for one in found)
    rows_read, entries_read = sum(one.rows for one in found), sum(one.entries for one in found)
    console().print(f"{rows_read} rows, {entries_read} entries of {len(found)} boards: {wrong} differ", soft_wrap=True)
