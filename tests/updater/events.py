"""Events and batches in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stores.deadline import Deadline
from stores.lanes import LaneIds, Range
from stores.log import Record
from tests.fakes.deployment import Deployment
from updater.batch import Batch, DeadLetter, Decoded
from updater.decode import Decoder


def score(match_id: str, points: Any = 1, player_id: str = "ann", **more: Any) -> dict[str, Any]:
    """One player's score."""
    return {"match_id": match_id, "player_id": player_id, "score": points} | more


def match(match_id: str, scores: Mapping[str, int], **more: Any) -> dict[str, Any]:
    """A match reported whole."""
    results = [{"player_id": player_id, "score": points} for player_id, points in scores.items()]
    return {"match_id": match_id, "results": results} | more


def fetched(deployment: Deployment) -> list[Record]:
    """All that the log holds, as a consumer returns it."""
    partitions = deployment.log.topics[deployment.settings.names.events].partitions
    return [
        Record(number, one.offset, one.timestamp, one.appended, one.key, one.value)
        for number, partition in enumerate(partitions)
        for one in partition.records
    ]


def decoded(deployment: Deployment, records: Sequence[Record] | None = None) -> list[Decoded]:
    """The same, decoded."""
    registry = deployment.updater().registry
    registry.reread()
    found = fetched(deployment) if records is None else records
    return Decoder(registry, deployment.settings.clock_skew_ms, deployment.clock.now_at).decode(found)


def batch(deployment: Deployment, *bodies: Mapping[str, Any], ids: LaneIds | None = None) -> Batch:
    """These events, submitted in this order, and all that the log held before them."""
    for body in bodies:
        deployment.submit(body)
    return batch_of(deployment, decoded(deployment), ids=ids)


def batch_of(deployment: Deployment, these: Sequence[Decoded], *, ids: LaneIds | None = None) -> Batch:
    """These records, as a batch that begins where its first ones stand."""
    found: dict[int, Range] = {}
    for one in (one.record for one in these):
        first = found[one.partition].first if one.partition in found else one.offset
        found[one.partition] = Range(one.partition, first, one.offset + 1)
    clock = deployment.clock
    deadline = Deadline(clock.boot_ms(), deployment.settings.deadline_ms, clock.boot_ms)
    return Batch(these, list(found.values()), ids or deployment.ids, deadline)


def reasons(these: Sequence[Decoded]) -> list[str]:
    """The reasons of the dead letters among them."""
    return [one.outcome.reason for one in these if isinstance(one.outcome, DeadLetter)]
