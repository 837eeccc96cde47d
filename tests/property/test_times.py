"""RFC 3339 and back: exact, cut and not rounded, with every offset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.times import format_time, from_datetime, parse_time

FIRST_AT = -62_135_596_800_000  # 0001-01-01T00:00:00.000Z
LAST_AT = 253_402_300_799_999  # 9999-12-31T23:59:59.999Z
OFFSET_MINUTES = st.integers(-(23 * 60 + 59), 23 * 60 + 59)


@given(st.integers(FIRST_AT, LAST_AT))
def test_a_time_is_written_and_read_back(at_ms: int) -> None:
    text = format_time(at_ms)
    assert parse_time(text) == at_ms
    assert len(text) == len("2026-10-24T12:00:00.123Z")


@given(st.integers(FIRST_AT, LAST_AT), st.integers(FIRST_AT, LAST_AT))
def test_written_times_sort_as_the_instants_do(one_at: int, other_at: int) -> None:
    assert (format_time(one_at) < format_time(other_at)) == (one_at < other_at)


@given(st.datetimes(min_value=datetime(1, 1, 3), max_value=datetime(9999, 12, 29)), OFFSET_MINUTES)  # noqa: DTZ001
def test_every_offset_is_taken_off(local: datetime, offset_min: int) -> None:
    sign, rest = "-" if offset_min < 0 else "+", abs(offset_min)
    text = f"{local.isoformat(timespec='microseconds')}{sign}{rest // 60:02d}:{rest % 60:02d}"
    since = local.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC) - timedelta(minutes=offset_min)
    whole_ms = (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000
    assert parse_time(text) == whole_ms
    assert from_datetime(local.replace(tzinfo=timezone(timedelta(minutes=offset_min)))) == whole_ms


@given(st.integers(FIRST_AT // 1000, LAST_AT // 1000), st.text("0123456789", min_size=1, max_size=30))
def test_what_is_finer_than_a_millisecond_is_cut(at_s: int, digits: str) -> None:
    text = format_time(at_s * 1000).replace(".000Z", f".{digits}Z")
    assert parse_time(text) == at_s * 1000 + int(digits.ljust(30, "0")) // 10**27


@pytest.mark.parametrize("at_s", [0, -1, 1_792_843_200, -11_676_096_000])
def test_nines_without_end_stay_in_their_millisecond(at_s: int) -> None:
    text = format_time(at_s * 1000).replace(".000Z", f".{'9' * 40}Z")
    assert parse_time(text) == at_s * 1000 + 999


@given(st.text(max_size=40) | st.from_regex(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?"))
def test_any_text_is_a_time_in_the_calendar_or_a_value_error(text: str) -> None:
    try:
        at_ms = parse_time(text)
    except ValueError:
        return
    assert parse_time(format_time(at_ms)) == at_ms
