"""The keeper: what it heals, what it leaves alone, and what it waits for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from rebuild.keeper import Keeper
from rebuild.leases import LEASE_MS
from schemas.errors import StoreUnavailable
from schemas.rows import RowKey
from stores.dynamodb import REQUEST_TIMEOUT_S
from stores.lanes import LaneState
from tests.fakes.deployment import Deployment

ALL, DAILY = "main:all", "main:daily:2040-01-01"
ANN = RowKey(ALL, "ann")
# A batch's deadline, and one request's time-out.
OLDER_LOG_MS = 10_000 + REQUEST_TIMEOUT_S * 1_000


def fed(deployment: Deployment, *, matches: int = 6) -> Keeper:
    """A deployment that runs: lanes opened by the keeper, matches recorded and visible."""
    keeper = deployment.keeper()
    keeper.look()
    for number in range(matches):
        deployment.submit({"match_id": f"m{number}", "player_id": "ann", "score": number})
    updater = deployment.updater()
    updater.turns(15)
    updater.leave()
    assert deployment.view([ALL, DAILY]) == truth(deployment) != {}
    return keeper


def truth(deployment: Deployment) -> dict[RowKey, int]:
    return {key: row.packed for key, row in deployment.rows().items()}


def reasons(keeper: Keeper) -> list[str]:
    return [cure.reason for cure in keeper.look()]


def test_a_first_start_is_a_rebuild_from_an_empty_truth(deployment: Deployment) -> None:
    assert [meta.state for meta in deployment.metas()] == [LaneState.LOST] * 2
    assert reasons(deployment.keeper()) == ["lost", "lost"]
    for meta in deployment.metas():
        assert (meta.state, meta.ids, meta.partitions) == (LaneState.READY, deployment.ids, 2)
        assert (dict(meta.applied), meta.boards) == ({0: 0, 1: 0}, frozenset())


def test_lanes_that_are_whole_are_left_alone(deployment: Deployment) -> None:
    keeper = fed(deployment)
    epochs = [meta.epoch for meta in deployment.metas()]
    for _ in range(5):
        deployment.clock.advance(60_000)
        assert keeper.look() == []
    assert [meta.epoch for meta in deployment.metas()] == epochs


def test_redis_that_lost_everything_is_filled_from_the_scorebook(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.client.unlink(*deployment.keys())
    cures = keeper.look()
    assert [(cure.lane, cure.reason) for cure in cures] == [(0, "lost"), (1, "lost")]
    assert sum(cure.rows for cure in cures) == 2
    assert deployment.view([ALL, DAILY]) == truth(deployment)


@pytest.mark.parametrize("key", ["meta", "applied", "boards"])
def test_a_lane_without_a_key_that_it_must_have_is_lost(deployment: Deployment, key: str) -> None:
    keeper = fed(deployment)
    lane = deployment.topology.lane_of(ALL)
    deployment.client.unlink(getattr(deployment.settings.names.lane(lane), key))
    assert reasons(keeper) == ["lost"]
    assert deployment.view([ALL, DAILY]) == truth(deployment)


def _spoil(key: str, field: str | None = None) -> Callable[[Deployment], None]:
    """A key that holds another type, or a field of it that holds no number."""

    def spoil(deployment: Deployment) -> None:
        name = getattr(deployment.settings.names.lane(deployment.topology.lane_of(ALL)), key)
        if field is None:
            deployment.client.set(name, "x")
        else:
            deployment.client.hset(name, field, "x")

    return spoil


def _lack_partitions(deployment: Deployment) -> None:
    deployment.client.hdel(deployment.settings.names.lane(deployment.topology.lane_of(ALL)).meta, "partitions")


@pytest.mark.parametrize(
    "spoil",
    [
        *[pytest.param(_spoil(key), id=key) for key in ("meta", "applied", "boards", "torn", "expelled")],
        *[
            pytest.param(_spoil("meta", field), id=f"meta {field}")
            for field in ("boards", "torn", "partitions", "seq", "state")
        ],
        pytest.param(_lack_partitions, id="without partitions"),
    ],
)
def test_a_lane_that_holds_what_no_script_writes_is_lost(
    deployment: Deployment, spoil: Callable[[Deployment], None]
) -> None:
    keeper = fed(deployment)
    spoil(deployment)
    deployment.submit({"match_id": "meanwhile", "player_id": "ann", "score": 99})
    updater = deployment.updater()
    updater.turns(10)  # stopped by nothing, whatever the lane says
    deployment.clock.advance(60_000)
    assert "lost" in reasons(keeper)
    updater.turns(10)
    assert deployment.view([ALL, DAILY]) == truth(deployment)
    assert [meta.state for meta in deployment.metas()] == [LaneState.READY] * 2
    assert keeper.look() == []


@pytest.mark.parametrize("is_busy", [False, True])
def test_an_offset_that_is_no_number_is_got_over_by_updater_or_keeper(deployment: Deployment, *, is_busy: bool) -> None:
    keeper = fed(deployment)
    _spoil("applied", "0")(deployment)
    updater = deployment.updater()
    if is_busy:
        updater.turns(10)  # it counts as 0: the log is replayed
        assert keeper.look() == []
    else:
        assert reasons(keeper) == ["lost"]
    assert deployment.view([ALL, DAILY]) == truth(deployment)
    assert all(set(meta.applied) == {0, 1} for meta in deployment.metas())


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_board_whose_key_is_something_else_is_mended(deployment: Deployment, *, is_busy: bool) -> None:
    keeper = fed(deployment)
    deployment.client.set(deployment.settings.names.lane(deployment.topology.lane_of(ALL)).board(ALL), "x")
    updater = deployment.updater()
    if is_busy:
        deployment.submit({"match_id": "meanwhile", "player_id": "bo", "score": 99})
        updater.turns(10)
    assert reasons(keeper) == ["its key was deleted"]
    updater.turns(10)
    assert deployment.view([ALL, DAILY]) == truth(deployment)
    assert keeper.look() == []


def test_a_time_that_is_no_number_is_unknown_until_an_updater_gives_it_anew(deployment: Deployment) -> None:
    fed(deployment)
    updater = deployment.updater()
    updater.turns(10)
    for lane in range(2):
        deployment.client.hset(deployment.settings.names.lane(lane).as_of, "0", "x")
        deployment.client.hset(deployment.settings.names.lane(lane).meta, "as_of", "x")
    assert [meta.as_of for meta in deployment.metas()] == [None, None]
    deployment.clock.advance(2_000)
    updater.turns(10)
    assert all(meta.as_of is not None for meta in deployment.metas())


def test_every_rebuild_has_an_epoch_of_its_own(deployment: Deployment) -> None:
    keeper = deployment.keeper()
    epochs = set()
    for _ in range(3):
        if keys := deployment.keys():
            deployment.client.unlink(*keys)
        keeper.look()
        epochs |= {meta.epoch for meta in deployment.metas()}
    assert len(epochs) == 6


@pytest.mark.parametrize("field", ["truth_id", "topology"])
def test_a_lane_of_another_truth_or_layout_is_rebuilt(deployment: Deployment, field: str) -> None:
    keeper = fed(deployment)
    deployment.client.hset(deployment.settings.names.lane(1).meta, field, "other")
    assert reasons(keeper) == [{"truth_id": "of another truth", "topology": "of another layout"}[field]]
    assert deployment.metas()[1].ids == deployment.ids


def test_a_lane_that_does_not_know_of_new_partitions_is_rebuilt(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.log.add_partitions(3)
    assert set(reasons(keeper)) == {"unaware of new partitions"}
    assert [(meta.partitions, set(meta.applied)) for meta in deployment.metas()] == [(3, {0, 1, 2})] * 2


def test_a_lane_below_the_logs_start_is_rebuilt(deployment: Deployment) -> None:
    keeper = fed(deployment)
    applied = deployment.metas()[1].applied
    deployment.log.advance_start(0, applied[0])
    assert keeper.look() == []  # exactly there is nothing missing
    deployment.client.hset(deployment.settings.names.lane(1).applied, 0, applied[0] - 1)
    assert reasons(keeper) == ["behind the log's start"]
    assert deployment.metas()[1].applied == applied


def test_a_rebuild_without_progress_is_begun_anew_after_three_seconds(deployment: Deployment) -> None:
    keeper = fed(deployment)
    lane = deployment.topology.lane_of(ALL)
    assert deployment.lanes.begin(lane, "of a runner that died", deployment.ids, 2, deployment.metas()[lane], [])
    assert keeper.look() == []
    deployment.clock.advance(3_000)
    assert keeper.look() == []
    deployment.clock.advance(1)
    assert reasons(keeper) == ["its rebuild makes no progress"]
    assert deployment.view([ALL]) == {ANN: truth(deployment)[ANN]}


def test_what_a_keeper_died_at_is_taken_up_once_its_lease_has_run_out(deployment: Deployment) -> None:
    keeper = fed(deployment)
    lane = deployment.topology.lane_of(ALL)
    now_at = deployment.clock.now_at()
    assert deployment.catalogue.take_lease(f"lane-{lane}", "a keeper that died", now_at, now_at + LEASE_MS)
    assert deployment.lanes.begin(lane, "of that keeper", deployment.ids, 2, deployment.metas()[lane], [])
    looks = 0
    while not keeper.look():
        deployment.clock.advance(1_000)
        looks += 1
    assert looks == LEASE_MS // 1_000 + 1
    assert deployment.metas()[lane].state is LaneState.READY


def test_a_rebuild_that_gets_on_is_left_to_its_runner(deployment: Deployment) -> None:
    keeper = fed(deployment)
    assert deployment.lanes.begin(0, "another runner's", deployment.ids, 2, deployment.metas()[0], [])
    for step in range(5):
        keeper.look()
        deployment.clock.advance(6_000)
        deployment.client.hset(deployment.settings.names.lane(0).meta, "seq", step + 1)
    assert keeper.look() == []
    assert deployment.metas()[0].epoch == "another runner's"


def test_a_board_whose_key_was_deleted_is_mended_in_place(deployment: Deployment) -> None:
    keeper = fed(deployment)
    lane = deployment.topology.lane_of(ALL)
    epoch = deployment.metas()[lane].epoch
    deployment.client.unlink(deployment.board_key(ALL))
    assert [(cure.lane, cure.board, cure.rows) for cure in keeper.look()] == [(lane, ALL, 1)]
    assert deployment.view([ALL]) == {ANN: truth(deployment)[ANN]}
    assert deployment.metas()[lane].epoch == epoch


def test_a_deleted_key_is_noticed_even_once_it_was_written_again(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.client.unlink(deployment.board_key(ALL))
    deployment.submit({"match_id": "later", "player_id": "bob", "score": 1})
    deployment.updater().turns(15)
    assert deployment.view([ALL]).keys() == {RowKey(ALL, "bob")}
    assert [cure.board for cure in keeper.look()] == [ALL]
    assert deployment.view([ALL]) == {key: packed for key, packed in truth(deployment).items() if key.board == ALL}


def test_a_board_whose_time_is_over_is_not_missed(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.clock.advance(4 * 86_400_000)
    deployment.client.unlink(deployment.board_key(DAILY))  # as Redis does at that time
    assert keeper.look() == []
    lane = deployment.topology.lane_of(DAILY)
    assert DAILY not in deployment.metas()[lane].boards
    assert deployment.metas()[lane].state is LaneState.READY


def test_a_lane_that_is_lost_while_it_is_looked_at_is_rebuilt_by_the_next_look(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.client.unlink(deployment.board_key(ALL))
    taken: list[str] = []

    def lose_it_then(operation: str, _: object) -> None:
        if operation == "PutItem" and not taken:  # the lease of the repair
            taken.append(operation)
            deployment.client.unlink(*deployment.keys())

    deployment.dynamodb.faults.before = lose_it_then
    keeper.look()
    assert taken == ["PutItem"]
    deployment.clock.advance(30_000)
    keeper.look()
    assert [meta.state for meta in deployment.metas()] == [LaneState.READY] * 2
    assert deployment.view([ALL]) == {ANN: truth(deployment)[ANN]}


# ---------------------------------------------------------------------- another log


def test_a_lane_of_another_log_waits_until_no_batch_of_it_can_write(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.log.recreate_topic(2)
    assert keeper.look() == []  # now it knows
    deployment.clock.advance(OLDER_LOG_MS - 1)
    assert keeper.look() == []
    deployment.clock.advance(1)
    assert reasons(keeper) == ["of another log"] * 2
    assert [(meta.ids, dict(meta.applied)) for meta in deployment.metas()] == [(deployment.ids, {0: 0, 1: 0})] * 2
    assert deployment.view([ALL, DAILY]) == truth(deployment)


def test_a_lane_that_was_lost_with_its_log_waits_too(deployment: Deployment) -> None:
    # A lost lane can't tell of which log it was.
    keeper = fed(deployment)
    deployment.log.recreate_topic(2)
    deployment.client.unlink(*deployment.keys())
    assert keeper.look() == []
    deployment.clock.advance(OLDER_LOG_MS)
    assert reasons(keeper) == ["lost"] * 2


def test_a_keeper_that_was_started_since_waits_too(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.log.recreate_topic(2)
    keeper.look()
    deployment.clock.advance(OLDER_LOG_MS - 1)
    later = deployment.keeper()
    assert later.look() == []
    deployment.clock.advance(1)
    assert len(later.look()) == 2


def test_a_batch_of_the_old_log_that_still_wrote_is_in_the_rebuilt_lane(deployment: Deployment) -> None:
    keeper = fed(deployment)
    process = deployment.updater()
    process.turns(2)
    deployment.submit({"match_id": "last", "player_id": "ann", "score": 999})

    def stall(step: str) -> None:
        if step == "decoded":
            deployment.log.recreate_topic(2)
            keeper.look()
            deployment.clock.advance(9_000)  # still within its deadline
            keeper.look()

    process.at = stall
    process.turn()
    assert deployment.rows()[ANN].score == 999
    deployment.clock.advance(OLDER_LOG_MS - 9_000)
    keeper.look()
    assert deployment.view([ALL, DAILY]) == truth(deployment)


# ---------------------------------------------------------------------- failures


def test_a_store_that_is_away_ends_a_look_and_not_the_keeper(deployment: Deployment) -> None:
    keeper = fed(deployment)
    deployment.redis.away = True
    with pytest.raises(StoreUnavailable):
        keeper.look()
    stopping = threading.Event()
    looks: list[str] = []

    def stop(name: str) -> None:
        looks.append(name)
        stopping.set()

    deployment.redis.before = stop
    keeper.run(stopping)
    assert looks
    deployment.redis.away = False
    assert keeper.look() == []


def test_failed_cures_are_repeated_ever_more_seldom(deployment: Deployment) -> None:
    keeper = deployment.keeper()
    keeper.look()
    deployment.client.unlink(*deployment.keys())
    deployment.dynamodb.faults.fail_calls("InternalFailure", times=1_000, operation="Query")
    began: list[int] = []

    def note(operation: str, _: object) -> None:
        if operation == "PutItem":
            began.append(deployment.clock.passed_ms)

    deployment.dynamodb.faults.before = note
    for _ in range(1_000):
        keeper.look()
        deployment.clock.advance(100)
    attempts = sorted(set(began))
    gaps = [after - before for before, after in pairwise(attempts)]
    assert gaps == sorted(gaps)
    assert gaps[-1] == 30_000


def test_another_holder_of_the_lease_is_given_way(deployment: Deployment) -> None:
    keeper = deployment.keeper()
    now_at = deployment.clock.now_at()
    assert deployment.catalogue.take_lease("lane-0", "somebody else", now_at, now_at + 5_000)
    assert [cure.lane for cure in keeper.look()] == [1]
    deployment.clock.advance(5_001)
    assert [cure.lane for cure in keeper.look()] == [0]


def test_it_says_loudly_and_once_that_redis_may_evict(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy()
    keeper = deployment.keeper()
    deployment.lanes.eviction_policy = lambda: "allkeys-lru"  # type: ignore[method-assign]
    with capture_logs() as said:
        keeper.look()
        keeper.look()
    assert [(one["log_level"], one["policy"]) for one in said if "policy" in one] == [("error", "allkeys-lru")]


@pytest.mark.parametrize("lacking", ["topology", "topic"])
def test_before_init_there_is_nothing_to_look_at(deployment: Deployment, lacking: str) -> None:
    if lacking == "topic":
        deployment.log.delete_topic()
    else:
        deployment.dynamodb.tables[deployment.settings.names.leaderboards].items.clear()
    with pytest.raises(StoreUnavailable, match="standings init"):
        deployment.keeper().look()
