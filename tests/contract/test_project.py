"""project: whole ranges of the log come into a lane, or nothing does."""

from __future__ import annotations

import pytest

from stores.lanes import Behind, Entries, LaneIds, LaneState, Projected, Range
from tests.contract.redis_side import ALL, DAILY, IDS, LANE, MOST, WEEKLY, RedisSide, entries

pytestmark = pytest.mark.contract

ODD_IDS = ["a:b", "a#b", "{x}", "a/b", "../", "007", "7", "Zoë", "日本", "🏆", "a b", "\u00ad", "x" * 128, "é" * 64]


def test_a_projection_brings_entries_offsets_and_times(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    ranges = [Range(0, 0, 5, 1_000), Range(1, 0, 7, 900)]
    found = redis_side.lanes.project(LANE, IDS, ranges, entries((ALL, "ann", 10), (DAILY, "ann", 12), (ALL, "bob", 3)))
    assert found is Projected.APPLIED
    meta = redis_side.lanes.read_meta(LANE)
    assert (meta.applied, meta.as_of) == ({0: 5, 1: 7}, 900)
    assert meta.boards == {ALL.name, DAILY.name}
    assert redis_side.scores(ALL) == {"ann": 10, "bob": 3}
    assert redis_side.scores(DAILY) == {"ann": 12}


@pytest.mark.parametrize(
    "ids", [IDS._replace(log_id="other"), IDS._replace(truth_id="other"), IDS._replace(topology="2/1")]
)
def test_a_lane_of_another_log_truth_or_layout_is_lost_and_stays_as_it_was(redis_side: RedisSide, ids: LaneIds) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    before = redis_side.dump()
    assert redis_side.lanes.project(LANE, ids, [Range(0, 0, 5)], entries((ALL, "ann", 9))) is Projected.LOST
    assert redis_side.dump() == before


def test_a_lane_that_nobody_built_is_lost_and_stays_absent(redis_side: RedisSide) -> None:
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 0, 5)], entries((ALL, "ann", 9))) is Projected.LOST
    assert redis_side.dump() == {}


def test_a_lane_under_rebuild_takes_no_projection(redis_side: RedisSide) -> None:
    lanes = redis_side.lanes
    assert lanes.begin(LANE, "e", IDS, 1, lanes.read_meta(LANE), [])
    before = redis_side.dump()
    assert lanes.project(LANE, IDS, [Range(0, 0, 5)], entries((ALL, "ann", 9))) is Projected.LOST
    assert redis_side.dump() == before


@pytest.mark.parametrize("lost", ["applied", "boards", "meta"])
def test_a_ready_lane_that_lost_a_key_is_lost(redis_side: RedisSide, lost: str) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    redis_side.ask("DEL", getattr(redis_side.names.lane(LANE), lost))
    before = redis_side.dump()
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 0, 5)], entries((ALL, "bob", 9))) is Projected.LOST
    assert redis_side.dump() == before
    assert redis_side.lanes.read_meta(LANE).state is LaneState.LOST


def test_a_ready_lane_whose_boards_lack_a_name_is_lost(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1), (DAILY, "ann", 1))
    redis_side.ask("SREM", redis_side.names.lane(LANE).boards, DAILY.name)
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 0, 5)], Entries()) is Projected.LOST
    assert redis_side.lanes.read_meta(LANE).state is LaneState.LOST


def test_an_empty_ready_lane_needs_no_boards(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    assert redis_side.lanes.read_meta(LANE).state is LaneState.READY
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 0, 5)], Entries()) is Projected.APPLIED


def test_a_gap_before_a_range_is_told_for_its_partition_alone_and_writes_nothing(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (5, None), 1: (7, None), 2: (9, None)})
    before = redis_side.dump()
    ranges = [Range(0, 5, 6, 1), Range(1, 8, 9, 1), Range(2, 9, 9, 1)]
    assert redis_side.lanes.project(LANE, IDS, ranges, entries((ALL, "ann", 9))) == Behind({1: 7})
    assert redis_side.dump() == before


def test_every_gap_is_told_at_once(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (5, None), 1: (7, None)})
    found = redis_side.lanes.project(LANE, IDS, [Range(0, 6, 7), Range(1, 9, 9)], Entries())
    assert found == Behind({0: 5, 1: 7})


def test_a_partition_that_the_lane_never_met_is_at_zero(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (5, None)})
    assert redis_side.lanes.project(LANE, IDS, [Range(9, 1, 2)], Entries()) == Behind({9: 0})
    assert redis_side.lanes.project(LANE, IDS, [Range(9, 0, 0)], Entries()) is Projected.APPLIED
    assert redis_side.lanes.read_meta(LANE).applied == {0: 5, 9: 0}
    assert redis_side.lanes.project(LANE, IDS, [Range(9, 0, 2)], Entries()) is Projected.APPLIED
    assert redis_side.lanes.read_meta(LANE).applied == {0: 5, 9: 2}


def test_applied_offsets_never_go_back(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (100, None)})
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 9, 20)], entries((ALL, "ann", 4))) is Projected.APPLIED
    assert redis_side.lanes.read_meta(LANE).applied == {0: 100}
    assert redis_side.scores(ALL) == {"ann": 4}
    assert redis_side.lanes.project(LANE, IDS, [Range(0, 99, 101)], Entries()) is Projected.APPLIED
    assert redis_side.lanes.read_meta(LANE).applied == {0: 101}


