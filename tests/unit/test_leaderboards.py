from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.leaderboards import Board, Definition, Leaderboard, Retention, define, refused_changes
from schemas.times import format_time, parse_time
from schemas.windows import Kind

NOW = parse_time("2026-10-24T12:00:00Z")
MINUTE_MS = 60_000
DAY_MS = 86_400_000
SAFE = 2**53 - 1
FOUR_KINDS = ["all", "daily", "weekly", "monthly"]


def definition(**changes: Any) -> Definition:
    fields: dict[str, Any] = {"order": "higher", "min": 0, "max": 2_097_151, "windows": FOUR_KINDS}
    return Definition(**{name: value for name, value in (fields | changes).items() if value is not ...})


def refusal(**changes: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        definition(**changes)
    return "; ".join(f"{'.'.join(map(str, one['loc']))} {one['msg']}" for one in caught.value.errors())


def names_of(boards: Sequence[Board]) -> list[str]:
    names = [board.name.partition(":")[2] for board in boards]
    assert len(set(names)) == len(names)
    return sorted(names)


def test_what_a_definition_leaves_out_has_a_default() -> None:
    short = definition()
    assert (short.scale, short.starts_at, short.ends_at) == (0, None, None)
    assert (short.origin_at, short.end_at) == (0, parse_time("2106-02-07T06:28:16Z"))
    assert (short.peak_writes_per_s, short.shards) == (5_600, 8)
    assert (short.tie_resolution_ms_max, short.durable_days, short.retention_days) == (None, {}, {})


@pytest.mark.parametrize("name", ["order", "min", "max", "windows"])
def test_order_bounds_and_windows_have_no_default(name: str) -> None:
    assert refusal(**{name: ...}).startswith(f"{name} ")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"order": "best"}, "order"),
        ({"order": "Higher"}, "order"),
        ({"min": "0"}, "min"),
        ({"min": True}, "min"),
        ({"min": 0.0}, "min"),
        ({"max": 2**53}, "max"),
        ({"min": -(2**53)}, "min"),
        ({"min": 5, "max": 4}, "min is above max"),
        ({"min": -1, "max": SAFE}, "max - min"),
        ({"min": -SAFE, "max": SAFE}, "max - min"),
        ({"windows": []}, "windows"),
        ({"windows": "all"}, "windows"),
        ({"windows": ["yearly"]}, "windows"),
        ({"windows": ["all", "all"]}, "named once"),
        ({"windows": ("daily", "daily")}, "named once"),
        ({"windows": [["all"]]}, "windows"),
        ({"windows": [None]}, "windows"),
        ({"scale": -1}, "scale"),
        ({"scale": 16}, "scale"),
        ({"scale": 2.0}, "scale"),
        ({"scale": True}, "scale"),
        ({"peak_writes_per_s": 0}, "peak_writes_per_s"),
        ({"peak_writes_per_s": 1_000_001}, "peak_writes_per_s"),
        ({"tie_resolution_ms_max": 0}, "tie_resolution_ms_max"),
        ({"tie_resolution_ms_max": "1000"}, "tie_resolution_ms_max"),
        ({"retention_days": {"all": 3}}, "never closes"),
        ({"durable_days": {"all": 3}}, "never closes"),
        ({"retention_days": {"hourly": 3}}, "retention_days"),
        ({"retention_days": {"daily": 0}}, "retention_days"),
        ({"retention_days": {"daily": "3"}}, "retention_days"),
        ({"retention_days": {"daily": 36_501}}, "retention_days"),
        ({"windows": ["all"], "retention_days": {"daily": 3}}, "not among the windows"),
        ({"windows": ["all"], "durable_days": {"weekly": 30}}, "not among the windows"),
        ({"durable_days": {"daily": 2}}, "a rebuild would lose rows"),
        ({"durable_days": {"daily": 9}, "retention_days": {"daily": 10}}, "a rebuild would lose rows"),
        ({"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2026-01-01T00:00:00Z"}, "not after"),
        ({"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2025-01-01T00:00:00Z"}, "not after"),
        ({"ends_at": "1970-01-01T00:00:00Z"}, "not after"),
        ({"ends_at": "9999-01-01T00:00:00.001Z"}, "9998"),
        ({"starts_at": "9999-12-31T23:59:59Z"}, "ends_at"),
        ({"starts_at": "0001-01-01T00:00:00+01:00"}, "years 1 to 9999"),
        ({"ends_at": "9999-12-31T23:59:59-01:00"}, "years 1 to 9999"),
        ({"starts_at": 0}, "RFC 3339"),
        ({"starts_at": True}, "RFC 3339"),
        ({"starts_at": "2026-01-01"}, "RFC 3339"),
        ({"starts_at": "2026-01-01T00:00:00"}, "offset"),
        ({"titel": "Ranked"}, "titel"),
    ],
)
def test_a_definition_that_cannot_be_kept_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    assert reason in refusal(**changes)


