from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.errors import Fault, InvalidEvent, UnknownLeaderboard
from schemas.events import MAX_RESULTS, MatchBody, MatchEvent, ScoreBody, body_of, parse_event
from schemas.leaderboards import Definition, Leaderboard
from schemas.times import format_time, parse_time
from schemas.wire import decode_json, encode_json

NOW = parse_time("2026-10-24T12:00:00Z")
MINUTE_MS = 60_000
SAFE = 2**53 - 1


def leaderboard(name: str = "main", **changes: Any) -> Leaderboard:
    fields: dict[str, Any] = {"order": "higher", "min": 0, "max": 100, "windows": ["all", "daily"]}
    return Leaderboard(name, Definition(**(fields | changes)))


MAIN = leaderboard()
WIDE = leaderboard("wide", min=-SAFE, max=0)
WIDER = leaderboard("wider", min=0, max=SAFE)
SHORT = leaderboard("short", starts_at="2026-01-01T00:00:00Z", ends_at="2026-10-24T12:01:00Z")
BOARDS = {one.name: one for one in (MAIN, WIDE, WIDER, SHORT)}


def match(**changes: Any) -> dict[str, Any]:
    """A sound match; a field that is set to ... is left out."""
    body = {"match_id": "m-1", "results": [{"player_id": "zed", "score": 10}]} | changes
    return {name: value for name, value in body.items() if value is not ...}


def score(**changes: Any) -> dict[str, Any]:
    body = {"match_id": "m-1", "player_id": "zed", "score": 10} | changes
    return {name: value for name, value in body.items() if value is not ...}


def parse(value: Any, body: type[MatchBody | ScoreBody] = MatchBody) -> MatchEvent:
    return parse_event(value, body, BOARDS, NOW)


def faults_in(value: Any, body: type[MatchBody | ScoreBody] = MatchBody) -> list[Fault]:
    with pytest.raises(InvalidEvent) as caught:
        parse(value, body)
    encode_json([[fault.place, fault.detail] for fault in caught.value.faults])  # they must fit into a reply
    return caught.value.faults


def places_in(value: Any, body: type[MatchBody | ScoreBody] = MatchBody) -> list[str]:
    return [fault.place for fault in faults_in(value, body)]


def test_a_match_reported_whole_becomes_an_event() -> None:
    results = [{"player_id": "zed", "score": 10}, {"player_id": "amy", "score": 7}]
    event = parse(match(leaderboard="main", ended_at="2026-10-24T14:00:00.1239+02:00", results=results))
    assert event == MatchEvent("m-1", MAIN, NOW + 123, time_given=True, whole=True, results=(("zed", 10), ("amy", 7)))


def test_one_players_result_becomes_an_event() -> None:
    event = parse(score(leaderboard="wide", score=-SAFE, ended_at="2026-10-24T12:00:00Z"), ScoreBody)
    assert event == MatchEvent("m-1", WIDE, NOW, time_given=True, whole=False, results=(("zed", -SAFE),))


def test_the_leaderboard_defaults_to_main_and_the_time_to_that_of_receipt() -> None:
    for event in (parse(match()), parse(score(), ScoreBody)):
        assert event.leaderboard is MAIN
        assert (event.ended_at, event.time_given) == (NOW, False)


def test_the_body_of_a_record_is_told_by_its_fields() -> None:
    assert body_of(score()) is ScoreBody
    assert body_of({"score": 1}) is ScoreBody
    assert body_of(match()) is MatchBody
    assert body_of(match(player_id="zed")) is MatchBody
    others: list[Any] = [{}, [], None, 5, "player_id", ["score"]]
    for other in others:
        assert body_of(other) is MatchBody


@pytest.mark.parametrize("value", [None, [], "x", 5, True, [match()]])
@pytest.mark.parametrize("body", [MatchBody, ScoreBody])
def test_a_body_that_is_no_object_is_refused_as_a_whole(value: Any, body: type[MatchBody | ScoreBody]) -> None:
    assert faults_in(value, body) == [Fault("", "must be a JSON object")]


