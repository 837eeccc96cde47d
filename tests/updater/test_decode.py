"""Step 1: what a record is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from schemas.times import DAY_MS, MINUTE_MS, format_time
from stores.log import Record
from tests.fakes.deployment import MAIN, START_AT, Deployment
from tests.updater.events import decoded, match, reasons, score
from updater.batch import DeadLetter, Decoded
from updater.decode import Decoder

AHEAD_MS = 5 * MINUTE_MS


def record(body: Any, *, key: bytes | None = b"m", appended: bool = True) -> Record:
    value = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    return Record(0, 7, START_AT, appended, key, value)


def outcome(deployment: Deployment, one: Record) -> Any:
    return decoded(deployment, [one])[0].outcome


@pytest.mark.parametrize("value", [b"", None, b"{", b"\xff", b'{"match_id": NaN}'])
def test_what_is_no_json_is_a_dead_letter(deployment: Deployment, value: bytes | None) -> None:
    assert outcome(deployment, record(value)).reason == "invalid-json"


@pytest.mark.parametrize("points", [1_001, -1, True, "1", 1.0, None])
def test_a_score_that_the_leaderboard_refuses_is_a_dead_letter(deployment: Deployment, points: Any) -> None:
    found = outcome(deployment, record(score("m", points)))
    assert (found.reason, found.detail.split(":")[0]) == ("invalid-request", "/score")


def test_a_body_that_is_no_object_is_a_dead_letter(deployment: Deployment) -> None:
    assert outcome(deployment, record([1])).reason == "invalid-request"


def test_one_bad_record_leaves_its_neighbours_alone(deployment: Deployment) -> None:
    found = decoded(deployment, [record(score("m")), record(b"{"), record(match("m", {"ann": 1}))])
    assert [isinstance(one.outcome, DeadLetter) for one in found] == [False, True, False]


@pytest.mark.parametrize("key", [None, b"", b"n", b"M", b"m "])
def test_a_record_under_another_key_than_its_match_id_is_a_dead_letter(
    deployment: Deployment, key: bytes | None
) -> None:
    assert outcome(deployment, record(score("m"), key=key)).reason == "invalid-key"


def test_the_key_is_the_match_id_in_utf_8(deployment: Deployment) -> None:
    assert outcome(deployment, record(score("é"), key="é".encode())).match_id == "é"
    assert outcome(deployment, record(score("é"), key="é".encode("latin-1"))).reason == "invalid-key"


def test_a_time_that_is_left_out_is_the_records(deployment: Deployment) -> None:
    deployment.clock.advance(90_000)
    found = outcome(deployment, record(score("m")))
    assert (found.ended_at, found.time_given) == (START_AT, False)


@pytest.mark.parametrize(
    ("appended", "late_ms", "accepted"),
    [(True, 500, True), (True, 501, False), (False, 0, True), (False, 1, False)],
)
def test_how_far_ahead_a_time_is_counts_from_the_records_own(
    deployment: Deployment, late_ms: int, *, appended: bool, accepted: bool
) -> None:
    # Where the broker set the time its clock may lag a little; where the producer did there is nothing to allow for.
    body = score("m", ended_at=format_time(START_AT + AHEAD_MS + late_ms))
    deployment.clock.advance(AHEAD_MS)  # the updater's clock has no say: a replay decides the same
    assert isinstance(outcome(deployment, record(body, appended=appended)), DeadLetter) is not accepted


@pytest.mark.parametrize(("late_ms", "accepted"), [(0, True), (1, False)])
def test_a_producers_timestamp_of_after_tomorrow_is_a_dead_letter(
    deployment: Deployment, late_ms: int, *, accepted: bool
) -> None:
    # Its boards would be known to no rebuild. What the broker stamped is believed whatever this clock says.
    deployment.clock.advance(-DAY_MS - late_ms)
    found = outcome(deployment, record(score("m"), appended=False))
    assert (getattr(found, "reason", None) is None) is accepted
    assert accepted or found.reason == "invalid-timestamp"
    assert not isinstance(outcome(deployment, record(score("m"), appended=True)), DeadLetter)


def test_an_unknown_leaderboard_is_looked_up_once_for_a_batch_and_then_dead(deployment: Deployment) -> None:
    registry = deployment.updater().registry
    registry.reread()
    scans = deployment.dynamodb.faults.calls["Scan"]
    strange = [record(score("m", leaderboard="new")), record(score("m", leaderboard="none"))]
    found = Decoder(registry, 500, deployment.clock.now_at).decode(strange)
    assert reasons(found) == ["leaderboard-not-found"] * 2
    assert deployment.dynamodb.faults.calls["Scan"] == scans + 1


def test_a_leaderboard_that_was_made_since_the_last_look_is_found(deployment: Deployment) -> None:
    registry = deployment.updater().registry
    registry.reread()
    deployment.define({"new": MAIN})
    found = Decoder(registry, 500, deployment.clock.now_at).decode([record(score("m", leaderboard="new"))])
    assert found[0].outcome.leaderboard.name == "new"  # type: ignore[union-attr]


def test_nothing_is_dead_while_the_table_of_leaderboards_cannot_be_read(deployment: Deployment) -> None:
    registry = deployment.updater().registry
    registry.reread()
    deployment.dynamodb.faults.fail_calls("InternalFailure", operation="Scan")
    with pytest.raises(Exception, match="read the leaderboards"):
        Decoder(registry, 500, deployment.clock.now_at).decode([record(score("m", leaderboard="new"))])


def test_known_leaderboards_cost_no_look_up(deployment: Deployment) -> None:
    registry = deployment.updater().registry
    registry.reread()
    calls = deployment.dynamodb.faults.calls.total()
    Decoder(registry, 500, deployment.clock.now_at).decode([record(score("m"))])
    assert deployment.dynamodb.faults.calls.total() == calls


def test_rows_are_counted_over_players_and_windows(deploy: Callable[..., Deployment]) -> None:
    deployment = deploy({"main": MAIN | {"windows": ["all", "daily", "weekly"]}})
    found: list[Decoded] = decoded(deployment, [record(match("m", {"ann": 1, "bob": 2})), record(b"{")])
    assert [one.rows for one in found] == [6, 0]
