"""Instants as UTC epoch milliseconds, and their RFC 3339 form.

All arithmetic is in integers: `int(dt.timestamp() * 1000)` is wrong for about one instant in 170.
"""

# ruff: noqa: DTZ001, DTZ901 - a naive datetime in here is UTC, and never leaves

from __future__ import annotations

import re
from datetime import datetime, timedelta

SECOND_MS = 1_000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS

_EPOCH = datetime(1970, 1, 1)
_MS = timedelta(milliseconds=1)
_FIRST_AT = (datetime.min - _EPOCH) // _MS
_LAST_AT = (datetime.max - _EPOCH) // _MS
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)


def parse_time(text: str) -> int:
    """Epoch ms of an RFC 3339 time with an offset; what is finer than 1 ms is cut, not rounded.

    Raises ValueError, with what to write instead, for anything else: no offset, a bare date, a
    day that the calendar lacks, a leap second.
    """
    match = _RFC3339.fullmatch(text)
    if match is None or len(text) > 64:
        raise ValueError("write an RFC 3339 time with an offset, such as 2026-10-24T12:00:00.123Z")
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, offset_h, offset_min = match.groups()[6:]
    try:
        whole = datetime(year, month, day, hour, minute, second)
    except ValueError as error:
        raise ValueError(f"no such time in the calendar ({error})") from None
    offset_ms = 0
    if sign is not None:
        if int(offset_h) > 23 or int(offset_min) > 59:
            raise ValueError("an offset is at most 23:59")
        offset_ms = int(offset_h) * HOUR_MS + int(offset_min) * MINUTE_MS
        offset_ms = -offset_ms if sign == "-" else offset_ms
    millis = int((fraction or "")[:3].ljust(3, "0"))
    return _checked((whole - _EPOCH) // _MS + millis - offset_ms)


def format_time(at_ms: int) -> str:
    """RFC 3339 in UTC with milliseconds and `Z`; the inverse of parse_time for years 1 to 9999."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds") + "Z"


def format_time_or_none(at_ms: int | None) -> str | None:
    """format_time, with None for None."""
    return None if at_ms is None else format_time(at_ms)


def from_datetime(when: datetime) -> int:
    """Epoch ms of a datetime with an offset, cut to the millisecond. ValueError when it has none."""
    offset = when.utcoffset()
    if offset is None:
        raise ValueError("the time needs an offset, such as Z")
    return _checked((when.replace(tzinfo=None) - _EPOCH - offset) // _MS)


def _checked(at_ms: int) -> int:
    if not _FIRST_AT <= at_ms <= _LAST_AT:
        raise ValueError("in UTC, this time is outside of the years 1 to 9999")
    return at_ms


def utc_date(at_ms: int) -> datetime:
    """Midnight (naive, UTC) of the day that holds the instant."""
    return _EPOCH + timedelta(days=at_ms // DAY_MS)


def midnight_at(day: datetime) -> int:
    """Epoch ms of a naive UTC midnight."""
    return (day - _EPOCH) // _MS
