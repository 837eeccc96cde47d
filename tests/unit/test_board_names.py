from __future__ import annotations

from typing import Any

import pytest

from schemas.boards import resolve_board
from schemas.errors import BoardExpired, UnknownBoard, UnknownLeaderboard
from schemas.leaderboards import Definition, Leaderboard
from schemas.times import parse_time

NOW = parse_time("2026-10-24T12:00:00Z")
DAY_MS = 86_400_000


def leaderboard(name: str, *windows: str, **changes: Any) -> Leaderboard:
    fields: dict[str, Any] = {"order": "higher", "min": 0, "max": 100, "windows": list(windows)}
    return Leaderboard(name, Definition(**(fields | changes)))


BOARDS = {
    one.name: one
    for one in (
        leaderboard("main", "all", "daily", "weekly", "monthly"),
        leaderboard("ranked", "all", "weekly"),
        leaderboard("future", "all", "daily", starts_at="2030-01-01T00:00:00Z"),
    )
}


def name_of(text: str, now: str = "2026-10-24T12:00:00Z") -> str:
    return resolve_board(text, BOARDS, parse_time(now)).name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("main:all", "main:all"),
        ("all", "main:all"),
        ("daily", "main:daily:2026-10-24"),
        ("weekly", "main:weekly:2026-W43"),
        ("monthly", "main:monthly:2026-10"),
        ("main:weekly", "main:weekly:2026-W43"),
        ("ranked:weekly", "ranked:weekly:2026-W43"),
        ("weekly:2026-W43", "main:weekly:2026-W43"),
        ("monthly:2026-09", "main:monthly:2026-09"),
        ("ranked:weekly:2026-W42", "ranked:weekly:2026-W42"),
        ("main:daily:2026-10-23", "main:daily:2026-10-23"),
    ],
)
def test_names_and_aliases_lead_to_their_board(text: str, name: str) -> None:
    assert name_of(text) == name


@pytest.mark.parametrize(
    ("now", "daily", "weekly", "monthly"),
    [
        ("2026-10-24T23:59:59.999Z", "2026-10-24", "2026-W43", "2026-10"),
        ("2026-10-25T00:00:00Z", "2026-10-25", "2026-W43", "2026-10"),
        ("2026-10-26T00:00:00Z", "2026-10-26", "2026-W44", "2026-10"),
        ("2027-01-01T00:00:00Z", "2027-01-01", "2026-W53", "2027-01"),
        ("2027-01-04T00:00:00Z", "2027-01-04", "2027-W01", "2027-01"),
    ],
)
def test_an_alias_follows_the_clock(now: str, daily: str, weekly: str, monthly: str) -> None:
    assert name_of("daily", now) == f"main:daily:{daily}"
    assert name_of("ranked:weekly", now) == f"ranked:weekly:{weekly}"
    assert name_of("monthly", now) == f"main:monthly:{monthly}"
    assert name_of(f"weekly:{weekly}", now) == f"main:weekly:{weekly}"


@pytest.mark.parametrize(
    "text",
    [
        "main", "main:", "main::", "main:all:", "main:all:all", "all:all", "all:", "main:yearly", "main:yearly:2026",
        "main:weekly:", "main:weekly:2026-W43:", "weekly:2026-W43:x", "main:weekly:2026-W54", "main:weekly:2026-43",
        "main:weekly:2026-w43", "main:weekly:2026-W43 ", "main:weekly: 2026-W43", "main:daily:2026-02-29",
        "main:daily:2026-W43", "main:daily:0000-01-01", "main:daily:9999-12-31", "main:monthly:2026-13", "main:Weekly",
        "main:weekly:9999-W52", "main:daily:current", "main:weekly:weekly", "ranked:daily", "ranked:daily:2026-10-24",
        "ranked:monthly:2026-10", "main:daily:\uff12\uff10\uff12\uff16-10-24", "main:daily:2026-10-24\n",
        "main:main:all",
    ],
)  # fmt: skip
def test_what_names_no_board_of_a_known_leaderboard_is_an_unknown_board(text: str) -> None:
    with pytest.raises(UnknownBoard):
        name_of(text)


@pytest.mark.parametrize(
    "text", ["nobody:all", "nobody", "", ":all", "Main:all", "MAIN:weekly", "yearly:2026", " main:all"]
)
def test_an_unknown_leaderboard_is_told_as_such(text: str) -> None:
    with pytest.raises(UnknownLeaderboard):
        name_of(text)


def test_without_main_a_bare_window_is_of_an_unknown_leaderboard() -> None:
    with pytest.raises(UnknownLeaderboard, match="main"):
        resolve_board("weekly", {"ranked": BOARDS["ranked"]}, NOW)


def test_week_53_exists_in_the_years_that_have_one() -> None:
    assert name_of("weekly:2026-W53", "2027-01-01T00:00:00Z") == "main:weekly:2026-W53"
    for text in ("weekly:2025-W53", "weekly:2027-W53", "weekly:2026-W00"):
        with pytest.raises(UnknownBoard, match="calendar"):
            name_of(text, "2028-01-01T00:00:00Z")


def test_a_window_opens_in_its_first_millisecond() -> None:
    for text, opens in (
        ("weekly:2026-W44", "2026-10-26"),
        ("daily:2026-10-25", "2026-10-25"),
        ("monthly:2026-11", "2026-11-01"),
    ):
        opens_at = parse_time(f"{opens}T00:00:00Z")
        assert resolve_board(text, BOARDS, opens_at).name == f"main:{text}"
        with pytest.raises(UnknownBoard, match="not opened yet"):
            resolve_board(text, BOARDS, opens_at - 1)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("daily:2026-10-24", "2026-10-28T00:00:00Z"),
        ("weekly:2026-W43", "2026-11-16T00:00:00Z"),
        ("monthly:2026-10", "2027-01-02T00:00:00Z"),
    ],
)
def test_a_board_is_expired_from_a_minute_before_its_key_goes(text: str, gone: str) -> None:
    gone_at = parse_time(gone)
    board = resolve_board(text, BOARDS, gone_at - 60_001)
    assert board.expires_at == gone_at
    for now_at in (gone_at - 60_000, gone_at - 1, gone_at, gone_at + 1000 * DAY_MS):
        with pytest.raises(BoardExpired, match=text):
            resolve_board(text, BOARDS, now_at)


@pytest.mark.parametrize("text", ["daily:0001-01-01", "weekly:0001-W01", "monthly:0001-01", "daily:1969-12-31"])
def test_the_oldest_windows_of_the_calendar_are_expired(text: str) -> None:
    with pytest.raises(BoardExpired):
        name_of(text)


@pytest.mark.parametrize("text", ["daily:9998-12-31", "weekly:9998-W53", "monthly:9998-12"])
def test_the_last_windows_of_the_calendar_have_not_opened(text: str) -> None:
    with pytest.raises(UnknownBoard, match="not opened yet"):
        name_of(text)


def test_the_board_all_is_there_before_the_leaderboard_starts() -> None:
    board = resolve_board("future:all", BOARDS, NOW)
    assert (board.name, board.expires_at) == ("future:all", None)
    assert resolve_board("future:daily", BOARDS, NOW).name == "future:daily:2026-10-24"


def test_what_was_wrong_is_told_without_control_characters() -> None:
    for text in ("main:daily:\x1b[31m", "main:daily:\ud800", "\x1b:all", "main:\x1b", "main:a:b:\x1b"):
        with pytest.raises((UnknownBoard, UnknownLeaderboard)) as caught:
            name_of(text)
        assert str(caught.value).isprintable()
