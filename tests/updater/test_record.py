"""Step 2: results become durable, once, whatever comes how often."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.errors import StoreUnavailable
from schemas.rows import Receipt, ReceiptKey, RowKey
from schemas.times import format_time
from stores.deadline import DeadlineMissed
from tests.fakes.deployment import START_AT, Deployment
from tests.updater.events import batch, batch_of, decoded, match, score
from updater.failpoints import Step
from updater.record import Recorder, Recording

ALL, DAILY = "main:all", "main:daily:2040-01-01"
ANN = RowKey(ALL, "ann")
EARLIER, LATER = format_time(START_AT - 2_000), format_time(START_AT - 1_000)


def record(deployment: Deployment, *bodies: dict[str, Any]) -> Recording:
    return deployment.updater().recorder.record(batch(deployment, *bodies), deployment.topology)


def project(deployment: Deployment, recording: Recording, *bodies: dict[str, Any]) -> None:
    deployment.updater().projector.project(batch(deployment, *bodies), recording, deployment.topology)


def best(deployment: Deployment, key: RowKey = ANN) -> int:
    return deployment.rows()[key].score


def test_a_match_makes_a_row_on_every_board_and_one_receipt(deployment: Deployment) -> None:
    found = record(deployment, match("m", {"ann": 3, "bob": 5}, ended_at=EARLIER))
    assert {key: row.score for key, row in deployment.rows().items()} == {
        RowKey(board, player): points for board in (ALL, DAILY) for player, points in (("ann", 3), ("bob", 5))
    }
    key = ReceiptKey("m", "main#*")
    assert deployment.receipts() == [Receipt(key, {"ann": 3, "bob": 5}, START_AT - 2_000, True, START_AT)]
    assert (found.applied, found.repeats, found.written_rows) == (1, 0, 4)


def test_a_repeat_in_the_same_batch_changes_nothing(deployment: Deployment) -> None:
    found = record(deployment, match("m", {"ann": 3, "bob": 5}), match("m", {"bob": 5, "ann": 3}))
    assert (found.applied, found.repeats, found.conflicts) == (1, 1, [])
    assert len(deployment.receipts()) == 1


def test_a_repeat_in_a_later_batch_writes_nothing_durable(deployment: Deployment) -> None:
    record(deployment, score("m", 3))
    writes = deployment.dynamodb.faults.calls["BatchExecuteStatement"]
    found = record(deployment, score("m", 3))
    assert (found.applied, found.repeats) == (0, 2)
    assert deployment.dynamodb.faults.calls["BatchExecuteStatement"] == writes


@pytest.mark.parametrize("apart", [False, True])
def test_the_first_report_of_a_match_stays_and_a_conflict_is_a_dead_letter(
    deployment: Deployment, *, apart: bool
) -> None:
    bodies = [score("m", 3), score("m", 9), score("m", 3)]
    if apart:
        record(deployment, bodies.pop(0))
    found = record(deployment, *bodies)
    assert [(one.reason, one.record.offset) for one in found.conflicts] == [("match-conflict", 1)]
    assert best(deployment) == 3


def test_another_explicit_time_is_a_conflict_and_a_filled_in_one_is_not(deployment: Deployment) -> None:
    found = record(deployment, score("m", ended_at=EARLIER), score("m"), score("m", ended_at=LATER))
    assert [one.record.offset for one in found.conflicts] == [2]
    assert deployment.rows()[ANN].achieved_at == START_AT - 2_000


def test_where_the_first_had_no_time_a_later_explicit_one_is_a_repeat(deployment: Deployment) -> None:
    found = record(deployment, score("m"), score("m", ended_at=EARLIER))
    assert (found.repeats, found.conflicts) == (1, [])
    assert deployment.rows()[ANN].achieved_at == START_AT


def test_a_match_reported_whole_and_player_by_player_are_two_reports(deployment: Deployment) -> None:
    found = record(deployment, match("m", {"ann": 3}), score("m", 4))
    assert (found.applied, found.conflicts, best(deployment)) == (2, [], 4)


def test_receipts_come_after_all_rows(deployment: Deployment) -> None:
    tables: list[str] = []

    def note(operation: str, request: dict[str, Any]) -> None:
        if operation == "BatchExecuteStatement":
            tables.extend(one["Statement"].split('"')[1].rpartition("-")[2] for one in request["Statements"])

    deployment.dynamodb.faults.before = note
    record(deployment, *(match(f"m{number}", {f"p{player}": 1 for player in range(20)}) for number in range(3)))
    assert tables == ["scores"] * 40 + ["matches"] * 3


def test_a_crash_between_rows_and_receipts_repeats_harmlessly(deployment: Deployment) -> None:
    class Killed(BaseException):
        pass

    def die(step: Step) -> None:
        if step is Step.ROWS_WRITTEN:
            raise Killed

    these = batch(deployment, score("m", 3), score("n", 5))
    with pytest.raises(Killed):
        Recorder(deployment.scorebook, deployment.lanes, deployment.clock.now_at, die).record(
            these, deployment.topology
        )
    rows = deployment.rows()
    assert (best(deployment), deployment.receipts()) == (5, [])
    found = record(deployment)
    assert (deployment.rows(), len(deployment.receipts()), found.applied) == (rows, 2, 2)


def test_a_batch_holds_one_candidate_for_a_row_the_best(deployment: Deployment) -> None:
    found = record(
        deployment, score("a", 3), score("b", 5, ended_at=LATER), score("c", 5, ended_at=EARLIER), score("d", 1)
    )
    assert found.written_rows == 2
    assert (best(deployment), deployment.rows()[ANN].match_id) == (5, "c")


def test_equal_scores_of_one_instant_keep_the_smaller_match_id_in_any_order(deployment: Deployment) -> None:
    record(deployment, score("b", ended_at=EARLIER), score("c", ended_at=EARLIER))
    record(deployment, score("a", ended_at=EARLIER))
    assert deployment.rows()[ANN].match_id == "a"


def test_what_is_below_the_view_is_not_written_and_stays_among_the_entries(deployment: Deployment) -> None:
    project(deployment, record(deployment, score("a", 9)))
    alone = batch_of(deployment, decoded_after(deployment, score("b", 5)))
    found = deployment.updater().recorder.record(alone, deployment.topology)
    assert (found.prefiltered_rows, found.written_rows, best(deployment)) == (2, 0, 9)
    assert found.images[ANN] == packed_of(deployment, 5)
    assert [list(rows) for _, rows in found.touched] == [[ANN, RowKey(DAILY, "ann")]]


@pytest.mark.parametrize("change", [{"log_id": "other"}, {"truth_id": "other"}, {"topology": "9/9"}])
def test_a_lane_under_other_ids_is_never_compared_with(deployment: Deployment, change: dict[str, str]) -> None:
    project(deployment, record(deployment, score("a", 9)))
    alone = decoded_after(deployment, score("b", 5))
    found = deployment.updater().recorder.record(
        batch_of(deployment, alone, ids=deployment.ids._replace(**change)), deployment.topology
    )
    assert (found.prefiltered_rows, best(deployment)) == (0, 9)


def test_a_lane_that_is_not_ready_is_never_compared_with(deployment: Deployment) -> None:
    project(deployment, record(deployment, score("a", 9)))
    for lane, meta in enumerate(deployment.metas()):
        assert deployment.lanes.begin(lane, "e", deployment.ids, 2, meta, [])
    alone = decoded_after(deployment, score("b", 5))
    found = deployment.updater().recorder.record(batch_of(deployment, alone), deployment.topology)
    assert found.prefiltered_rows == 0


def test_redis_being_away_stops_no_recording(deployment: Deployment) -> None:
    deployment.redis.away = True
    assert record(deployment, score("m", 3)).applied == 1
    assert best(deployment) == 3


def test_an_equal_packed_value_is_written_for_the_tie_may_fall_to_it(deployment: Deployment) -> None:
    project(deployment, record(deployment, score("b", 5, ended_at=EARLIER)))
    alone = decoded_after(deployment, score("a", 5, ended_at=EARLIER))
    found = deployment.updater().recorder.record(batch_of(deployment, alone), deployment.topology)
    assert (found.prefiltered_rows, deployment.rows()[ANN].match_id) == (0, "a")


def test_a_refused_candidate_is_projected_from_the_row_that_refused_it(deployment: Deployment) -> None:
    record(deployment, score("a", 9))
    alone = decoded_after(deployment, score("b", 5))
    found = deployment.updater().recorder.record(batch_of(deployment, alone), deployment.topology)
    assert found.images[ANN] == deployment.rows()[ANN].packed


def test_a_repeat_is_projected_from_the_scorebooks_row(deployment: Deployment) -> None:
    record(deployment, score("a", 3), score("b", 9))
    again = [one for one in decoded(deployment) if one.record.key == b"a"]
    found = deployment.updater().recorder.record(batch_of(deployment, again), deployment.topology)
    assert (found.repeats, found.images[ANN]) == (1, deployment.rows()[ANN].packed)
    assert [list(rows) for _, rows in found.touched] == [[ANN, RowKey(DAILY, "ann")]]


@pytest.mark.parametrize(("mine", "conflicts", "repeats"), [(9, 1, 0), (3, 0, 1)])
def test_who_loses_the_race_for_a_receipt_repeats_or_contradicts_what_won(
    deployment: Deployment, mine: int, conflicts: int, repeats: int
) -> None:
    theirs = Receipt(ReceiptKey("m", "main#=ann"), {"ann": 3}, START_AT, False, START_AT)
    these = batch(deployment, score("m", mine))

    def be_quicker(step: Step) -> None:
        assert step is Step.ROWS_WRITTEN
        deployment.scorebook.insert_receipts([theirs], these.deadline)

    recorder = Recorder(deployment.scorebook, deployment.lanes, deployment.clock.now_at, be_quicker)
    found = recorder.record(these, deployment.topology)
    assert (len(found.conflicts), found.repeats, found.applied) == (conflicts, repeats, 0)
    assert deployment.receipts() == [theirs]
    assert found.images[ANN] == deployment.rows()[ANN].packed


def test_a_late_event_of_an_expired_board_is_recorded(deployment: Deployment) -> None:
    record(deployment, score("m", 3, ended_at="2039-01-01T00:00:00Z"))
    assert RowKey("main:daily:2039-01-01", "ann") in deployment.rows()


def test_nothing_is_written_once_the_deadline_is_over(deployment: Deployment) -> None:
    these = batch(deployment, score("m", 3))
    deployment.clock.advance(deployment.settings.deadline_ms)
    with pytest.raises(DeadlineMissed):
        deployment.updater().recorder.record(these, deployment.topology)
    assert (deployment.rows(), deployment.receipts()) == ({}, [])


def test_throttles_are_waited_out_within_the_deadline(deployment: Deployment) -> None:
    deployment.dynamodb.faults.fail_statements(times=5)
    assert record(deployment, score("m", 3)).applied == 1
    assert best(deployment) == 3


def test_a_scorebook_that_is_away_leaves_no_receipt(deployment: Deployment) -> None:
    deployment.dynamodb.faults.fail_calls("InternalFailure", operation="BatchExecuteStatement")
    with pytest.raises(StoreUnavailable):
        record(deployment, score("m", 3))
    assert deployment.receipts() == []


def packed_of(deployment: Deployment, points: int) -> int:
    """The packed value of so many points now, on the board of all time."""
    board = next(one for one in deployment.leaderboards["main"].boards_at(START_AT) if one.name == ALL)
    return board.codec.pack(points, START_AT)


def decoded_after(deployment: Deployment, body: dict[str, Any]) -> Any:
    """The event of this body alone, decoded."""
    deployment.submit(body)
    return [one for one in decoded(deployment) if one.record.key == body["match_id"].encode()]
