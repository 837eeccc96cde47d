"""Windows: stretches of UTC time, half-open, named `all`, `daily:2026-10-24`, `weekly:2026-W43`, `monthly:2026-10`."""

# ruff: noqa: DTZ001 - a naive datetime in here is UTC, and never leaves

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from schemas.times import DAY_MS, midnight_at, utc_date

Kind = Literal["all", "daily", "weekly", "monthly"]
PERIODIC: tuple[Kind, ...] = ("daily", "weekly", "monthly")

# The span that the tie resolution is chosen for; months count 31 days, so that one kind has one resolution.
SPAN_MS: dict[Kind, int] = {"daily": DAY_MS, "weekly": 7 * DAY_MS, "monthly": 31 * DAY_MS}

_DAILY = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_WEEKLY = re.compile(r"(\d{4})-W(\d\d)", re.ASCII)
_MONTHLY = re.compile(r"(\d{4})-(\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Window:
    """One stretch of time: `starts_at` is in it, `ends_at` is not. Both in UTC epoch ms."""

    kind: Kind
    name: str
    starts_at: int
    ends_at: int


def window_of(kind: Kind, at_ms: int) -> Window:
    """The daily, weekly or monthly window that holds the instant. Weeks are ISO weeks (Monday first)."""
    return _window_from(kind, utc_date(at_ms))


def next_window(window: Window) -> Window:
    """The window of the same kind that opens when this one ends."""
    return window_of(window.kind, window.ends_at)


def previous_window(window: Window) -> Window:
    """The window of the same kind that ended when this one opened."""
    return window_of(window.kind, window.starts_at - 1)


def parse_window(kind: Kind, name: str) -> Window:
    """The window of a periodic kind by the name behind the colon; ValueError if the calendar lacks it."""
    if kind == "daily" and (match := _DAILY.fullmatch(name)):
        day = datetime(int(match[1]), int(match[2]), int(match[3]))
    elif kind == "weekly" and (match := _WEEKLY.fullmatch(name)):
        day = datetime.fromisocalendar(int(match[1]), int(match[2]), 1)
    elif kind == "monthly" and (match := _MONTHLY.fullmatch(name)):
        day = datetime(int(match[1]), int(match[2]), 1)
    else:
        raise ValueError(f"{kind}:{name} is not the name of a window")
    if day.year >= 9999:
        raise ValueError("windows end before the year 9999")
    return _window_from(kind, day)


def _window_from(kind: Kind, day: datetime) -> Window:
    if kind == "daily":
        first, end = day, day + timedelta(days=1)
        name = f"daily:{first.date().isoformat()}"
    elif kind == "weekly":
        first = day - timedelta(days=day.weekday())
        end = first + timedelta(days=7)
        iso = first.isocalendar()
        name = f"weekly:{iso.year:04d}-W{iso.week:02d}"
    elif kind == "monthly":
        first = day.replace(day=1)
        end = (first + timedelta(days=31)).replace(day=1)
        name = f"monthly:{first.year:04d}-{first.month:02d}"
    else:
        raise ValueError("the window 'all' belongs to a leaderboard: ask it")
    return Window(kind, name, midnight_at(first), midnight_at(end))
