"""What boards must hold, computed anew from what was accepted: plain Python that shares no code with the service."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

_DAY_MS = 86_400_000
_LADDER_MS = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, _DAY_MS)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Rules:
    """A leaderboard with the windows all, daily and weekly."""

    leaderboard: str
    order: str
    least: int
    most: int


class Line(NamedTuple):
    """A row: greater packed is ahead; then the earlier time, then the smaller match."""

    packed: int
    ended_at: int
    match_id: str
    score: int
    shown_at: int

    @property
    def merit(self) -> tuple[int, int, tuple[int, ...]]:
        """Orders rows of one player: the greatest stays."""
        return self.packed, -self.ended_at, (*(-byte for byte in self.match_id.encode()), 1)


@dataclass(frozen=True)
class Result:
    """One player's result of an event that counts, with when its acknowledgement was seen (epoch ms)."""

    player_id: str
    score: int
    ended_at: int
    match_id: str
    acknowledged_at: int


@dataclass
class History:
    """What a player reached on a board: acknowledgements in order, and the best packed value up to each."""

    times: list[int] = field(default_factory=list)
    best: list[int] = field(default_factory=list)

    def best_before(self, at_ms: int) -> int | None:
        """The packed value that everything acknowledged before this time amounts to."""
        index = bisect_left(self.times, at_ms)
        return self.best[index - 1] if index else None


class Reference:
    """The boards of one leaderboard after these results.

    `rows`: what is left in the end. `histories`: by board and player. `possible`: every (score, time) that a board and
    player may ever have shown. `lines`: the packed value of each result, by board, player and match.
    """

    def __init__(self, rules: Rules, results: Iterable[Result]) -> None:
        self.rules = rules
        self.rows: dict[str, dict[str, Line]] = {}
        self.histories: dict[str, dict[str, History]] = {}
        self.possible: dict[tuple[str, str], set[tuple[int, int]]] = {}
        self.lines: dict[tuple[str, str, str], int] = {}
        for one in sorted(results, key=lambda one: one.acknowledged_at):
            for board, origin_at, span_ms in windows_of(rules.leaderboard, one.ended_at):
                self._add(board, one, line_of(rules, one, origin_at, span_ms))

    def _add(self, board: str, result: Result, line: Line) -> None:
        rows = self.rows.setdefault(board, {})
        known = rows.get(result.player_id)
        if known is None or line.merit > known.merit:
            rows[result.player_id] = line
        history = self.histories.setdefault(board, {}).setdefault(result.player_id, History())
        history.times.append(result.acknowledged_at)
        history.best.append(rows[result.player_id].packed)
        self.lines[board, result.player_id, result.match_id] = line.packed
        self.possible.setdefault((board, result.player_id), set()).add((line.score, line.shown_at))

    def pack_shown(self, board: str, score: int, shown_at: int) -> int:
        """The packed value behind a shown score and time."""
        _, origin_at, span_ms = next(one for one in windows_of(self.rules.leaderboard, shown_at) if one[0] == board)
        result = Result("", score, shown_at, "", 0)
        return line_of(self.rules, result, origin_at, span_ms).packed


def windows_of(leaderboard: str, at_ms: int) -> list[tuple[str, int, int]]:
    """The boards that an instant belongs to: name, origin (epoch ms) and the span of its kind in ms."""
    day = date(1970, 1, 1) + timedelta(days=at_ms // _DAY_MS)
    year, week, weekday = day.isocalendar()
    day_at = at_ms // _DAY_MS * _DAY_MS
    monday_at = day_at - (weekday - 1) * _DAY_MS
    return [
        (f"{leaderboard}:all", 0, 2**32 * 1_000),
        (f"{leaderboard}:daily:{day.isoformat()}", day_at, _DAY_MS),
        (f"{leaderboard}:weekly:{year:04d}-W{week:02d}", monday_at, 7 * _DAY_MS),
    ]


def line_of(rules: Rules, result: Result, origin_at: int, span_ms: int) -> Line:
    """Score in the high bits, how early in the low ones; the finest resolution that fits 53 bits."""
    room = 53 - (rules.most - rules.least).bit_length()
    step_ms = next(ms for ms in _LADDER_MS if (-(-span_ms // ms) - 1).bit_length() <= room)
    ticks = 2 ** (-(-span_ms // step_ms) - 1).bit_length()
    tick = (result.ended_at - origin_at) // step_ms
    merit = result.score - rules.least if rules.order == "higher" else rules.most - result.score
    packed = merit * ticks + ticks - 1 - tick
    return Line(packed, result.ended_at, result.match_id, result.score, origin_at + tick * step_ms)


def read_time(text: str) -> int:
    """Epoch ms of a time as replies show it."""
    return (datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z") - _EPOCH) // timedelta(milliseconds=1)


def show_time(at_ms: int) -> str:
    """The time as replies show it."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1_000:03d}Z"
