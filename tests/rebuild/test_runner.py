"""One rebuild: nothing that arrives meanwhile is lost, and nobody but its runner may finish it."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from rebuild.leases import LEASE_MS, LeaseHeld
from rebuild.runner import Fenced, Runner
from rebuild.world import World, look
from schemas.errors import StoreUnavailable
from schemas.rows import RowKey
from stores.lanes import LaneState
from stores.log import Committed
from stores.registry import Registry
from tests.fakes.deployment import Deployment

ALL, DAILY = "main:all", "main:daily:2040-01-01"
ANN = RowKey(ALL, "ann")


@pytest.fixture
def one(deploy: Callable[..., Deployment]) -> Deployment:
    """One partition and one lane."""
    return deploy(partitions=1, lanes=1)


def world(deployment: Deployment) -> World:
    return look(Registry(deployment.catalogue), deployment.admin)


def runner(deployment: Deployment) -> Runner:
    return Runner(
        deployment.scorebook,
        deployment.catalogue,
        deployment.lanes,
        deployment.admin,
        deployment.clock.now_at,
        sleep=deployment.clock.sleep,
    )


def feed(deployment: Deployment, *scores: int, match: str = "m") -> None:
    for points in scores:
        deployment.submit({"match_id": f"{match}{points}", "player_id": "ann", "score": points})


def truth(deployment: Deployment) -> dict[RowKey, int]:
    return {key: row.packed for key, row in deployment.rows().items()}


def at_the_call(deployment: Deployment, name: str, then: Callable[[], None]) -> list[str]:
    """Let something happen once, ahead of the first call of this script."""
    done: list[str] = []

    def note(called: str) -> None:
        if called == name and not done:
            done.append(called)
            then()

    deployment.redis.before = note
    return done


def test_all_rows_of_all_shards_come_back(one: Deployment) -> None:
    updater = one.updater()
    rng = random.Random(1)
    for number in range(30):
        players = rng.sample(range(2_000), 100)
        results = [{"player_id": f"p{player}", "score": rng.randrange(1_000)} for player in players]
        one.submit({"match_id": f"m{number}", "results": results})
    updater.turns(4)
    one.dynamodb.page_size = 70
    found = runner(one).rebuild(0, world(one))
    assert found.rows == len(truth(one)) > 2_000
    assert one.view([ALL, DAILY]) == truth(one)


def test_s_is_what_was_committed_and_its_time(one: Deployment) -> None:
    updater = one.updater()
    feed(one, 1, 2, 3)
    updater.turns(2)
    one.clock.advance(60_000)
    runner(one).rebuild(0, world(one))
    meta = one.metas()[0]
    committed = one.admin.committed(one.ids.log_id)[0]
    assert (dict(meta.applied), meta.as_of) == ({0: 3}, committed.as_of)
    assert meta.as_of is not None


def test_where_nothing_is_committed_s_is_the_logs_start_never_its_end(one: Deployment) -> None:
    feed(one, 1, 2, 3)
    one.log.advance_start(0, 1)
    runner(one).rebuild(0, world(one))
    assert (dict(one.metas()[0].applied), one.metas()[0].as_of) == ({0: 1}, None)


def test_s_is_never_below_the_logs_start(one: Deployment) -> None:
    updater = one.updater()
    feed(one, 1)
    updater.turns(2)
    feed(one, 2, 3)
    one.log.advance_start(0, 2)
    runner(one).rebuild(0, world(one))
    assert dict(one.metas()[0].applied) == {0: 2}


@pytest.mark.parametrize("script", ["begin", "fill", "finish"])
def test_what_is_committed_while_it_runs_is_not_lost(one: Deployment, script: str) -> None:
    updater = one.updater()
    feed(one, 1, 2)
    updater.turns(2)

    def arrive() -> None:
        feed(one, 500)
        updater.turns(2)
        assert one.rows()[ANN].score == 500
        assert one.committed() == {0: 3}

    done = at_the_call(one, script, arrive)
    runner(one).rebuild(0, world(one))
    assert done == [script]
    assert dict(one.metas()[0].applied) == {0: 2}  # so that an updater that is further on hears BEHIND
    updater.turns(15)
    assert one.view([ALL, DAILY]) == truth(one)
    assert dict(one.metas()[0].applied) == {0: 3}


def test_no_row_is_read_before_s(one: Deployment) -> None:
    order: list[str] = []
    committed = one.admin.committed

    def note_s(log_id: str) -> dict[int, Committed]:
        order.append("S")
        return committed(log_id)

    def note_query(operation: str, _: object) -> None:
        if operation == "Query":
            order.append(operation)

    one.admin.committed = note_s  # type: ignore[method-assign]
    one.dynamodb.faults.before = note_query
    runner(one).rebuild(0, world(one))
    assert order[0] == "S"
    assert set(order[1:]) == {"Query"}


@pytest.mark.parametrize("script", ["begin", "fill", "finish"])
def test_a_runner_that_another_one_overtook_ends(one: Deployment, script: str) -> None:
    updater = one.updater()
    feed(one, 1, 2)
    updater.turns(2)

    def overtake() -> None:
        meta = one.lanes.read_meta(0)
        assert one.lanes.begin(0, "the other's", one.ids, 1, meta, [])

    at_the_call(one, script, overtake)
    with pytest.raises(Fenced):
        runner(one).rebuild(0, world(one))
    meta = one.metas()[0]
    assert (meta.state, meta.epoch, meta.seq) == (LaneState.REBUILDING, "the other's", 0)


@pytest.mark.parametrize("script", ["fill", "finish"])
def test_a_lane_that_is_lost_again_ends_its_runner(one: Deployment, script: str) -> None:
    updater = one.updater()
    feed(one, 1, 2)
    updater.turns(2)
    at_the_call(one, script, lambda: one.delete(one.keys()))
    with pytest.raises(Fenced):
        runner(one).rebuild(0, world(one))
    assert one.metas()[0].state is LaneState.LOST


def test_a_log_that_changed_meanwhile_ends_it_before_the_lane_is_ready(one: Deployment) -> None:
    done = at_the_call(one, "begin", lambda: one.log.recreate_topic(1))
    with pytest.raises(Fenced, match="the log changed"):
        runner(one).rebuild(0, world(one))
    assert done == ["begin"]
    assert one.metas()[0].state is LaneState.REBUILDING


@pytest.mark.parametrize("script", ["fill", "finish"])
def test_a_step_whose_reply_was_lost_is_sent_again(one: Deployment, script: str) -> None:
    updater = one.updater()
    feed(one, 1, 2)
    updater.turns(2)

    def lose() -> None:
        one.redis.lost_replies = 1

    assert at_the_call(one, script, lose) == []
    runner(one).rebuild(0, world(one))
    assert one.metas()[0].state is LaneState.READY
    assert one.view([ALL, DAILY]) == truth(one)


def test_a_scorebook_that_fails_leaves_no_ready_lane_and_gives_the_lease_back(one: Deployment) -> None:
    def refuse(operation: str, _request: object) -> None:
        if operation == "Query":
            raise StoreUnavailable("by the test")

    one.dynamodb.faults.before = refuse
    with pytest.raises(StoreUnavailable):
        runner(one).rebuild(0, world(one))
    one.dynamodb.faults.before = None
    assert one.metas()[0].state is LaneState.REBUILDING
    runner(one).rebuild(0, world(one))  # another runner, at once
    assert one.metas()[0].state is LaneState.READY


def test_one_runner_at_a_time_holds_a_lane(one: Deployment) -> None:
    refused: list[type] = []

    def try_too() -> None:
        with pytest.raises(LeaseHeld) as caught:
            runner(one).rebuild(0, world(one))
        refused.append(caught.type)

    at_the_call(one, "begin", try_too)
    runner(one).rebuild(0, world(one))
    assert refused == [LeaseHeld]
    assert one.metas()[0].state is LaneState.READY


def test_a_lease_that_ran_out_is_anybodys(one: Deployment) -> None:
    now_at = one.clock.now_at()
    assert one.catalogue.take_lease("lane-0", "a runner that died", now_at, now_at + 15_000)
    with pytest.raises(LeaseHeld):
        runner(one).rebuild(0, world(one))
    one.clock.advance(15_001)
    runner(one).rebuild(0, world(one))


def test_a_lease_that_cannot_be_prolonged_at_the_moment_ends_no_rebuild(one: Deployment) -> None:
    updater = one.updater()
    feed(one, 1, 2)
    updater.turns(2)

    def make_it_due() -> None:
        one.clock.advance(LEASE_MS)
        one.dynamodb.faults.time_out_calls(operation="PutItem")

    assert at_the_call(one, "fill", make_it_due) == []
    runner(one).rebuild(0, world(one))
    assert one.metas()[0].state is LaneState.READY
    assert one.view([ALL, DAILY]) == truth(one)


def test_expired_boards_and_rows_past_their_time_stay_gone(deploy: Callable[..., Deployment]) -> None:
    kept = {"order": "higher", "min": 0, "max": 1_000, "windows": ["all", "daily"], "durable_days": {"daily": 3}}
    deployment = deploy({"main": kept}, partitions=1, lanes=1)
    updater = deployment.updater()
    for day in ("2039-12-28", "2039-12-31"):
        deployment.submit({"match_id": day, "player_id": "ann", "score": 5, "ended_at": f"{day}T12:00:00Z"})
    updater.turns(2)
    assert RowKey("main:daily:2039-12-28", "ann") in deployment.rows()  # DynamoDB deletes late
    runner(deployment).rebuild(0, world(deployment))
    boards = ["main:daily:2039-12-28", "main:daily:2039-12-31", ALL]
    assert {board for board, _ in deployment.view(boards)} == {"main:daily:2039-12-31", ALL}


def test_the_next_windows_are_filled_too_because_an_event_may_be_minutes_ahead(one: Deployment) -> None:
    updater = one.updater()
    one.submit({"match_id": "m", "player_id": "ann", "score": 5, "ended_at": "2040-01-02T00:01:00Z"})
    updater.turns(2)
    runner(one).rebuild(0, world(one))
    assert RowKey("main:daily:2040-01-02", "ann") in one.view(["main:daily:2040-01-02"])


def test_foreign_entries_do_not_survive_it(one: Deployment) -> None:
    updater = one.updater()
    feed(one, 1, 2)
    runner(one).rebuild(0, world(one))
    updater.turns(3)
    one.client.zadd(one.board_key(ALL), {"mallory": 2**53 - 1})
    runner(one).rebuild(0, world(one))
    assert one.view([ALL, DAILY]) == truth(one)