def test_as_of_is_unknown_while_one_partition_was_never_heard(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (0, None), 1: (0, None), 2: (0, None)})
    lanes = redis_side.lanes
    lanes.project(LANE, IDS, [Range(0, 0, 0, 500), Range(1, 0, 0, 700)], Entries())
    assert lanes.read_meta(LANE).as_of is None
    lanes.project(LANE, IDS, [Range(2, 0, 0)], Entries())
    assert lanes.read_meta(LANE).as_of is None
    lanes.project(LANE, IDS, [Range(2, 0, 0, 600)], Entries())
    assert lanes.read_meta(LANE).as_of == 500


def test_as_of_is_the_minimum_of_times_as_numbers_and_never_goes_back(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    lanes = redis_side.lanes
    lanes.project(LANE, IDS, [Range(0, 0, 0, 1_700_000_000_000), Range(1, 0, 0, 99_000_000_000)], Entries())
    assert lanes.read_meta(LANE).as_of == 99_000_000_000
    lanes.project(LANE, IDS, [Range(1, 0, 0, 5)], Entries())
    assert lanes.read_meta(LANE).as_of == 99_000_000_000
    lanes.project(LANE, IDS, [Range(1, 0, 0, 1_700_000_000_001)], Entries())
    assert lanes.read_meta(LANE).as_of == 1_700_000_000_000


def test_a_lower_image_never_replaces_a_higher_one(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 10), (ALL, "bob", 10))
    redis_side.project((ALL, "ann", 9), (ALL, "bob", 11), (ALL, "bob", 7))
    assert redis_side.scores(ALL) == {"ann": 10, "bob": 11}


def test_a_repeated_projection_changes_nothing(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    images = entries((ALL, "ann", 10), (DAILY, "bob", 11))
    ranges = [Range(0, 0, 5, 1_000), Range(1, 0, 7, 900)]
    assert redis_side.lanes.project(LANE, IDS, ranges, images) is Projected.APPLIED
    before = redis_side.dump()
    assert redis_side.lanes.project(LANE, IDS, ranges, images) is Projected.APPLIED
    assert redis_side.dump() == before


def test_a_board_expires_when_its_retention_ends_and_the_all_time_board_never(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1), (DAILY, "ann", 1), (WEEKLY, "ann", 1))
    keys = redis_side.names.lane(LANE)
    assert redis_side.ask("EXPIRETIME", keys.board(ALL.name)) == -1
    for board in (DAILY, WEEKLY):
        assert board.expires_at is not None
        assert redis_side.ask("EXPIRETIME", keys.board(board.name)) == board.expires_at // 1_000
    for key in (keys.meta, keys.applied, keys.boards):
        assert redis_side.ask("EXPIRETIME", key) == -1


def test_expiry_is_set_once_for_a_board_however_many_entries_it_gets(real_redis: RedisSide) -> None:
    real_redis.make_ready()

    def expirations() -> int:
        return int(real_redis.client.info("commandstats").get("cmdstat_expireat", {"calls": 0})["calls"])

    before = expirations()
    real_redis.project(*[(board, f"player {n}", n) for n in range(5_000) for board in (ALL, DAILY)])
    assert expirations() == before + 1


def test_the_greatest_packed_value_keeps_all_its_digits(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", MOST), (ALL, "bob", MOST - 1), (ALL, "cid", 0))
    assert redis_side.scores(ALL) == {"ann": MOST, "bob": MOST - 1, "cid": 0}
    redis_side.project((ALL, "bob", MOST), (ALL, "cid", 2**52 + 1))
    assert redis_side.scores(ALL) == {"ann": MOST, "bob": MOST, "cid": 2**52 + 1}


def test_offsets_and_times_near_the_greatest_keep_all_their_digits(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (MOST - 2, MOST - 2)})
    assert redis_side.lanes.project(LANE, IDS, [Range(0, MOST - 2, MOST, MOST)], Entries()) is Projected.APPLIED
    meta = redis_side.lanes.read_meta(LANE)
    assert (meta.applied, meta.as_of) == ({0: MOST}, MOST)


def test_more_entries_than_lua_can_unpack_come_in_one_call(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project(*[(ALL, f"player {n}", n) for n in range(8_001)], *[(DAILY, f"p{n}", n) for n in range(2_000)])
    assert redis_side.scores(ALL) == {f"player {n}": n for n in range(8_001)}
    assert redis_side.scores(DAILY) == {f"p{n}": n for n in range(2_000)}


@pytest.mark.parametrize("count", [1_999, 2_000, 2_001, 4_000])
def test_no_entry_falls_between_two_chunks(redis_side: RedisSide, count: int) -> None:
    redis_side.make_ready()
    redis_side.project(*[(ALL, f"{n}", n) for n in range(count)])
    assert redis_side.scores(ALL) == {f"{n}": n for n in range(count)}


def test_ids_of_any_characters_are_kept_apart(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project(*[(board, player, n) for n, player in enumerate(ODD_IDS) for board in (ALL, DAILY)])
    assert redis_side.scores(ALL) == redis_side.scores(DAILY) == {player: n for n, player in enumerate(ODD_IDS)}
    wanted = {ALL.name: ODD_IDS, DAILY.name: ODD_IDS}
    found = redis_side.lanes.prefilter(LANE, IDS, wanted)
    assert found is not None
    assert [found[key] for key in found] == [*range(len(ODD_IDS)), *range(len(ODD_IDS))]


def test_a_script_that_the_server_forgot_is_given_again(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    redis_side.ask("SCRIPT", "FLUSH")
    redis_side.project((ALL, "ann", 2))
    redis_side.ask("SCRIPT", "FLUSH")
    redis_side.make_ready(epoch="second")
    assert redis_side.scores(ALL) == {}