def test_the_widest_bounds_are_taken_and_leave_no_time_in_a_tie() -> None:
    for low, high in ((0, SAFE), (-SAFE, 0), (-(2**52), 2**52 - 1)):
        assert Leaderboard("a", definition(min=low, max=high)).tie_resolution_ms == dict.fromkeys(FOUR_KINDS)


def test_the_resolution_that_comes_out_is_shown_for_every_kind() -> None:
    assert Leaderboard("a", definition()).tie_resolution_ms == {"all": 1000, "daily": 1, "weekly": 1, "monthly": 1}
    short = definition(ends_at="2070-01-01T00:00:00Z", starts_at="1870-01-01T00:00:00Z", max=100, windows=["all"])
    assert Leaderboard("goals", short).tie_resolution_ms == {"all": 1}


def test_a_tie_resolution_that_cannot_be_met_is_refused_with_what_would_come_out() -> None:
    definition(tie_resolution_ms_max=1000)
    assert "window 'all' has 1000 ms" in refusal(tie_resolution_ms_max=999)
    definition(tie_resolution_ms_max=1, windows=["daily", "weekly", "monthly"])
    assert "none at all" in refusal(tie_resolution_ms_max=86_400_000, max=SAFE)
    # Ends that are closer make room for finer ticks.
    definition(tie_resolution_ms_max=100, starts_at="2026-01-01T00:00:00Z", ends_at="2027-01-01T00:00:00Z")


def test_windows_stand_in_one_order_whatever_order_they_are_named_in() -> None:
    assert definition(windows=["monthly", "all", "weekly", "daily"]).windows == ("all", "daily", "weekly", "monthly")
    assert definition(windows=("weekly", "all")) == definition(windows=["all", "weekly"])


@pytest.mark.parametrize(
    ("starts", "ends"),
    [
        ("1870-01-01T00:00:00Z", "2106-02-07T06:28:16.000Z"),
        ("2006-02-07T06:28:15.999Z", "2106-02-07T06:28:16.000Z"),
        ("2006-02-07T06:28:16.001Z", "2106-02-07T06:28:16.001Z"),
        ("2020-01-01T00:00:00Z", "2120-01-01T00:00:00.000Z"),
        ("2024-02-29T10:00:00.5Z", "2124-02-29T10:00:00.500Z"),
        ("2400-02-29T00:00:00.007Z", "2500-03-01T00:00:00.007Z"),
        ("9898-12-31T23:59:59.999Z", "9998-12-31T23:59:59.999Z"),
    ],
)
def test_without_an_end_a_leaderboard_lasts_until_2106_or_for_a_hundred_years(starts: str, ends: str) -> None:
    assert format_time(definition(starts_at=starts).end_at) == ends


def test_an_end_may_lie_in_the_past_for_an_import() -> None:
    old = definition(starts_at="1900-01-01T00:00:00Z", ends_at="1950-01-01T00:00:00Z")
    Leaderboard("old", old).check_time(parse_time("1949-12-31T23:59:59.999Z"), NOW)


def test_toml_date_times_are_taken_when_they_have_an_offset() -> None:
    text = "starts_at = 2020-01-01T01:00:00+01:00\nends_at = 2026-01-01T00:00:00.123999Z"
    taken = definition(**tomllib.loads(text))
    assert taken.origin_at == parse_time("2020-01-01T00:00:00Z")
    assert taken.end_at == parse_time("2026-01-01T00:00:00.123Z")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("2020-01-01T00:00:00", "needs an offset"),
        ("2020-01-01", "RFC 3339"),
        ("12:00:00", "RFC 3339"),
        ("1577836800", "RFC 3339"),
        ("0001-01-01T00:00:00+01:00", "years 1 to 9999"),
        ("9999-12-31T23:59:59-01:00", "years 1 to 9999"),
    ],
)
def test_toml_times_without_an_offset_or_a_day_are_refused(value: str, reason: str) -> None:
    assert reason in refusal(**tomllib.loads(f"starts_at = {value}"))


