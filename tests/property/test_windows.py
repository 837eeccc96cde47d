"""The window of an instant: right for every day, told by the calendar of the standard library, under any host zone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.times import format_time, from_datetime, parse_time
from schemas.windows import PERIODIC, Kind, Window, next_window, parse_window, previous_window, window_of

DAY_MS = 86_400_000
EPOCH_DAY = date(1970, 1, 1).toordinal()
FIRST_DAY, LAST_DAY = date(1970, 1, 1).toordinal(), date(2100, 12, 31).toordinal()
EARLIEST_AT = parse_time("0001-01-08T00:00:00Z")
LATEST_AT = parse_time("9998-12-31T23:59:59.999Z")
# Written as POSIX rules, so that no zone database is needed: UTC+14, UTC-12, New York, Kolkata, Lord Howe.
ZONES = ("UTC0", "AAA-14", "BBB+12", "EST5EDT,M3.2.0,M11.1.0", "IST-5:30", "LHS-10:30LHD-11,M10.1.0,M4.1.0")


@pytest.fixture(params=ZONES)
def host_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield str(request.param)
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def midnight_of(ordinal: int) -> int:
    return (ordinal - EPOCH_DAY) * DAY_MS


def expected_windows(ordinal: int) -> tuple[Window, Window, Window]:
    """By `date` alone: neither datetime nor the arithmetic under test."""
    day = date.fromordinal(ordinal)
    iso_year, iso_week, iso_weekday = day.isocalendar()
    monday = ordinal - iso_weekday + 1
    first = day.replace(day=1).toordinal()
    next_first = date(day.year + day.month // 12, day.month % 12 + 1, 1).toordinal()
    return (
        Window("daily", f"daily:{day.isoformat()}", midnight_of(ordinal), midnight_of(ordinal + 1)),
        Window("weekly", f"weekly:{iso_year}-W{iso_week:02d}", midnight_of(monday), midnight_of(monday + 7)),
        Window("monthly", f"monthly:{day.year}-{day.month:02d}", midnight_of(first), midnight_of(next_first)),
    )


def assert_right(ordinal: int) -> None:
    midnight = midnight_of(ordinal)
    expected = expected_windows(ordinal)
    for at_ms in (midnight, midnight + DAY_MS - 1):
        found = tuple(window_of(kind, at_ms) for kind in PERIODIC)
        assert found == expected, f"at {at_ms}"


def test_the_window_is_right_in_the_first_and_the_last_millisecond_of_every_day_from_1970_to_2100() -> None:
    for ordinal in range(FIRST_DAY, LAST_DAY + 1):
        assert_right(ordinal)


def test_the_zone_of_the_host_changes_no_window(host_zone: str) -> None:
    assert (time.localtime(0).tm_gmtoff == 0) == (host_zone == "UTC0")
    for ordinal in range(FIRST_DAY, LAST_DAY + 1, 17):  # prime to 7: every weekday, every part of the year
        assert_right(ordinal)
    assert_right(LAST_DAY)


def test_the_zone_of_the_host_changes_no_time(host_zone: str) -> None:
    # The hours that the summer times above skip and repeat, in the zone of the host.
    for text, at_ms in (
        ("2026-03-08T02:30:00.000Z", 1_772_937_000_000),
        ("2026-11-01T01:30:00.000Z", 1_793_496_600_000),
        ("2026-10-04T02:15:00.000Z", 1_791_080_100_000),
        ("1969-12-31T23:59:59.999Z", -1),
    ):
        assert parse_time(text) == at_ms, host_zone
        assert format_time(at_ms) == text
        assert from_datetime(datetime.fromisoformat(text)) == at_ms
        assert from_datetime(datetime.fromisoformat(text).astimezone()) == at_ms
        assert from_datetime(datetime.fromisoformat(text).astimezone(timezone(timedelta(hours=-7)))) == at_ms


@given(st.sampled_from(PERIODIC), st.integers(EARLIEST_AT, LATEST_AT))
def test_a_window_holds_its_instant_and_its_name_leads_back_to_it(kind: Kind, at_ms: int) -> None:
    window = window_of(kind, at_ms)
    assert window.kind == kind
    assert window.starts_at <= at_ms < window.ends_at
    named, _, name = window.name.partition(":")
    assert named == kind
    assert parse_window(kind, name) == window


@given(st.sampled_from(PERIODIC), st.integers(EARLIEST_AT, LATEST_AT))
def test_windows_of_a_kind_meet_without_gap_or_overlap(kind: Kind, at_ms: int) -> None:
    window = window_of(kind, at_ms)
    assert window_of(kind, window.starts_at) == window == window_of(kind, window.ends_at - 1)
    assert next_window(window).starts_at == window.ends_at
    assert previous_window(next_window(window)) == window


def test_every_name_between_1970_and_2100_leads_to_its_window() -> None:
    for ordinal in range(FIRST_DAY, LAST_DAY + 1, 5):
        for window in expected_windows(ordinal):
            assert parse_window(window.kind, window.name.partition(":")[2]) == window


def test_the_years_with_53_weeks_are_those_of_the_calendar() -> None:
    for year in range(1970, 2101):
        weeks = date(year, 12, 28).isocalendar().week
        if weeks == 53:
            assert parse_window("weekly", f"{year}-W53").name == f"weekly:{year}-W53"
        else:
            with pytest.raises(ValueError, match="week"):
                parse_window("weekly", f"{year}-W53")
