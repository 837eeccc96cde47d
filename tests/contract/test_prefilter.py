"""prefilter and the small questions about a lane: what it holds, if it can be believed."""

from __future__ import annotations

import pytest

from schemas.errors import StoreUnavailable
from schemas.keys import Names
from schemas.rows import RowKey
from schemas.settings import load_settings
from stores.connections import connect_redis
from stores.lanes import LaneIds, Lanes
from tests.contract.redis_side import ALL, DAILY, IDS, LANE, MOST, WEEKLY, RedisSide, entries

pytestmark = pytest.mark.contract


def test_the_prefilter_tells_what_the_boards_hold_and_leaves_out_who_is_absent(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", MOST), (DAILY, "ann", 0), (ALL, "bob", 2))
    wanted = {ALL.name: ["nobody", "ann", "bob"], DAILY.name: ["bob", "ann"], WEEKLY.name: ["ann"]}
    assert redis_side.lanes.prefilter(LANE, IDS, wanted) == {
        RowKey(ALL.name, "ann"): MOST,
        RowKey(ALL.name, "bob"): 2,
        RowKey(DAILY.name, "ann"): 0,
    }


def test_nothing_wanted_is_nothing_found(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    assert redis_side.lanes.prefilter(LANE, IDS, {}) == {}


@pytest.mark.parametrize(
    "ids", [IDS._replace(log_id="other"), IDS._replace(truth_id="other"), IDS._replace(topology="2/1")]
)
def test_a_lane_under_other_ids_is_not_compared_with(redis_side: RedisSide, ids: LaneIds) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    assert redis_side.lanes.prefilter(LANE, ids, {ALL.name: ["ann"]}) is None


def test_a_lane_that_is_lost_or_under_rebuild_is_not_compared_with(redis_side: RedisSide) -> None:
    lanes = redis_side.lanes
    assert lanes.prefilter(LANE, IDS, {ALL.name: ["ann"]}) is None
    assert lanes.begin(LANE, "e", IDS, 1, lanes.read_meta(LANE), [])
    assert lanes.fill(LANE, "e", 0, 1, entries((ALL, "ann", 1)))
    assert lanes.prefilter(LANE, IDS, {ALL.name: ["ann"]}) is None


@pytest.mark.parametrize("lost", ["applied", "boards", "meta"])
def test_a_lane_that_was_tampered_with_is_not_compared_with(redis_side: RedisSide, lost: str) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    redis_side.ask("DEL", getattr(redis_side.names.lane(LANE), lost))
    assert redis_side.lanes.prefilter(LANE, IDS, {ALL.name: ["ann"]}) is None


def test_more_players_than_lua_can_unpack_are_asked_at_once(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project(*[(ALL, f"p{n}", n) for n in range(0, 9_000, 2)])
    found = redis_side.lanes.prefilter(LANE, IDS, {ALL.name: [f"p{n}" for n in range(9_000)]})
    assert found == {RowKey(ALL.name, f"p{n}"): n for n in range(0, 9_000, 2)}


def test_the_prefilter_writes_nothing(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    before = redis_side.dump()
    redis_side.lanes.prefilter(LANE, IDS, {ALL.name: ["ann", "bob"], WEEKLY.name: ["ann"]})
    assert redis_side.dump() == before


@pytest.mark.parametrize("score", ["1.5", "-1", "inf"])
def test_a_score_that_no_codec_made_stops_loudly(redis_side: RedisSide, score: str) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    redis_side.ask("ZADD", redis_side.names.lane(LANE).board(ALL.name), score, "ann")
    with pytest.raises(StoreUnavailable, match="no packed value"):
        redis_side.lanes.prefilter(LANE, IDS, {ALL.name: ["ann"]})


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru"])
def test_the_eviction_policy_is_told(own_valkey: str, policy: str) -> None:
    client = connect_redis(load_settings({"STANDINGS_REDIS_URL": own_valkey}))
    client.execute_command("CONFIG", "SET", "maxmemory-policy", policy)
    assert Lanes(client, Names("t")).eviction_policy() == policy
    client.close()