def test_every_missing_field_is_listed() -> None:
    assert faults_in({}) == [Fault("/match_id", "is required"), Fault("/results", "is required")]
    assert places_in({}, ScoreBody) == ["/match_id", "/player_id", "/score"]
    assert places_in(match(results=[{}, {"score": 1}])) == [
        "/results/0/player_id",
        "/results/0/score",
        "/results/1/player_id",
    ]


def test_every_fault_of_a_body_is_listed_with_its_pointer() -> None:
    results = [
        {"player_id": "", "score": 10},
        {"player_id": "zed", "score": "10"},
        {"player_id": "zed", "score": 101},
        "amy",
        {"player_id": "zed", "score": 1, "rank": 1},
    ]
    body = match(match_id="a\nb", ended_at="yesterday", leaderbord="main", results=results)
    assert sorted(places_in(body)) == [
        "/ended_at",
        "/leaderbord",
        "/match_id",
        "/results/0/player_id",
        "/results/1/score",
        "/results/2/player_id",
        "/results/2/score",
        "/results/3",
        "/results/4/player_id",
        "/results/4/rank",
    ]


@pytest.mark.parametrize("body", [MatchBody, ScoreBody])
def test_an_unknown_field_is_refused_and_its_pointer_escaped(body: type[MatchBody | ScoreBody]) -> None:
    value = (match if body is MatchBody else score)(**{"a~b/c": 1, "Match_id": "m", "": 1})
    assert sorted(places_in(value, body)) == ["/", "/Match_id", "/a~0b~1c"]


def test_the_field_names_of_one_body_are_unknown_to_the_other() -> None:
    assert places_in(match(player_id="zed", score=1)) == ["/player_id", "/score"]
    assert places_in(score(results=[]), ScoreBody) == ["/results"]


@pytest.mark.parametrize(
    "text",
    [
        "true", "false", '"10"', "10.0", "1e1", "1E1", "1e3", "1e400", "-1e400", "-0.0", "null", "[]", "{}",
        "[10]", '""', "9" * 25, pytest.param("9" * 5_000, id="5,000 nines"),
    ],
)  # fmt: skip
def test_a_score_that_is_no_plain_integer_is_never_coerced(text: str) -> None:
    raw = f'{{"match_id": "m", "leaderboard": "wider", "results": [{{"player_id": "zed", "score": {text}}}]}}'
    (fault,) = faults_in(decode_json(raw.encode()))
    assert fault.place == "/results/0/score"
    assert fault.detail.startswith("must be a plain JSON integer")
    single = f'{{"match_id": "m", "leaderboard": "wider", "player_id": "zed", "score": {text}}}'
    assert places_in(decode_json(single.encode()), ScoreBody) == ["/score"]


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**63, 2**64 - 1, -(2**63)])
def test_a_score_beyond_the_safe_integers_is_refused(number: int) -> None:
    for name in ("wide", "wider", "nobody-knows"):
        value = decode_json(json.dumps(match(leaderboard=name, results=[{"player_id": "a", "score": number}])).encode())
        (fault,) = faults_in(value)
        assert fault.place == "/results/0/score"
        assert str(SAFE) in fault.detail


def test_the_safe_integers_are_scores_to_their_ends() -> None:
    for name, number in (("wide", -SAFE), ("wider", SAFE), ("wide", 0), ("wider", 0)):
        assert parse(score(leaderboard=name, score=number), ScoreBody).results == (("zed", number),)


def test_minus_zero_is_zero() -> None:
    raw = b'{"match_id": "m", "player_id": "zed", "score": -0}'
    assert parse(decode_json(raw), ScoreBody).results == (("zed", 0),)


def test_the_bounds_of_the_leaderboard_are_inclusive() -> None:
    assert parse(score(score=0), ScoreBody).results == (("zed", 0),)
    assert parse(score(score=100), ScoreBody).results == (("zed", 100),)
    for number in (-1, 101):
        assert faults_in(score(score=number), ScoreBody) == [Fault("/score", "must be from 0 to 100 on main")]


