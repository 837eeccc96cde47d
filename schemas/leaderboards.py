"""Leaderboards: what a game defines, and everything that follows from it: windows, codecs, boards, expiry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import MAXYEAR, datetime
from functools import cached_property
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, Strict, ValidationInfo, model_validator

from schemas.ids import WINDOW_KINDS
from schemas.packing import MAX_SAFE_INTEGER, Codec, Order, choose_codec
from schemas.times import DAY_MS, MINUTE_MS, SECOND_MS, format_time, from_datetime, midnight_at, parse_time, utc_date
from schemas.windows import PERIODIC, SPAN_MS, Kind, Window, next_window, previous_window, window_of

MAIN = "main"
DEFAULT_END_AT = 2**32 * SECOND_MS
# 9999-01-01T00:00:00Z: every window of an event before it still ends in the calendar.
LATEST_END_AT = 253_370_764_800_000
DEFAULT_RETENTION_DAYS: dict[Kind, int] = {"daily": 3, "weekly": 21, "monthly": 62}
WRITES_PER_SHARD_AND_S = 700
MAX_AHEAD_MS = 5 * MINUTE_MS
# A board answers "expired" this long before its key expires, so that clocks can't make it look empty.
EXPIRY_MARGIN_MS = MINUTE_MS
_CACHED_DAYS = 4096
# Every read of a player's boards and every rebuild asks all of them.
MOST_KEPT_WINDOWS = 1_000
# The validation context of a definition as it was dumped: its times are epoch ms already.
STORED = "stored"

# What decides packing, windows or where rows are never changes once rows exist: field, attribute that compares.
_FIXED = {
    "order": "order",
    "min": "min",
    "max": "max",
    "scale": "scale",
    "starts_at": "origin_at",
    "ends_at": "end_at",
    "windows": "windows",
    "peak_writes_per_s": "shards",
}


def _time(value: Any, info: ValidationInfo) -> int:
    if info.context == STORED and type(value) is int:
        return value
    if isinstance(value, datetime):
        return from_datetime(value)
    if not isinstance(value, str):
        raise ValueError("write an RFC 3339 time with an offset")
    return parse_time(value)


def _sorted_kinds(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(kind, str) for kind in value):
        if len(set(value)) != len(value):
            raise ValueError("a window is named once")
        return tuple(sorted(value, key=lambda kind: WINDOW_KINDS.index(kind) if kind in WINDOW_KINDS else 9))
    return value


SafeInt = Annotated[int, Strict(), Field(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
Days = Annotated[int, Strict(), Field(ge=1, le=36_500)]
Time = Annotated[int, BeforeValidator(_time)]


class Definition(BaseModel):
    """What `leaderboards.toml` says of one leaderboard. Times are held as epoch ms."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    order: Order
    min: SafeInt
    max: SafeInt
    windows: Annotated[tuple[Kind, ...], BeforeValidator(_sorted_kinds), Field(min_length=1)]
    scale: Annotated[int, Strict(), Field(ge=0, le=15)] = 0
    starts_at: Time | None = None
    ends_at: Time | None = None
    tie_resolution_ms_max: Annotated[int, Strict(), Field(ge=1)] | None = None
    peak_writes_per_s: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] = 5_600
    durable_days: dict[Kind, Days] = Field(default_factory=dict)
    retention_days: dict[Kind, Days] = Field(default_factory=dict)

    @property
    def origin_at(self) -> int:
        """The first instant that an event may have."""
        return 0 if self.starts_at is None else self.starts_at

    @property
    def end_at(self) -> int:
        """The first instant that is too late for an event."""
        return _default_end_at(self.origin_at) if self.ends_at is None else self.ends_at

    @property
    def shards(self) -> int:
        """How many partition keys a board's rows are spread over."""
        return -(-self.peak_writes_per_s // WRITES_PER_SHARD_AND_S)

    def codec(self, kind: Kind, origin_at: int) -> Codec:
        """The codec of a window of this kind that starts at the origin."""
        span_ms = self.end_at - self.origin_at if kind == "all" else SPAN_MS[kind]
        return choose_codec(self.order, self.min, self.max, origin_at, span_ms)

    @model_validator(mode="after")
    def _check_consistency(self) -> Definition:
        if self.min > self.max:
            raise ValueError("min is above max")
        if self.max - self.min > MAX_SAFE_INTEGER:
            raise ValueError("max - min is more than 2^53-1: no packed value could hold it")
        if self.origin_at >= self.end_at:
            raise ValueError("ends_at is not after starts_at")
        if self.end_at > LATEST_END_AT:
            raise ValueError("the leaderboard ends after the year 9998: set an earlier ends_at")
        return self

    @model_validator(mode="after")
    def _check_days(self) -> Definition:
        for days in (self.retention_days, self.durable_days):
            for kind in days:
                if kind == "all":
                    raise ValueError("the window 'all' never closes: give it no days")
                if kind not in self.windows:
                    raise ValueError(f"days are given for {kind}, which is not among the windows")
        for kind, days_kept in self.retention_days.items():
            if days_kept * DAY_MS > MOST_KEPT_WINDOWS * SPAN_MS[kind]:
                raise ValueError(
                    f"retention_days.{kind} = {days_kept} keeps more than {MOST_KEPT_WINDOWS} windows in Redis; rows "
                    "in DynamoDB may stay longer: see durable_days"
                )
        for kind, kept in self.durable_days.items():
            if kept < self.retention_days.get(kind, DEFAULT_RETENTION_DAYS[kind]):
                raise ValueError(f"durable_days.{kind} is below its retention_days: a rebuild would lose rows")
        return self

    @model_validator(mode="after")
    def _check_ties(self) -> Definition:
        if self.tie_resolution_ms_max is not None:
            for kind in self.windows:
                came_out = self.codec(kind, 0).resolution_ms
                if came_out is None or came_out > self.tie_resolution_ms_max:
                    shown = "none at all" if came_out is None else f"{came_out} ms"
                    raise ValueError(
                        f"tie_resolution_ms_max = {self.tie_resolution_ms_max} can't be met: with these bounds the "
                        f"window {kind!r} has {shown}. Bring min and max closer, or the window's ends"
                    )
        return self


def _default_end_at(origin_at: int) -> int:
    """The later of 2106-02-07T06:28:16Z and 100 calendar years after the origin."""
    day = utc_date(origin_at)
    year = min(day.year + 100, MAXYEAR)
    try:
        later = day.replace(year=year)
    except ValueError:  # 29 February in a year that has none
        later = day.replace(year=year, month=3, day=1)
    return max(DEFAULT_END_AT, midnight_at(later) + origin_at % DAY_MS)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long windows of a kind that open at or after `since_at` stay in Redis once closed."""

    since_at: int
    days: int


@dataclass(frozen=True, slots=True)
class Board:
    """One leaderboard in one window, with all that reading and writing it needs.

    `expires_at`: when its Redis key goes; None for `all`. `rows_expire_at`: when its rows may go
    from DynamoDB; None for never. Both in epoch ms.
    """

    name: str
    leaderboard: str
    window: Window
    codec: Codec
    shards: int
    expires_at: int | None
    rows_expire_at: int | None

    def is_expired(self, now_at: int) -> bool:
        """True from a minute before its key goes."""
        return self.expires_at is not None and now_at >= self.expires_at - EXPIRY_MARGIN_MS


@dataclass(frozen=True)
class Leaderboard:
    """A definition under its name, as the scorebook holds it."""

    name: str
    definition: Definition
    version: int = 1
    retentions: dict[Kind, tuple[Retention, ...]] = field(default_factory=dict)
    _boards_of_day: dict[int, tuple[Board, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _existing_on_day: dict[int, tuple[Board, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)

    @cached_property
    def all_window(self) -> Window:
        """The window `all`: from the leaderboard's origin to its end."""
        return Window("all", "all", self.definition.origin_at, self.definition.end_at)

    @cached_property
    def tie_resolution_ms(self) -> dict[Kind, int | None]:
        """What came out of the ladder of resolutions, for each kind of window."""
        return {kind: self.definition.codec(kind, 0).resolution_ms for kind in self.definition.windows}

    def window(self, kind: Kind, at_ms: int) -> Window:
        """The window of a kind that holds the instant."""
        return self.all_window if kind == "all" else window_of(kind, at_ms)

    def board(self, window: Window) -> Board:
        """The leaderboard's board in a window."""
        expires_at = None
        rows_expire_at = None
        if window.kind != "all":
            expires_at = window.ends_at + self._retention_days(window) * DAY_MS
            if (kept := self.definition.durable_days.get(window.kind)) is not None:
                rows_expire_at = max(window.ends_at + kept * DAY_MS, expires_at)
        codec = self.definition.codec(window.kind, window.starts_at)
        name = f"{self.name}:{window.name}"
        return Board(name, self.name, window, codec, self.definition.shards, expires_at, rows_expire_at)

    def boards_at(self, at_ms: int) -> tuple[Board, ...]:
        """The boards that a result of this instant belongs to: one per kind of window. Cached by day."""
        day = at_ms // DAY_MS
        found = self._boards_of_day.get(day)
        if found is None:
            if len(self._boards_of_day) >= _CACHED_DAYS:
                self._boards_of_day.clear()
            found = tuple(self.board(self.window(kind, at_ms)) for kind in self.definition.windows)
            self._boards_of_day[day] = found
        return found

    def existing_boards(self, now_at: int) -> Sequence[Board]:
        """All boards that may hold entries now: closed ones within retention, the current and the next ones.

        Cached: windows and retentions begin and end at midnight alone.
        """
        day = now_at // DAY_MS
        found = self._existing_on_day.get(day)
        if found is None:
            found = tuple(self._find_existing_boards(now_at))
            self._existing_on_day.clear()
            self._existing_on_day[day] = found
        return found

    def _find_existing_boards(self, now_at: int) -> list[Board]:
        boards = []
        for kind in self.definition.windows:
            window = self.window(kind, now_at)
            boards.append(self.board(window))
            if kind == "all":
                continue
            boards.append(self.board(next_window(window)))
            longest = max((kept.days for kept in self._kept(kind)), default=0)
            window = previous_window(window)
            # No event is from before the leaderboard's start.
            while window.ends_at > max(now_at - longest * DAY_MS, self.definition.origin_at):
                board = self.board(window)
                if board.expires_at is not None and board.expires_at > now_at:
                    boards.append(board)
                window = previous_window(window)
        return boards

    def check_time(self, at_ms: int, now_at: int, ahead_ms: int = MAX_AHEAD_MS) -> None:
        """ValueError, with the rule, for an end time that this leaderboard can't take."""
        if at_ms < self.definition.origin_at:
            raise ValueError(f"is before the leaderboard's start, {format_time(self.definition.origin_at)}")
        if at_ms >= self.definition.end_at:
            raise ValueError(f"is not before the leaderboard's end, {format_time(self.definition.end_at)}")
        if at_ms > now_at + ahead_ms:
            raise ValueError("is more than 5 minutes ahead of the clock")

    def _kept(self, kind: Kind) -> tuple[Retention, ...]:
        return self.retentions.get(kind) or (Retention(-(2**62), DEFAULT_RETENTION_DAYS[kind]),)

    def _retention_days(self, window: Window) -> int:
        kept = self._kept(window.kind)
        return next((one.days for one in reversed(kept) if one.since_at <= window.starts_at), kept[0].days)


def define(name: str, definition: Definition, now_at: int, previous: Leaderboard | None = None) -> Leaderboard:
    """The leaderboard that a definition makes, as a successor of what was there before.

    A changed retention counts for windows that open later than every event that may already be
    there: 10 minutes from now.
    """
    if previous is None:
        first: dict[Kind, tuple[Retention, ...]] = {
            kind: (Retention(-(2**62), definition.retention_days.get(kind, DEFAULT_RETENTION_DAYS[kind])),)
            for kind in PERIODIC
            if kind in definition.windows
        }
        return Leaderboard(name, definition, 1, first)
    retentions = dict(previous.retentions)
    for kind, kept in previous.retentions.items():
        days = definition.retention_days.get(kind, DEFAULT_RETENTION_DAYS[kind])
        if days != kept[-1].days:
            retentions[kind] = (*kept, Retention(now_at + 2 * MAX_AHEAD_MS, days))
    return Leaderboard(name, definition, previous.version + 1, retentions)


def refused_changes(old: Definition, new: Definition) -> list[str]:
    """The names of fields that differ although they can't change; empty where the change is allowed."""
    return [name for name, attribute in _FIXED.items() if getattr(old, attribute) != getattr(new, attribute)]