@pytest.mark.parametrize(
    ("peak", "shards"), [(1, 1), (700, 1), (701, 2), (1_400, 2), (5_600, 8), (5_601, 9), (1_000_000, 1_429)]
)
def test_a_shard_takes_700_writes_a_second(peak: int, shards: int) -> None:
    assert definition(peak_writes_per_s=peak).shards == shards


def test_every_event_time_up_to_the_last_possible_one_has_its_boards_and_packs() -> None:
    long = definition(starts_at="0001-01-01T00:00:00Z", ends_at="9999-01-01T00:00:00Z", max=0)
    leaderboard = Leaderboard("long", long)
    for at_ms in (long.origin_at, long.end_at - 1):
        leaderboard.check_time(at_ms, long.end_at)
        for board in leaderboard.boards_at(at_ms):
            assert board.window.starts_at <= at_ms < board.window.ends_at
            assert board.codec.score(board.codec.pack(0, at_ms)) == 0


def test_the_window_all_packs_up_to_its_last_millisecond() -> None:
    for ends in ("2106-02-07T06:28:16Z", "1970-01-01T00:00:00.003Z", "1970-01-01T00:00:01.001Z"):
        leaderboard = Leaderboard("a", definition(windows=["all"], ends_at=ends))
        (board,) = leaderboard.boards_at(0)
        last_at = leaderboard.definition.end_at - 1
        assert board.codec.pack(0, last_at) < board.codec.pack(0, 0)
        with pytest.raises(ValueError, match="not before the leaderboard's end"):
            leaderboard.check_time(last_at + 1, NOW)


def test_an_instant_belongs_to_one_board_of_each_kind() -> None:
    boards = Leaderboard("ranked", definition()).boards_at(NOW)
    assert [board.name for board in boards] == [
        "ranked:all",
        "ranked:daily:2026-10-24",
        "ranked:weekly:2026-W43",
        "ranked:monthly:2026-10",
    ]
    assert {board.leaderboard for board in boards} == {"ranked"}


def test_boards_are_the_same_at_any_time_of_a_day_and_however_many_days_were_asked_for() -> None:
    leaderboard = Leaderboard("ranked", definition(windows=["daily"]))
    first = leaderboard.boards_at(NOW)
    assert leaderboard.boards_at(NOW + 11 * 3_600_000) == first
    for day in range(5_000):
        assert leaderboard.boards_at(day * DAY_MS)[0].window.starts_at == day * DAY_MS
    assert leaderboard.boards_at(NOW) == first
    assert leaderboard == Leaderboard("ranked", definition(windows=["daily"]))


def test_keys_go_after_the_retention_and_rows_stay_unless_told() -> None:
    leaderboard = Leaderboard("ranked", definition())
    gone = {board.window.kind: board.expires_at for board in leaderboard.boards_at(NOW)}
    assert gone == {
        "all": None,
        "daily": parse_time("2026-10-28T00:00:00Z"),
        "weekly": parse_time("2026-11-16T00:00:00Z"),
        "monthly": parse_time("2027-01-02T00:00:00Z"),
    }
    assert {board.rows_expire_at for board in leaderboard.boards_at(NOW)} == {None}


def test_rows_are_kept_for_the_durable_days_and_never_shorter_than_the_key() -> None:
    first = define("ranked", definition(retention_days={"daily": 30}, durable_days={"daily": 30}), NOW)
    later = define("ranked", definition(retention_days={"daily": 3}, durable_days={"daily": 5}), NOW, first)
    window_end = parse_time("2026-10-25T00:00:00Z")
    for leaderboard in (first, later):  # the open window keeps its 30 days in Redis, so its rows stay as long
        (board,) = (one for one in leaderboard.boards_at(NOW) if one.window.kind == "daily")
        assert (board.expires_at, board.rows_expire_at) == (window_end + 30 * DAY_MS, window_end + 30 * DAY_MS)
    (board,) = (one for one in later.boards_at(NOW + 5 * DAY_MS) if one.window.kind == "daily")
    ends_at = board.window.ends_at
    assert (board.expires_at, board.rows_expire_at) == (ends_at + 3 * DAY_MS, ends_at + 5 * DAY_MS)