@pytest.mark.parametrize("field", ["match_id", "player_id", "score", "leaderboard", "ended_at"])
def test_null_is_not_the_same_as_leaving_a_field_out(field: str) -> None:
    assert places_in(score(**{field: None}), ScoreBody) == [f"/{field}"]
    if field in ("match_id", "leaderboard", "ended_at"):
        assert places_in(match(**{field: None})) == [f"/{field}"]


@pytest.mark.parametrize("wrong", [5, True, 1.5, ["m"], {"m": 1}, None, "", "x" * 129, "a\x00", "e\u0301", "\ud800"])
def test_ids_are_strings_that_keep_the_rules(wrong: Any) -> None:
    assert places_in(match(match_id=wrong)) == ["/match_id"]
    assert places_in(match(results=[{"player_id": wrong, "score": 1}])) == ["/results/0/player_id"]
    assert places_in(score(player_id=wrong), ScoreBody) == ["/player_id"]


def test_ids_are_taken_as_they_are() -> None:
    players = ["007", "7", "Zed", "zed", " zed", "a:b", "a#b", "{x}", "a/b", "../", "🦊", "*", "=zed"]
    event = parse(match(match_id="a#=b", results=[{"player_id": one, "score": 1} for one in players]))
    assert [player for player, _ in event.results] == players
    assert event.match_id == "a#=b"


def test_a_lone_surrogate_anywhere_is_a_fault_that_can_be_told() -> None:
    raw = b'{"match_id": "m", "\\ud800": 1, "results": [{"player_id": "zed", "score": 1}]}'
    assert faults_in(decode_json(raw))
    raw = b'{"match_id": "m", "results": [{"player_id": "zed", "score": 1, "\\udfff": 1}]}'
    assert places_in(decode_json(raw)) == ["/results/0"]


@pytest.mark.parametrize("count", [1, 2, 199, MAX_RESULTS])
def test_a_match_has_1_to_200_results(count: int) -> None:
    results = [{"player_id": f"p{number}", "score": 1} for number in range(count)]
    assert len(parse(match(results=results)).results) == count


@pytest.mark.parametrize("count", [0, MAX_RESULTS + 1, 5_000])
def test_a_match_without_results_or_with_more_than_200_is_refused(count: int) -> None:
    results = [{"player_id": f"p{number}", "score": 1} for number in range(count)]
    assert places_in(match(results=results)) == ["/results"]


@pytest.mark.parametrize(
    ("count", "told"), [(0, "has 0 items, and needs at least 1"), (MAX_RESULTS + 1, "has more than 200 items")]
)
def test_a_list_of_a_wrong_length_is_told_by_how_many_are_right(count: int, told: str) -> None:
    results = [{"player_id": f"p{number}", "score": 1} for number in range(count)]
    with pytest.raises(InvalidEvent, match=told):
        parse(match(results=results), MatchBody)


@pytest.mark.parametrize("wrong", [None, {}, "zed", 5, {"player_id": "zed", "score": 1}])
def test_results_are_a_list(wrong: Any) -> None:
    assert faults_in(match(results=wrong)) == [Fault("/results", "must be a JSON array")]


def test_every_repetition_of_a_player_is_told() -> None:
    players = ["zed", "amy", "zed", "Zed", "zed", "amy"]
    found = faults_in(match(results=[{"player_id": one, "score": 1} for one in players]))
    told = "this player stands in the match already"
    assert found == [Fault(f"/results/{index}/player_id", told) for index in (2, 4, 5)]


@pytest.mark.parametrize("name", ["other", "a", "0-"])
def test_a_sound_event_of_an_unknown_leaderboard_is_told_apart_from_a_bad_one(name: str) -> None:
    with pytest.raises(UnknownLeaderboard) as caught:
        parse(match(leaderboard=name, ended_at="2026-10-24T12:00:00Z"))
    assert caught.value.leaderboard == name
    assert places_in(match(leaderboard=name, match_id="")) == ["/match_id"]


