"""Step 3: whole ranges become visible in every lane, and no lane stops another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from schemas.rows import RowKey
from stores.lanes import Entries, LaneIds, Range
from tests.fakes.deployment import MAIN, Deployment
from tests.updater.events import batch, batch_of, decoded, match, score
from updater.project import MAX_ENTRIES, Projection

ALL, DAILY = "main:all", "main:daily:2040-01-01"
Call = tuple[int, list[tuple[int, int, int, int | None]], dict[str, dict[str, int]]]


def project(deployment: Deployment, these: Any) -> Projection:
    process = deployment.updater()
    return process.projector.project(these, process.recorder.record(these, deployment.topology), deployment.topology)


def overheard(deployment: Deployment) -> list[Call]:
    """What every call of project says from now on: lane, ranges, packed values by board and player."""
    calls: list[Call] = []
    pass_on = deployment.lanes.project

    def listen(lane: int, ids: LaneIds, ranges: list[Range], entries: Entries) -> Any:
        said = {board: dict(one.packed) for board, one in entries._boards.items()}
        calls.append((lane, [one[:4] for one in ranges], said))
        return pass_on(lane, ids, ranges, entries)

    deployment.lanes.project = listen  # type: ignore[assignment,method-assign]
    return calls


def test_every_lane_gets_every_range_also_without_entries(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy({"main": MAIN | {"windows": ["all"]}}, lanes=4)
    calls = overheard(deployment)
    project(deployment, batch(deployment, score("m1"), score("m2")))
    assert [(lane, ranges) for lane, ranges, _ in calls] == [
        (lane, [(0, 0, 1, None), (1, 0, 1, None)]) for lane in range(4)
    ]
    assert [lane for lane, _, said in calls if said] == [deployment.topology.lane_of(ALL)]
    assert [dict(meta.applied) for meta in deployment.metas()] == [{0: 1, 1: 1}] * 4


def test_the_view_shows_what_the_truth_has(deployment: Deployment) -> None:
    project(deployment, batch(deployment, match("m", {"ann": 3, "bob": 5}), score("n", 7)))
    assert deployment.view([ALL, DAILY]) == {key: row.packed for key, row in deployment.rows().items()}


def test_many_entries_are_split_by_offsets_and_each_portion_is_whole(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy({"main": MAIN | {"windows": ["all"]}}, partitions=1, lanes=1)
    calls = overheard(deployment)
    matches = [match(f"m{number}", {f"{number}-{player}": 1 for player in range(100)}) for number in range(6)]
    project(deployment, batch(deployment, *matches))
    assert [ranges for _, ranges, _ in calls] == [[(0, at, at + 2, None)] for at in (0, 2, 4)]
    assert [len(said[ALL]) for _, _, said in calls] == [200] * 3
    assert all(len(said[ALL]) <= MAX_ENTRIES for _, _, said in calls)


def test_a_single_event_above_the_bound_is_one_portion(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1, lanes=1)
    calls = overheard(deployment)
    project(deployment, batch(deployment, score("a"), match("b", {f"p{one}": 1 for one in range(200)}), score("c")))
    assert [ranges for _, ranges, _ in calls] == [[(0, 0, 1, None)], [(0, 1, 2, None)], [(0, 2, 3, None)]]


def test_a_row_that_two_portions_touch_is_in_both(deploy: Callable[..., Deployment]) -> None:
    # Else a lane that took the first portion alone would claim an event that it lacks.
    deployment = deploy({"main": MAIN | {"windows": ["all"]}}, partitions=1, lanes=1)
    calls = overheard(deployment)
    crowd = [match(f"m{number}", {f"{number}-{player}": 1 for player in range(130)}) for number in range(2)]
    project(deployment, batch(deployment, score("a", 9), crowd[0], crowd[1], score("z", 5)))
    packed = deployment.rows()[RowKey(ALL, "ann")].packed
    assert [said[ALL].get("ann") for _, _, said in calls] == [packed, packed]


def test_as_of_comes_with_the_last_portion_of_its_partition(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy({"main": MAIN | {"windows": ["all"]}}, partitions=1, lanes=1)
    calls = overheard(deployment)
    these = batch(deployment, *(match(f"m{one}", {f"{one}-{player}": 1 for player in range(200)}) for one in range(2)))
    evident = [these.ranges[0]._replace(as_of=7)]
    project(deployment, type(these)(these.decoded, evident, these.ids, these.deadline))
    assert [ranges[0][3] for _, ranges, _ in calls] == [None, 7]


def test_an_expired_board_stays_gone(deployment: Deployment) -> None:
    late = score("m", 3, ended_at="2039-12-28T23:59:59Z")  # kept for 3 days: until this day began
    project(deployment, batch(deployment, late))
    rows = deployment.rows()
    assert RowKey("main:daily:2039-12-28", "ann") in rows
    assert deployment.view([ALL, "main:daily:2039-12-28"]) == {RowKey(ALL, "ann"): rows[RowKey(ALL, "ann")].packed}


def test_a_board_lives_until_its_last_millisecond(deployment: Deployment) -> None:
    body = score("m", 3, ended_at="2039-12-29T00:00:00Z")
    deployment.clock.advance(2 * 60_000 - 1)  # its time is over at midnight
    project(deployment, batch(deployment, body))
    assert RowKey("main:daily:2039-12-29", "ann") in deployment.view(["main:daily:2039-12-29"])


def test_a_lost_lane_stops_no_other(deployment: Deployment) -> None:
    lost = deployment.topology.lane_of(DAILY)
    deployment.client.unlink(deployment.settings.names.lane(lost).meta)
    found = project(deployment, batch(deployment, score("m", 3)))
    assert (found.lost_lanes, found.behind, found.unreachable_lanes) == ({lost}, {}, set())
    assert deployment.metas()[1 - lost].applied[deployment_partition(deployment)] == 1


def test_a_lane_that_is_behind_stops_no_other_and_says_from_where(deployment: Deployment) -> None:
    project(deployment, batch(deployment, score("m", 1)))
    behind = deployment.topology.lane_of(DAILY)
    partition = deployment_partition(deployment)
    deployment.client.hset(deployment.settings.names.lane(behind).applied, partition, 0)
    deployment.submit(score("m", 1))
    found = project(deployment, batch_of(deployment, decoded(deployment)[1:]))
    assert found.behind == {partition: 0}
    assert [meta.applied[partition] for meta in deployment.metas()] == [2 * (lane != behind) for lane in range(2)]


def test_the_furthest_lane_decides_from_where_the_log_is_needed(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy(partitions=1, lanes=3)
    project(deployment, batch(deployment, *(score(f"m{one}") for one in range(5))))
    for lane, applied in enumerate((4, 2, 3)):
        deployment.client.hset(deployment.settings.names.lane(lane).applied, 0, applied)
    deployment.submit(score("m9"))
    assert project(deployment, batch_of(deployment, decoded(deployment)[5:])).behind == {0: 2}


def test_an_unreachable_redis_is_left_alone_for_a_second(deployment: Deployment) -> None:
    process = deployment.updater()
    these = batch(deployment, score("m", 3))
    recording = process.recorder.record(these, deployment.topology)
    deployment.redis.away = True
    asked: list[str] = []
    deployment.redis.before = asked.append
    for _ in range(3):
        found = process.projector.project(these, recording, deployment.topology)
        assert found.unreachable_lanes == {0, 1}
    assert asked == ["project", "project"]
    deployment.redis.away = False
    deployment.clock.advance(1_000)
    assert process.projector.project(these, recording, deployment.topology) == Projection()
    assert RowKey(ALL, "ann") in deployment.view([ALL])


def test_a_call_whose_reply_was_lost_may_be_repeated(deployment: Deployment) -> None:
    process = deployment.updater()
    these = batch(deployment, score("m", 3))
    recording = process.recorder.record(these, deployment.topology)
    deployment.redis.lost_replies = 2
    assert process.projector.project(these, recording, deployment.topology).unreachable_lanes == {0, 1}
    before = deployment.view([ALL, DAILY])
    deployment.clock.advance(1_000)
    process.projector.project(these, recording, deployment.topology)
    assert deployment.view([ALL, DAILY]) == before != {}


@pytest.mark.parametrize("ranges", [[], [Range(0, 0, 0)]])
def test_a_heartbeat_brings_no_entries(deployment: Deployment, ranges: list[Range]) -> None:
    calls = overheard(deployment)
    deployment.updater().projector.heartbeat(deployment.ids, ranges, deployment.topology)
    assert calls == [(lane, [(0, 0, 0, None)], {}) for lane in range(2 * len(ranges))]


def deployment_partition(deployment: Deployment) -> int:
    """Where the match `m` stands."""
    return next(one.record.partition for one in decoded(deployment))