def retention_of(leaderboard: Leaderboard, kind: Kind, at_ms: int) -> int:
    (board,) = (one for one in leaderboard.boards_at(at_ms) if one.window.kind == kind)
    assert board.expires_at is not None
    return (board.expires_at - board.window.ends_at) // DAY_MS


def test_a_changed_retention_counts_for_later_windows_alone() -> None:
    first = define("ranked", definition(), NOW)
    assert (first.version, retention_of(first, "daily", NOW)) == (1, 3)
    second = define("ranked", definition(retention_days={"daily": 10, "weekly": 5}), NOW, first)
    assert second.version == 2
    assert [retention_of(second, "daily", NOW + day * DAY_MS) for day in (-400, -1, 0, 1, 2)] == [3, 3, 3, 10, 10]
    assert [retention_of(second, "weekly", NOW + day * DAY_MS) for day in (-7, 0, 7)] == [21, 21, 5]
    assert [retention_of(second, "monthly", NOW + day * DAY_MS) for day in (-31, 0, 31)] == [62, 62, 62]
    third = define("ranked", definition(), NOW + 3 * DAY_MS, second)
    assert [retention_of(third, "daily", NOW + day * DAY_MS) for day in (0, 1, 3, 4)] == [3, 10, 10, 3]
    assert third.version == 3


def test_a_window_that_an_early_event_may_have_opened_keeps_its_retention() -> None:
    midnight = parse_time("2026-10-25T00:00:00Z")
    first = define("ranked", definition(), NOW)
    longer = definition(retention_days={"daily": 10})
    assert retention_of(define("ranked", longer, midnight - 10 * MINUTE_MS + 1, first), "daily", midnight) == 3
    assert retention_of(define("ranked", longer, midnight - 10 * MINUTE_MS, first), "daily", midnight) == 10


def test_the_same_retention_again_leaves_no_trace_in_the_history() -> None:
    first = define("ranked", definition(retention_days={"daily": 3}), NOW)
    again = define("ranked", definition(), NOW + DAY_MS, first)
    assert again.retentions == first.retentions
    assert again.version == 2
    assert set(first.retentions) == {"daily", "weekly", "monthly"}
    assert define("ranked", definition(windows=["all", "daily"]), NOW).retentions["daily"][0].days == 3


def test_the_boards_that_exist_are_the_next_the_current_and_those_within_retention() -> None:
    boards = Leaderboard("ranked", definition()).existing_boards(NOW)
    assert names_of(boards) == sorted(
        [
            "all",
            "daily:2026-10-25", "daily:2026-10-24", "daily:2026-10-23", "daily:2026-10-22", "daily:2026-10-21",
            "weekly:2026-W44", "weekly:2026-W43", "weekly:2026-W42", "weekly:2026-W41", "weekly:2026-W40",
            "monthly:2026-11", "monthly:2026-10", "monthly:2026-09", "monthly:2026-08",
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    "now", ["2026-10-24T12:00:00Z", "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z", "2024-02-29T00:00:00Z"]
)
@pytest.mark.parametrize("days", [1, 3, 40])
def test_a_board_exists_exactly_until_its_key_goes(now: str, days: int) -> None:
    now_at = parse_time(now)
    leaderboard = Leaderboard(
        "a",
        definition(windows=["daily"]),
        retentions={"daily": (Retention(-(2**62), days),)},
    )
    found = names_of(leaderboard.existing_boards(now_at))
    expected = [
        board.name.partition(":")[2]
        for day in range(-60, 2)
        for board in leaderboard.boards_at(now_at + day * DAY_MS)
        if board.expires_at is not None and board.expires_at > now_at
    ]
    assert found == sorted(expected)
    assert len(found) == days + 2


def test_a_shortened_retention_hides_no_board_that_was_promised_for_longer() -> None:
    first = define("a", definition(windows=["daily"], retention_days={"daily": 30}), NOW - 60 * DAY_MS)
    later = define("a", definition(windows=["daily"], retention_days={"daily": 2}), NOW - 10 * DAY_MS, first)
    # Windows that opened later are gone after 2 days, older ones still stand: a gap between them is right.
    assert names_of(later.existing_boards(NOW)) == sorted(
        [f"daily:2026-10-{day}" for day in (25, 24, 23, 22)]
        + [f"daily:2026-10-{day:02d}" for day in range(1, 15)]
        + [f"daily:2026-09-{day}" for day in range(24, 31)]
    )
    midnight = parse_time("2026-10-25T00:00:00Z")  # the key of the 22nd goes in this very millisecond
    assert "daily:2026-10-22" in names_of(later.existing_boards(midnight - 1))
    assert "daily:2026-10-22" not in names_of(later.existing_boards(midnight))


def test_a_leaderboard_for_all_time_alone_has_one_board() -> None:
    assert names_of(Leaderboard("a", definition(windows=["all"])).existing_boards(NOW)) == ["all"]


def test_every_board_that_an_acceptable_event_can_touch_exists_or_is_expired() -> None:
    leaderboard = Leaderboard("a", definition())
    for now in ("2026-12-31T23:55:00Z", "2026-10-25T23:57:00Z", "2027-01-04T00:00:00Z"):
        now_at = parse_time(now)
        existing = {board.name for board in leaderboard.existing_boards(now_at)}
        for behind_min in (-5, 0, 60, 2 * 1440, 30 * 1440, 100 * 1440):
            for board in leaderboard.boards_at(now_at - behind_min * MINUTE_MS):
                assert board.name in existing or board.is_expired(now_at)


FIXED_CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("order", {"order": "lower"}),
    ("min", {"min": 1}),
    ("max", {"max": 2_097_150}),
    ("scale", {"scale": 2}),
    ("starts_at", {"starts_at": "2020-01-01T00:00:00Z", "ends_at": "2106-02-07T06:28:16Z"}),
    ("ends_at", {"ends_at": "2107-01-01T00:00:00Z"}),
    ("windows", {"windows": ["all", "daily", "weekly"]}),
    ("peak_writes_per_s", {"peak_writes_per_s": 5_601}),
]


