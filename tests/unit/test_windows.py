from __future__ import annotations

import pytest

from schemas.times import parse_time
from schemas.windows import Kind, Window, parse_window, window_of


@pytest.mark.parametrize(
    ("at", "weekly"),
    [
        ("2026-12-31T23:59:59.999Z", "weekly:2026-W53"),
        ("2027-01-01T00:00:00Z", "weekly:2026-W53"),
        ("2027-01-03T23:59:59.999Z", "weekly:2026-W53"),
        ("2027-01-04T00:00:00Z", "weekly:2027-W01"),
        ("2024-12-30T00:00:00Z", "weekly:2025-W01"),
        ("2021-01-03T23:59:59.999Z", "weekly:2020-W53"),
        ("1970-01-01T00:00:00Z", "weekly:1970-W01"),
        ("1969-12-28T23:59:59.999Z", "weekly:1969-W52"),
        ("9998-12-31T23:59:59.999Z", "weekly:9998-W53"),
        ("0001-01-01T00:00:00Z", "weekly:0001-W01"),
    ],
)
def test_a_week_belongs_to_the_year_of_its_thursday(at: str, weekly: str) -> None:
    assert window_of("weekly", parse_time(at)).name == weekly


def test_a_week_opens_on_monday_at_midnight_utc() -> None:
    monday = parse_time("2026-10-19T00:00:00Z")
    assert window_of("weekly", monday) == Window("weekly", "weekly:2026-W43", monday, monday + 7 * 86_400_000)
    assert window_of("weekly", monday - 1).name == "weekly:2026-W42"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("daily", "2026-02-29"), ("daily", "2026-13-01"), ("daily", "0000-01-01"), ("daily", "2026-1-1"),
        ("daily", "2026-10"), ("daily", "2026-W43"), ("daily", "2026-10-24\n"), ("daily", ""),
        ("daily", "\uff12\uff10\uff12\uff16-10-24"),
        ("daily", "9999-01-01"), ("daily", "2026-10-24T00:00:00Z"), ("daily", "20261024"), ("daily", "+026-10-24"),
        ("weekly", "2026-W54"), ("weekly", "2025-W53"), ("weekly", "2026-W00"), ("weekly", "2026-43"),
        ("weekly", "2026-w43"), ("weekly", "2026-W4"), ("weekly", "0000-W01"), ("weekly", "9999-W52"),
        ("weekly", "2026-W\u0664\u0663"),
        ("monthly", "2026-13"), ("monthly", "2026-00"), ("monthly", "2026-1"), ("monthly", "9999-12"),
        ("monthly", "0000-01"), ("all", "all"), ("all", ""),
    ],
)  # fmt: skip
def test_a_name_that_the_calendar_lacks_is_refused(kind: Kind, name: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the calendar's own words
        parse_window(kind, name)


def test_the_window_all_is_not_the_calendars() -> None:
    with pytest.raises(ValueError, match="belongs to a leaderboard"):
        window_of("all", 0)
