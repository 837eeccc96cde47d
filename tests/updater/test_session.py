"""An updater's life in its group: takeovers, heartbeats, rewinds, outages, rebalances, another log."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from schemas.rows import RowKey
from stores.deadline import DeadlineMissed
from stores.lanes import Entries, LaneIds, Range
from stores.log import LogChanged
from tests.fakes.deployment import START_AT, Deployment, UpdaterProcess
from tests.updater.events import score
from updater.failpoints import Step

ALL = "main:all"
ANN = RowKey(ALL, "ann")
D_MS = 10_000


@pytest.fixture
def one(deploy: Callable[..., Deployment]) -> Deployment:
    """One partition and one lane."""
    return deploy(partitions=1, lanes=1)


def joined(deployment: Deployment) -> UpdaterProcess:
    process = deployment.updater()
    process.turns(2)
    assert process.session is not None
    return process


def heard(deployment: Deployment) -> list[list[Range]]:
    """The ranges of every call of project from now on."""
    calls: list[list[Range]] = []
    pass_on = deployment.lanes.project

    def listen(lane: int, ids: LaneIds, ranges: list[Range], entries: Entries) -> Any:
        calls.append([Range(*one[:4]) for one in ranges])
        return pass_on(lane, ids, ranges, entries)

    deployment.lanes.project = listen  # type: ignore[assignment,method-assign]
    return calls


def batches(process: UpdaterProcess) -> list[int]:
    """How many rows each batch from now on was recorded with."""
    sizes: list[int] = []
    record = process.recorder.record

    def listen(batch: Any, topology: Any) -> Any:
        sizes.append(sum(one.rows for one in batch.decoded))
        return record(batch, topology)

    process.recorder.record = listen  # type: ignore[method-assign]
    return sizes


# ---------------------------------------------------------------------- heartbeats


def test_a_heartbeat_comes_with_the_assignment_and_each_second(one: Deployment) -> None:
    calls = heard(one)
    process = one.updater()
    process.turn()
    assert [call[0][:3] for call in calls] == [(0, 0, 0)]
    assigned_ms = one.clock.passed_ms
    times_ms: list[int] = []
    for _ in range(35):  # each takes a tenth of a second
        before = len(calls)
        process.turn()
        if len(calls) > before:
            times_ms.append(one.clock.passed_ms - assigned_ms)
    assert times_ms == [1_000, 2_000, 3_000]


def test_a_heartbeat_shows_all_owned_partitions_where_they_stand(deployment: Deployment) -> None:
    process = joined(deployment)
    for number in range(1, 6):
        deployment.submit(score(f"m{number}"))
    process.turn()
    applied = deployment.metas()[0].applied
    calls = heard(deployment)
    process.turns(11)
    assert [[range_[:3] for range_ in call] for call in calls] == [
        [(partition, applied[partition], applied[partition]) for partition in (0, 1)]
    ] * 2


def test_as_of_moves_on_at_the_logs_end_less_the_clocks_skew(one: Deployment) -> None:
    process = joined(one)
    process.turns(2)  # an end is evident once something was fetched
    one.clock.advance(1_000)
    calls = heard(one)
    process.turn()
    assert [call[0].as_of for call in calls] == [one.clock.now_at() - 500]
    assert one.metas()[0].as_of == one.clock.now_at() - 500


def test_as_of_stands_while_the_log_cannot_show_its_end(one: Deployment) -> None:
    process = joined(one)
    process.turns(12)
    before = one.metas()[0].as_of
    one.log.available = False  # polls are empty, as at the log's end
    process.turns(50)
    assert one.metas()[0].as_of == before
    one.log.available = True
    process.turns(50)
    assert before is not None
    assert before + 5_000 < (one.metas()[0].as_of or 0) <= one.clock.now_at() - 500


def test_as_of_is_unknown_while_records_wait(one: Deployment) -> None:
    process = joined(one)
    process.turns(2)
    one.log.topics[one.settings.names.events].append_time = False
    before = one.metas()[0].as_of
    calls = heard(one)
    one.submit(score("m"), timestamp=START_AT)
    one.clock.advance(1_000)
    assert process.consumer is not None
    process.consumer.pause()  # the record is there, and not yet fetched
    process.turn()
    assert [call[0].as_of for call in calls] == [None]
    assert one.metas()[0].as_of == before


@pytest.mark.parametrize(("append_time", "as_of"), [(True, START_AT + 5_000 - 500), (False, None)])
def test_a_records_own_time_counts_only_where_the_log_set_it(
    deploy: Callable[..., Deployment], as_of: int | None, *, append_time: bool
) -> None:
    deployment = deploy(partitions=1, lanes=1, append_time=append_time)
    process = joined(deployment)
    process.turns(1)
    calls = heard(deployment)
    deployment.clock.passed_ms = 5_000
    deployment.submit(score("m"), timestamp=START_AT + 5_000)
    process.turn()
    assert calls[0] == [Range(0, 0, 1, as_of)]


def test_a_heartbeat_passes_over_what_holds_no_records(one: Deployment) -> None:
    process = joined(one)
    one.log.leave_gap(0, 3)
    process.turns(12)
    assert one.metas()[0].applied == {0: 3}


# ---------------------------------------------------------------------- rewinds


def test_a_lane_that_is_behind_gets_the_log_again(deployment: Deployment) -> None:
    process = joined(deployment)
    for number in range(6):
        deployment.submit(score(f"m{number}", number))
    process.turns(2)
    truth = {key: row.packed for key, row in deployment.rows().items()}
    for lane, meta in enumerate(deployment.metas()):
        keys = deployment.settings.names.lane(lane)
        # Rolled back to the start, as a server that comes back from an old dump.
        deployment.client.hset(keys.applied, mapping=dict.fromkeys(meta.applied, 0))
        for board in meta.boards:
            deployment.client.zadd(keys.board(board), {"ann": 0})
    process.turns(15)
    assert deployment.view({board for board, _ in truth}) == truth
    assert process.session is not None


def test_the_log_is_replayed_from_where_the_furthest_lane_stands(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1, lanes=3)
    process = joined(deployment)
    for number in range(6):
        deployment.submit(score(f"m{number}", number))
    process.turn()
    for lane, applied in enumerate((4, 2, 5)):
        deployment.client.hset(deployment.settings.names.lane(lane).applied, 0, applied)
    calls = heard(deployment)
    process.turns(12)
    replayed = [call[0][:3] for call in calls if call[0].next > call[0].first]
    assert replayed == [(0, 2, 6)] * 3
    assert [dict(meta.applied) for meta in deployment.metas()] == [{0: 6}] * 3
    assert deployment.committed() == {0: 6}


def test_what_the_log_no_longer_has_is_not_replayed(one: Deployment) -> None:
    process = joined(one)
    for number in range(6):
        one.submit(score(f"m{number}", number))
    process.turn()
    one.client.hset(one.settings.names.lane(0).applied, 0, 2)
    one.log.advance_start(0, 3)
    process.turns(12)
    assert one.metas()[0].applied == {0: 2}  # for the keeper to rebuild
    assert process.consumer is not None
    assert process.consumer.position(0) == 6


def test_a_replay_that_begins_in_the_middle_of_a_fetch_takes_the_rest_of_it_up_again(
    deploy: Callable[..., Deployment],
) -> None:
    deployment = deploy(partitions=2, lanes=1, batch_rows=2)
    process = joined(deployment)
    for number in range(8):
        deployment.submit(score(f"m{number}", number))
    deployment.client.hset(deployment.settings.names.lane(0).applied, mapping={"0": 0, "1": 0})
    disturbed: list[Step] = []

    def roll_back_once(step: Step) -> None:
        if step is Step.RECORDED and len(disturbed) < 2:
            disturbed.append(step)
            deployment.client.hset(deployment.settings.names.lane(0).applied, mapping={"0": 0, "1": 0})

    process.at = roll_back_once
    process.turns(15)
    truth = {key: row.packed for key, row in deployment.rows().items()}
    assert len(deployment.receipts()) == 8
    assert deployment.view({board for board, _ in truth}) == truth


# ---------------------------------------------------------------------- another log


def test_a_topic_that_was_made_anew_ends_the_work_on_the_old_one(one: Deployment) -> None:
    process = joined(one)
    one.log.recreate_topic(1)
    one.clock.advance(1_000)
    assert process.session is not None
    with pytest.raises(LogChanged):
        process.session.turn()


def test_records_of_a_topic_that_is_gone_are_not_recorded(one: Deployment) -> None:
    process = joined(one)
    one.log.recreate_topic(1)
    one.submit(score("m"))  # the old consumer would take it for the old log's
    assert process.session is not None
    with pytest.raises(LogChanged):
        process.session.turn()
    assert one.rows() == {}


def test_a_deleted_topic_ends_the_work_too(one: Deployment) -> None:
    process = joined(one)
    one.log.delete_topic()
    one.clock.advance(1_000)
    assert process.session is not None
    with pytest.raises(LogChanged):
        process.session.turn()


# ---------------------------------------------------------------------- deadlines and outages


def test_a_batch_that_missed_its_deadline_is_fetched_again_and_halved(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1, lanes=1, batch_rows=16)
    process = joined(deployment)
    sizes = batches(process)
    stalled: list[Step] = []

    def stall_once(step: Step) -> None:
        if step is Step.DECODED and not stalled:
            stalled.append(step)
            deployment.clock.advance(D_MS)

    process.at = stall_once
    for number in range(8):
        deployment.submit(score(f"m{number}", number))
    process.turn()
    assert (deployment.rows(), deployment.committed()) == ({}, {})
    process.turn()
    assert sizes == [16, 8, 8]
    assert deployment.committed() == {0: 8}
    assert deployment.rows()[ANN].score == 7


def test_each_batch_of_a_poll_has_the_whole_deadline(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1, lanes=1, batch_rows=4)
    process = joined(deployment)
    sizes = batches(process)

    def take_long(step: Step) -> None:
        if step is Step.COMMITTED:
            deployment.clock.advance(D_MS * 3 // 5)

    process.at = take_long
    for number in range(8):
        deployment.submit(score(f"m{number}", number))
    process.turn()
    assert sizes == [4, 4, 4, 4]
    assert deployment.committed() == {0: 8}


def test_a_stopped_process_writes_nothing_when_it_goes_on(one: Deployment) -> None:
    process = joined(one)
    one.submit(score("m"))

    def stop(step: Step) -> None:
        if step is Step.ROWS_WRITTEN:
            one.clock.advance(D_MS)

    process.at = stop
    process.turn()
    assert (len(one.rows()), one.receipts(), one.committed()) == (2, [], {})


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchExecuteStatement"])
def test_an_outage_pauses_skips_nothing_and_dead_letters_nothing(one: Deployment, operation: str) -> None:
    process = joined(one)
    times_ms: list[int] = []

    def note(called: str, _: object) -> None:
        if called == operation:
            times_ms.append(one.clock.passed_ms)

    one.dynamodb.faults.before = note
    one.dynamodb.faults.fail_calls("InternalFailure", times=7, operation=operation)
    for number in range(200):
        one.submit(score("m" if number == 0 else "n", 3))
        process.turn()
    assert {receipt.key.match_id for receipt in one.receipts()} == {"m", "n"}
    assert (one.committed(), one.letters()) == ({0: 200}, [])
    # The pauses double from a tenth of a second up to three: no store that gets up again is hammered.
    assert [after - before for before, after in pairwise(times_ms[:8])] == [
        100, 200, 400, 800, 1_600, 3_000, 3_000,
    ]  # fmt: skip


def test_an_outage_keeps_the_membership(one: Deployment) -> None:
    process = joined(one)
    consumer, generation = process.consumer, process.consumer.generation  # type: ignore[union-attr]
    one.dynamodb.faults.fail_calls("InternalFailure", times=1_000)
    one.submit(score("m", 3))
    process.turns(100)
    assert process.consumer is consumer
    assert consumer is not None
    assert consumer.generation == generation
    assert consumer.assignment() == {0}


def test_partitions_that_come_during_an_outage_are_taken_over_after_it(deployment: Deployment) -> None:
    first, second = joined(deployment), deployment.updater()
    for _ in range(4):
        second.turn()
        first.turn()
    assert {len(process.consumer.assignment()) for process in (first, second) if process.consumer} == {1}
    for number in range(6):
        deployment.submit(score(f"m{number}", number))
    deployment.dynamodb.faults.fail_calls("InternalFailure", times=4)
    first.turns(2)
    second.die()
    second.leave()
    first.turns(100)
    assert len(deployment.receipts()) == 6
    assert sum(deployment.committed().values()) == 6


def test_records_that_come_before_a_takeover_that_failed_are_not_lost(one: Deployment) -> None:
    # The catalogue is throttled for so long that reading it misses its own deadline, which pauses nothing.
    one.submit(score("m", 3))
    process = one.updater()
    process.turn()
    one.clock.advance(10_000)
    registry = process.registry
    reread = registry.reread
    failures = [0]

    def throttled() -> None:
        if failures[0] < 2:
            failures[0] += 1
            raise DeadlineMissed("the catalogue is throttled")
        reread()

    registry.reread = throttled  # type: ignore[method-assign]
    process.turns(10)
    assert failures == [2]
    assert one.committed() == {0: 1}
    assert ANN in one.rows()


# ---------------------------------------------------------------------- rebalances


def test_positions_are_learned_anew_when_partitions_come_back(deployment: Deployment) -> None:
    first, second = joined(deployment), deployment.updater()
    for number in range(8):
        deployment.submit(score(f"a{number}", number))
    first.turns(2)
    for _ in range(4):
        second.turn()
        first.turn()
    for number in range(8):
        deployment.submit(score(f"b{number}", number))
    second.turns(3)  # it moves on in what was the first one's
    second.leave()
    committed = deployment.committed()
    first.turns(4)
    assert len(deployment.receipts()) == 16
    assert all(deployment.committed()[partition] >= offset for partition, offset in committed.items())
    assert [dict(meta.applied) for meta in deployment.metas()] == [deployment.committed()] * 2


def test_two_updaters_share_the_work_and_lose_nothing(deployment: Deployment) -> None:
    processes = [deployment.updater(), deployment.updater()]
    for number in range(40):
        deployment.submit(score(f"m{number}", number))
        for process in processes:
            process.turn()
    for process in processes:
        process.turns(15)
    assert len(deployment.receipts()) == 40
    truth = {key: row.packed for key, row in deployment.rows().items()}
    assert deployment.view({board for board, _ in truth}) == truth


def test_a_zombies_commit_is_refused_and_harms_nobody(deployment: Deployment) -> None:
    zombie, heir = joined(deployment), deployment.updater()
    for number in range(6):
        deployment.submit(score(f"m{number}", number))

    def sleep(step: Step) -> None:
        if step is Step.ROWS_WRITTEN:
            assert zombie.consumer is not None
            zombie.consumer.vanish()
            for number in range(6):
                deployment.submit(score(f"m{number}", number))
            heir.turns(4)
            assert sum(deployment.committed().values()) == 12

    zombie.at = sleep
    zombie.turn()
    assert sum(deployment.committed().values()) == 12
    assert len(deployment.receipts()) == 6


# ---------------------------------------------------------------------- a log that lost its start


def test_the_work_goes_on_at_the_start_of_a_log_that_dropped_records(one: Deployment) -> None:
    process = joined(one)
    for number in range(6):
        one.submit(score(f"m{number}", number))
    one.log.advance_start(0, 4)
    calls = heard(one)
    process.turn()
    assert [receipt.key.match_id for receipt in one.receipts()] == ["m4", "m5"]
    assert calls[0][0][:3] == (0, 4, 6)  # it claims no record that it never saw
    assert one.committed() == {0: 6}
    assert one.metas()[0].applied == {0: 0}  # for the keeper


def test_a_log_that_dropped_all_its_records_is_no_progress_of_the_lanes(one: Deployment) -> None:
    process = joined(one)
    one.submit(score("m"))
    one.log.advance_start(0, 1)
    process.turns(12)
    assert one.metas()[0].applied == {0: 0}


def test_a_gap_is_no_loss(one: Deployment) -> None:
    process = joined(one)
    one.log.leave_gap(0, 2)
    one.submit(score("m"))
    calls = heard(one)
    process.turn()
    assert calls[0][0][:3] == (0, 0, 3)
    assert one.metas()[0].applied == {0: 3}
