"""The four steps in their order, and nothing committed that is not done."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.errors import StoreUnavailable
from schemas.rows import RowKey
from stores.log import Committed
from tests.fakes.deployment import Deployment, UpdaterProcess
from tests.updater.events import batch, batch_of, decoded, score
from updater.failpoints import Step

ALL = "main:all"
ANN = RowKey(ALL, "ann")


@pytest.fixture
def process(deployment: Deployment) -> UpdaterProcess:
    """An updater that owns both partitions and has read nothing yet."""
    found = deployment.updater()
    found.turns(2)
    assert found.consumer is not None
    assert found.consumer.assignment() == {0, 1}
    return found


def run(deployment: Deployment, process: UpdaterProcess, these: Any, committed: dict[int, int] | None = None) -> None:
    assert process.consumer is not None
    process.pipeline.run(these, deployment.topology, process.consumer, committed or {})


def test_the_steps_come_in_their_order(deployment: Deployment, process: UpdaterProcess) -> None:
    seen: list[tuple[Step, bool, bool, int, bool, int]] = []

    def look(step: Step) -> None:
        visible = ANN in deployment.view([ALL])
        durable = ANN in deployment.rows()
        seen.append(
            (
                step,
                durable,
                bool(deployment.receipts()),
                len(deployment.letters()),
                visible,
                len(deployment.committed()),
            )
        )

    deployment.submit(score("m", 3))
    deployment.append(b"m", b"{")
    process.at = look
    process.turn()
    assert seen == [
        # step, row, receipt, dead letters, in the view, committed partitions
        (Step.DECODED, False, False, 0, False, 0),
        (Step.ROWS_WRITTEN, True, False, 0, False, 0),
        (Step.RECORDED, True, True, 0, False, 0),
        (Step.DEAD_LETTERED, True, True, 1, False, 0),
        (Step.PROJECTED, True, True, 1, True, 0),
        (Step.COMMITTED, True, True, 1, True, 1),
    ]


@pytest.mark.parametrize("operation", ["BatchGetItem", "BatchExecuteStatement"])
def test_nothing_is_committed_while_the_scorebook_is_away(
    deployment: Deployment, process: UpdaterProcess, operation: str
) -> None:
    deployment.dynamodb.faults.fail_calls("InternalFailure", operation=operation)
    with pytest.raises(StoreUnavailable):
        run(deployment, process, batch(deployment, score("m", 3)))
    assert (deployment.committed(), deployment.view([ALL])) == ({}, {})


def test_nothing_is_committed_while_a_dead_letter_is_not_durable(
    deployment: Deployment, process: UpdaterProcess
) -> None:
    deployment.append(b"m", b"{")
    deployment.log.lose_acknowledgements()
    with pytest.raises(StoreUnavailable):
        run(deployment, process, batch(deployment, score("m", 3)))
    assert (deployment.committed(), deployment.view([ALL])) == ({}, {})


def test_redis_being_away_stops_neither_recording_nor_committing(
    deployment: Deployment, process: UpdaterProcess
) -> None:
    deployment.redis.away = True
    run(deployment, process, batch(deployment, score("m", 3)))
    assert (list(deployment.committed().values()), ANN in deployment.rows()) == ([1], True)


def test_what_is_committed_says_up_to_when_the_log_was_recorded(
    deployment: Deployment, process: UpdaterProcess
) -> None:
    these = batch(deployment, score("m", 3))
    these = type(these)(these.decoded, [these.ranges[0]._replace(as_of=77)], these.ids, these.deadline)
    run(deployment, process, these)
    assert list(deployment.admin.committed(deployment.ids.log_id).values()) == [Committed(1, 77)]


def test_a_replay_never_commits_backwards(deployment: Deployment, process: UpdaterProcess) -> None:
    for points in range(3):
        deployment.submit(score("m", points))
    found = decoded(deployment)
    partition = found[0].record.partition
    run(deployment, process, batch_of(deployment, found))
    assert deployment.committed() == {partition: 3}
    run(deployment, process, batch_of(deployment, found[:1]), {partition: 3})
    assert deployment.committed() == {partition: 3}


def test_outcomes_are_counted(deployment: Deployment, process: UpdaterProcess) -> None:
    deployment.append(b"m", b"{")
    run(deployment, process, batch(deployment, score("m", 3), score("m", 3), score("m", 4)))

    def counted(name: str, **labels: str) -> float | None:
        return process.metrics.registry.get_sample_value(f"standings_updater_{name}_total", labels)

    assert counted("events", outcome="applied") == 1
    assert counted("events", outcome="repeat") == 1
    assert counted("dead_letters", reason="match-conflict") == 1
    assert counted("dead_letters", reason="invalid-json") == 1
    assert counted("rows", outcome="written") == 2
