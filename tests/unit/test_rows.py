from __future__ import annotations

import pytest

from schemas.events import MatchEvent
from schemas.leaderboards import Definition, Leaderboard
from schemas.rows import Receipt, Row, Topology, candidates_of, receipt_of

AT = 1_792_843_200_123  # 2026-10-24T12:00:00.123Z
MAIN = Leaderboard("main", Definition(order="lower", min=-5, max=100, windows=("all", "weekly")))


def event(*results: tuple[str, int], ended_at: int = AT, time_given: bool = True, whole: bool = True) -> MatchEvent:
    return MatchEvent("m-1", MAIN, ended_at, time_given=time_given, whole=whole, results=results)


def receipt(*results: tuple[str, int], ended_at: int = AT, time_given: bool = True) -> Receipt:
    return receipt_of(event(*results, ended_at=ended_at, time_given=time_given), AT + 50)


def test_a_repeat_contradicts_nothing_whatever_the_order_of_its_results() -> None:
    stored = receipt(("zed", 10), ("amy", 7))
    assert not stored.contradicts(event(("zed", 10), ("amy", 7)))
    assert not stored.contradicts(event(("amy", 7), ("zed", 10)))


@pytest.mark.parametrize(
    "results",
    [
        (("zed", 11), ("amy", 7)),
        (("zed", 7), ("amy", 10)),
        (("zed", 10),),
        (("zed", 10), ("amy", 7), ("bob", 1)),
        (("zed", 10), ("Amy", 7)),
    ],
)
def test_other_results_under_the_same_match_contradict(results: tuple[tuple[str, int], ...]) -> None:
    assert receipt(("zed", 10), ("amy", 7)).contradicts(event(*results))
    assert receipt(("zed", 10), ("amy", 7), time_given=False).contradicts(event(*results, time_given=False))


def test_another_explicit_time_contradicts() -> None:
    assert receipt(("zed", 10)).contradicts(event(("zed", 10), ended_at=AT + 1))
    assert receipt(("zed", 10)).contradicts(event(("zed", 10), ended_at=AT - 1))


@pytest.mark.parametrize(("stored_given", "event_given"), [(True, False), (False, True), (False, False)])
def test_a_time_that_the_server_filled_in_is_not_compared_on_either_side(
    stored_given: bool,  # noqa: FBT001 - parametrized
    event_given: bool,  # noqa: FBT001
) -> None:
    stored = receipt(("zed", 10), time_given=stored_given)
    assert not stored.contradicts(event(("zed", 10), ended_at=AT + 1, time_given=event_given))


def test_a_receipt_says_what_was_applied_and_goes_after_400_days() -> None:
    stored = receipt(("zed", 10), ("amy", 7))
    assert stored.key == ("m-1", "main#*")
    assert stored.results == {"zed": 10, "amy": 7}
    assert (stored.ended_at, stored.time_given, stored.applied_at) == (AT, True, AT + 50)
    assert stored.expires_at == AT + 50 + 400 * 86_400_000


def test_a_single_score_has_a_receipt_of_its_own() -> None:
    assert receipt_of(event(("zed", 10), whole=False), AT).key == ("m-1", "main#=zed")


def test_a_candidate_has_the_time_in_milliseconds_and_the_packed_value_of_its_board() -> None:
    candidates = candidates_of(event(("zed", 10)))
    assert [one.key for one in candidates] == [("main:all", "zed"), ("main:weekly:2026-W43", "zed")]
    for one in candidates:
        assert one.row == Row("zed", 10, one.board.codec.pack(10, AT), AT, "m-1")
        assert one.board.codec.score(one.row.packed) == 10


def test_a_greater_packed_value_wins_then_the_earlier_time_then_the_smaller_match() -> None:
    kept = Row("zed", 10, 100, AT, "m-2")
    assert Row("zed", 11, 101, AT + 9, "m-9").beats(kept)
    assert Row("zed", 10, 100, AT - 1, "m-9").beats(kept)
    assert Row("zed", 10, 100, AT, "m-10").beats(kept)
    assert not Row("zed", 10, 100, AT, "m-2").beats(kept)
    assert not Row("zed", 10, 100, AT, "m-3").beats(kept)
    assert not Row("zed", 10, 100, AT + 1, "a").beats(kept)
    assert not Row("zed", 9, 99, AT - 9, "a").beats(kept)


def test_a_topology_is_told_apart_by_its_lanes_and_its_mapping() -> None:
    assert Topology(16, 1, "t").tag == "16/1"
    tags = {Topology(lanes, mapping, "t").tag for lanes in (1, 11, 16) for mapping in (1, 11, 6)}
    assert len(tags) == 9
