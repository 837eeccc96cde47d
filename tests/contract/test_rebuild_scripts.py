"""begin, fill, finish: one runner rebuilds a lane, and whoever is not that runner changes nothing."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from stores.lanes import Entries, LaneIds, LaneState, Projected, Range
from tests.contract.redis_side import ALL, DAILY, IDS, LANE, MOST, RedisSide, entries

pytestmark = pytest.mark.contract

OTHER_IDS = LaneIds("another-log", "another-truth", "2/1")
NOTHING = Entries()


def begin(side: RedisSide, epoch: str, partitions: int = 2) -> None:
    lanes = side.lanes
    assert lanes.begin(LANE, epoch, IDS, partitions, lanes.read_meta(LANE), [])


# ---------------------------------------------------------------- begin


def test_a_lost_lane_opens_for_a_rebuild(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    meta = redis_side.lanes.read_meta(LANE)
    assert (meta.state, meta.epoch, meta.ids) == (LaneState.REBUILDING, "e", IDS)
    assert (meta.partitions, meta.seq, meta.as_of, meta.progress) == (2, 0, None, "0")
    assert dict(meta.applied) == {}


def test_begin_empties_all_of_the_lane_and_nothing_beside_it(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (5, 100), 1: (6, 100)})
    redis_side.project((ALL, "ann", 1), (DAILY, "ann", 1))
    keys = redis_side.names.lane(LANE)
    redis_side.ask("SADD", keys.expelled, f"{ALL.name}\nann")
    neighbour = redis_side.names.lane(LANE + 1)
    redis_side.ask("HSET", neighbour.meta, "state", "ready")
    begin(redis_side, "second")
    assert set(redis_side.dump()) == {keys.meta.encode(), neighbour.meta.encode()}


def test_begin_finds_boards_that_came_after_the_lane_was_looked_at(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    seen = redis_side.lanes.read_meta(LANE)
    redis_side.project((ALL, "ann", 1), (DAILY, "ann", 1))
    assert redis_side.lanes.begin(LANE, "second", IDS, 2, seen, [])
    assert set(redis_side.dump()) == {redis_side.names.lane(LANE).meta.encode()}


def test_begin_empties_boards_that_the_lane_does_not_name(redis_side: RedisSide) -> None:
    board = redis_side.names.lane(LANE).board(ALL.name)
    redis_side.ask("ZADD", board, 1, "a stranger")
    lanes = redis_side.lanes
    assert lanes.begin(LANE, "e", IDS, 2, lanes.read_meta(LANE), [ALL.name, DAILY.name])
    assert board.encode() not in redis_side.dump()


def test_boards_that_were_not_declared_are_told_and_nothing_is_written(
    redis_side: RedisSide, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1), (DAILY, "ann", 1))
    before = redis_side.dump()
    lanes = redis_side.lanes
    seen = dataclasses.replace(lanes.read_meta(LANE), boards=frozenset({ALL.name}))
    run = lanes._run

    def run_and_look(*args: Any) -> list[bytes]:
        answer = run(*args)
        if answer[0] == b"UNDECLARED":
            assert answer == [b"UNDECLARED", DAILY.name.encode()]
            assert redis_side.dump() == before
            told.append(answer)
        return answer

    told: list[list[bytes]] = []
    monkeypatch.setattr(lanes, "_run", run_and_look)
    assert lanes.begin(LANE, "second", IDS, 2, seen, [])
    assert len(told) == 1


def test_of_two_runners_that_saw_the_same_lane_the_second_is_fenced(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    seen = redis_side.lanes.read_meta(LANE)
    assert redis_side.lanes.begin(LANE, "one", IDS, 2, seen, [])
    before = redis_side.dump()
    assert not redis_side.lanes.begin(LANE, "two", IDS, 2, seen, [])
    assert redis_side.dump() == before


def test_a_begin_that_is_sent_again_starts_its_own_rebuild_afresh(redis_side: RedisSide) -> None:
    seen = redis_side.lanes.read_meta(LANE)
    assert redis_side.lanes.begin(LANE, "e", IDS, 2, seen, [])
    assert redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    assert redis_side.lanes.begin(LANE, "e", IDS, 2, seen, [])
    meta = redis_side.lanes.read_meta(LANE)
    assert (meta.seq, meta.boards) == (0, frozenset())
    assert redis_side.scores(ALL) == {}


def test_a_begin_that_arrives_after_its_own_finish_is_fenced(redis_side: RedisSide) -> None:
    seen = redis_side.lanes.read_meta(LANE)
    assert redis_side.lanes.begin(LANE, "e", IDS, 1, seen, [])
    assert redis_side.lanes.finish(LANE, "e", 0, {0: (0, None)})
    before = redis_side.dump()
    assert not redis_side.lanes.begin(LANE, "e", IDS, 1, seen, [])
    assert redis_side.dump() == before


def test_a_ready_lane_that_was_tampered_with_can_be_rebuilt(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    redis_side.ask("DEL", redis_side.names.lane(LANE).applied)
    assert redis_side.lanes.read_meta(LANE).state is LaneState.LOST
    redis_side.make_ready(epoch="second")
    assert redis_side.lanes.read_meta(LANE).state is LaneState.READY


# ---------------------------------------------------------------- fill


def test_steps_fill_the_boards_in_order(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    assert redis_side.lanes.fill(LANE, "e", 0, 2, entries((ALL, "ann", MOST), (ALL, "bob", 2)))
    assert redis_side.lanes.fill(LANE, "e", 1, 3, entries((DAILY, "ann", 1)))
    meta = redis_side.lanes.read_meta(LANE)
    assert (meta.state, meta.seq, meta.progress) == (LaneState.REBUILDING, 2, "3")
    assert meta.boards == {ALL.name, DAILY.name}
    assert redis_side.scores(ALL) == {"ann": MOST, "bob": 2}
    assert DAILY.expires_at is not None
    expires_at = redis_side.ask("EXPIRETIME", redis_side.names.lane(LANE).board(DAILY.name))
    assert expires_at == DAILY.expires_at // 1_000


def test_a_step_that_is_sent_again_changes_nothing(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    for _ in range(2):
        assert redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    before = redis_side.dump()
    assert redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    assert redis_side.dump() == before


@pytest.mark.parametrize("step", [0, 3, 10])
def test_a_step_out_of_order_is_fenced(redis_side: RedisSide, step: int) -> None:
    begin(redis_side, "e")
    for done in range(2):
        assert redis_side.lanes.fill(LANE, "e", done, 0, NOTHING)
    before = redis_side.dump()
    assert not redis_side.lanes.fill(LANE, "e", step, 1, entries((ALL, "ann", 1)))
    assert redis_side.dump() == before


def test_a_step_of_another_epoch_is_fenced(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    begin(redis_side, "f")
    before = redis_side.dump()
    assert not redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    assert redis_side.dump() == before


def test_a_step_into_a_ready_or_a_lost_lane_is_fenced(redis_side: RedisSide) -> None:
    assert not redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    assert redis_side.dump() == {}
    redis_side.make_ready(epoch="e")
    before = redis_side.dump()
    assert not redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    assert redis_side.dump() == before


def test_steps_beyond_nine_are_counted_as_numbers(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    for step in range(12):
        assert redis_side.lanes.fill(LANE, "e", step, step, entries((ALL, f"p{step}", step)))
    assert not redis_side.lanes.fill(LANE, "e", 9, 0, NOTHING)
    assert redis_side.lanes.finish(LANE, "e", 12, {0: (1, None), 1: (1, None)})


def test_a_step_may_hold_more_entries_than_lua_can_unpack(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    assert redis_side.lanes.fill(LANE, "e", 0, 9_001, entries(*[(ALL, f"p{n}", n) for n in range(9_001)]))
    assert redis_side.scores(ALL) == {f"p{n}": n for n in range(9_001)}


# ---------------------------------------------------------------- finish


def test_a_finished_lane_is_ready_at_the_offsets_it_was_given(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    assert redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    assert redis_side.lanes.finish(LANE, "e", 1, {0: (17, 900), 1: (0, 800)})
    meta = redis_side.lanes.read_meta(LANE)
    assert (meta.state, meta.as_of) == (LaneState.READY, 800)
    assert meta.applied == {0: 17, 1: 0}
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 17, 18)], NOTHING) is Projected.APPLIED


def test_a_partition_that_nobody_has_heard_from_leaves_as_of_unknown(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    assert redis_side.lanes.finish(LANE, "e", 0, {0: (17, 900), 1: (0, None)})
    assert redis_side.lanes.read_meta(LANE).as_of is None


def test_finish_sets_offsets_and_does_not_raise_what_is_there(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    keys = redis_side.names.lane(LANE)
    redis_side.ask("HSET", keys.applied, "0", "99", "7", "99")
    redis_side.ask("HSET", keys.as_of, "0", "99", "7", "99")
    assert redis_side.lanes.finish(LANE, "e", 0, {0: (5, None), 1: (6, 3)})
    assert redis_side.lanes.read_meta(LANE).applied == {0: 5, 1: 6}
    assert dict(redis_side.ask("HGETALL", keys.as_of)) == {b"1": b"3"}


def test_a_finish_that_is_sent_again_changes_nothing(redis_side: RedisSide) -> None:
    begin(redis_side, "e")
    assert redis_side.lanes.finish(LANE, "e", 0, {0: (5, 1), 1: (6, 1)})
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 5, 9, 7)], entries((ALL, "ann", 1))) is Projected.APPLIED
    before = redis_side.dump()
    assert redis_side.lanes.finish(LANE, "e", 0, {0: (5, 1), 1: (6, 1)})
    assert redis_side.dump() == before


@pytest.mark.parametrize(("epoch", "steps"), [("e", 0), ("e", 2), ("f", 1)])
def test_a_finish_of_another_rebuild_or_with_a_step_missing_is_fenced(
    redis_side: RedisSide, epoch: str, steps: int
) -> None:
    begin(redis_side, "e")
    assert redis_side.lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    before = redis_side.dump()
    assert not redis_side.lanes.finish(LANE, epoch, steps, {0: (5, None)})
    assert redis_side.dump() == before


def test_a_finish_in_a_lost_lane_is_fenced(redis_side: RedisSide) -> None:
    assert not redis_side.lanes.finish(LANE, "e", 0, {0: (5, None)})
    assert redis_side.dump() == {}


def test_a_ready_lane_of_another_epoch_fences_a_finish(redis_side: RedisSide) -> None:
    redis_side.make_ready(epoch="f")
    before = redis_side.dump()
    assert not redis_side.lanes.finish(LANE, "e", 0, {0: (5, None)})
    assert redis_side.dump() == before


def test_a_rebuild_brings_the_ids_of_its_log_and_truth(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    lanes = redis_side.lanes
    assert lanes.begin(LANE, "e", OTHER_IDS, 1, lanes.read_meta(LANE), [])
    assert lanes.finish(LANE, "e", 0, {0: (0, None)})
    assert lanes.project(LANE, IDS, [Range(0, 0, 1)], NOTHING) is Projected.LOST
    assert lanes.project(LANE, OTHER_IDS, [Range(0, 0, 1)], NOTHING) is Projected.APPLIED