def test_without_a_leaderboard_called_main_the_default_is_unknown() -> None:
    with pytest.raises(UnknownLeaderboard, match="main"):
        parse_event(match(), MatchBody, {}, NOW)


@pytest.mark.parametrize("wrong", ["Ranked", "weekly", "", "a:b", 5, ["main"], {"main": 1}, "\ud800"])
def test_what_cannot_name_a_leaderboard_is_a_fault(wrong: Any) -> None:
    assert places_in(match(leaderboard=wrong)) == ["/leaderboard"]


@pytest.mark.parametrize("wrong", [5, 1_792_843_200_000, True, 1.5, [], "", "2026-10-24", "2026-10-24T12:00:00", "now"])
def test_a_time_is_rfc_3339_with_an_offset(wrong: Any) -> None:
    (fault,) = faults_in(match(ended_at=wrong))
    assert fault.place == "/ended_at"
    assert "RFC 3339" in fault.detail


def test_five_minutes_ahead_are_taken_and_not_a_millisecond_more() -> None:
    latest_at = NOW + 5 * MINUTE_MS
    assert parse(match(ended_at=format_time(latest_at))).ended_at == latest_at
    assert faults_in(match(ended_at=format_time(latest_at + 1))) == [
        Fault("/ended_at", "is more than 5 minutes ahead of the clock")
    ]
    # A fraction that would round up to the next millisecond is still within.
    assert parse(match(ended_at="2026-10-24T12:05:00.0009Z")).ended_at == latest_at


def test_the_origin_is_the_first_instant_of_a_leaderboard() -> None:
    assert parse(match(ended_at="1970-01-01T00:00:00Z")).ended_at == 0
    assert places_in(match(ended_at="1969-12-31T23:59:59.999Z")) == ["/ended_at"]
    start_at = parse_time("2026-01-01T00:00:00Z")
    assert parse(match(leaderboard="short", ended_at="2026-01-01T00:00:00Z")).ended_at == start_at
    (fault,) = faults_in(match(leaderboard="short", ended_at="2025-12-31T23:59:59.999Z"))
    assert "2026-01-01T00:00:00.000Z" in fault.detail


def test_the_end_is_the_first_instant_too_late() -> None:
    last_at = parse_time("2026-10-24T12:00:59.999Z")
    assert parse(match(leaderboard="short", ended_at="2026-10-24T12:00:59.999Z")).ended_at == last_at
    (fault,) = faults_in(match(leaderboard="short", ended_at="2026-10-24T12:01:00Z"))
    assert fault.place == "/ended_at"
    assert "2026-10-24T12:01:00.000Z" in fault.detail


def test_a_time_of_receipt_outside_of_the_leaderboard_is_refused() -> None:
    for now_at in (parse_time("2026-10-24T12:01:00Z"), parse_time("2025-12-31T23:59:59.999Z"), -1, 2**63 - 1):
        with pytest.raises(InvalidEvent, match="time of receipt") as caught:
            parse_event(match(leaderboard="short"), MatchBody, BOARDS, now_at)
        assert [fault.place for fault in caught.value.faults] == ["/ended_at"]
    assert parse(match(leaderboard="short")).ended_at == NOW


def test_the_clock_given_decides_so_that_a_replay_decides_the_same() -> None:
    late = match(ended_at="2026-10-24T13:00:00Z")
    assert parse_event(late, MatchBody, BOARDS, NOW + 55 * MINUTE_MS).ended_at == NOW + 60 * MINUTE_MS
    with pytest.raises(InvalidEvent):
        parse_event(late, MatchBody, BOARDS, NOW + 55 * MINUTE_MS - 1)


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z"])
def test_the_ends_of_the_calendar_are_faults_and_no_crash(at: str) -> None:
    assert places_in(match(ended_at=at)) == ["/ended_at"]
    with pytest.raises((InvalidEvent, UnknownLeaderboard)):
        parse(match(leaderboard="other", ended_at=at))
