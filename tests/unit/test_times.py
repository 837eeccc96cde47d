from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from schemas.times import format_time, format_time_or_none, from_datetime, parse_time


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01t00:00:00z", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-10-24T12:00:00.123Z", 1_792_843_200_123),
        ("2026-10-24T12:00:00.1Z", 1_792_843_200_100),
        ("2026-10-24T12:00:00.123999999Z", 1_792_843_200_123),
        ("2026-10-24T14:00:00.123+02:00", 1_792_843_200_123),
        ("2026-10-24T12:00:00.123-00:00", 1_792_843_200_123),
        ("2026-10-25T11:59:00.123+23:59", 1_792_843_200_123),
        ("2026-10-23T12:01:00.123-23:59", 1_792_843_200_123),
        ("2106-02-07T06:28:16Z", 2**32 * 1000),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000),
        ("0001-01-01T00:00:00Z", -62_135_596_800_000),
        ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        # Instants of which a float's timestamp() loses the millisecond.
        ("2026-01-01T00:00:00.001Z", 1_767_225_600_001),
        ("2038-01-19T03:14:07.999Z", 2_147_483_647_999),
    ],
)
def test_a_time_is_read_exactly(text: str, at_ms: int) -> None:
    assert parse_time(text) == at_ms


@pytest.mark.parametrize(
    "text",
    [
        "", "2026-10-24", "2026-10-24T12:00:00", "2026-10-24T12:00Z", "2026-10-24 12:00:00Z", "20261024T120000Z",
        "2026-10-24T12:00:00,5Z", "2026-10-24T12:00:00.Z", "2026-10-24T12:00:00+0200", "2026-10-24T12:00:00+02",
        "2026-10-24T12:00:00Z ", " 2026-10-24T12:00:00Z", "2026-10-24T12:00:00Z\n", "26-10-24T12:00:00Z",
        "+2026-10-24T12:00:00Z", "-2026-10-24T12:00:00Z", "12026-10-24T12:00:00Z", "2026-W43-6T12:00:00Z",
        "2026-297T12:00:00Z", "1792843200123", "now", "\uff12\uff10\uff12\uff16-10-24T12:00:00Z",
        "2026-10-24T12:00:0\u0660Z",
        "2026-10-24T12:00:00\u221202:00", "2026-10-24T12:00:00.1_0Z", "2026-10-24T12:00:00." + "0" * 60 + "Z",
        "\ud800",
    ],
)  # fmt: skip
def test_what_is_no_rfc_3339_time_with_an_offset_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339 time with an offset, such as 2026-10-24T12:00:00\.123Z"):
        parse_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z", "2026-10-24T24:00:00Z", "2026-10-24T12:60:00Z",
        "2016-12-31T23:59:60Z", "0000-01-01T00:00:00Z",
    ],
)  # fmt: skip
def test_a_time_that_the_calendar_lacks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="calendar"):
        parse_time(text)


@pytest.mark.parametrize("offset", ["+24:00", "-24:00", "+12:60", "+99:99"])
def test_an_offset_of_a_day_and_more_is_refused(offset: str) -> None:
    with pytest.raises(ValueError, match="at most 23:59"):
        parse_time(f"2026-10-24T12:00:00{offset}")


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59.999-00:01"])
def test_an_offset_that_leads_out_of_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="years 1 to 9999"):
        parse_time(text)
    with pytest.raises(ValueError, match="years 1 to 9999"):
        from_datetime(datetime.fromisoformat(text))


def test_a_datetime_is_taken_exactly_and_cut() -> None:
    assert from_datetime(datetime(2026, 10, 24, 12, 0, 0, 123_999, UTC)) == 1_792_843_200_123
    assert from_datetime(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)) == -1
    far = timezone(timedelta(hours=5, minutes=30))
    assert from_datetime(datetime(1970, 1, 1, 5, 30, tzinfo=far)) == 0


def test_a_naive_datetime_is_refused() -> None:
    with pytest.raises(ValueError, match="offset"):
        from_datetime(datetime(2026, 10, 24))  # noqa: DTZ001 - that is the point


def test_a_time_is_written_with_milliseconds_and_z() -> None:
    assert format_time(0) == "1970-01-01T00:00:00.000Z"
    assert format_time(-1) == "1969-12-31T23:59:59.999Z"
    assert format_time(-62_135_596_800_000) == "0001-01-01T00:00:00.000Z"
    assert format_time_or_none(None) is None
    assert format_time_or_none(1_792_843_200_123) == "2026-10-24T12:00:00.123Z"