@pytest.mark.parametrize(("name", "changes"), FIXED_CHANGES)
def test_what_decides_packing_windows_or_places_never_changes(name: str, changes: dict[str, Any]) -> None:
    assert refused_changes(definition(), definition(**changes)) == [name]


def test_all_refused_changes_are_named_at_once() -> None:
    new = definition(order="lower", max=10, windows=["all"])
    assert refused_changes(definition(), new) == ["order", "max", "windows"]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"retention_days": {"daily": 30}},
        {"durable_days": {"daily": 400}},
        {"tie_resolution_ms_max": 1000},
        {"peak_writes_per_s": 5_000},  # still 8 shards
        {"starts_at": "1970-01-01T01:00:00+01:00"},  # said out loud what was the default
        {"ends_at": "2106-02-07T06:28:16Z"},
        {"windows": ["monthly", "weekly", "daily", "all"]},
    ],
)
def test_what_decides_nothing_of_the_kind_may_change(changes: dict[str, Any]) -> None:
    assert refused_changes(definition(), definition(**changes)) == []


def test_every_field_of_a_definition_is_known_to_be_fixed_or_free() -> None:
    free = {"tie_resolution_ms_max", "durable_days", "retention_days"}
    assert {name for name, _ in FIXED_CHANGES} | free == set(Definition.model_fields)


@pytest.mark.parametrize(("kind", "most"), [("daily", 1_000), ("weekly", 7_000), ("monthly", 31_000)])
def test_a_retention_that_keeps_more_than_a_thousand_windows_is_refused(kind: str, most: int) -> None:
    fields = {"order": "higher", "min": 0, "max": 9, "windows": [kind]}
    Definition.model_validate(fields | {"retention_days": {kind: most}})
    with pytest.raises(ValidationError, match="keeps more than 1000 windows"):
        Definition.model_validate(fields | {"retention_days": {kind: most + 1}})


def test_no_board_is_looked_for_before_the_leaderboard_s_start() -> None:
    now_at = parse_time("2026-10-24T12:00:00Z")
    definition = Definition.model_validate({
        "order": "higher", "min": 0, "max": 9, "windows": ["daily"], "starts_at": "2026-10-23T12:00:00Z",
        "retention_days": {"daily": 900},
    })  # fmt: skip
    found = names_of(define("young", definition, now_at).existing_boards(now_at))
    assert sorted(found) == [f"daily:2026-10-{day}" for day in (23, 24, 25)]
