"""What `standings status` says of a lane."""

from __future__ import annotations

from dataclasses import replace

import pytest

from commands.status import describe_lane
from schemas.rows import Topology
from stores.lanes import LaneMeta, LaneState, topology_ids
from stores.log import LogDescription

NOW_AT = 1_800_000_000_000
LOG = LogDescription("log", 2)
TOPOLOGY = Topology(1, 1, "truth")
READY = LaneMeta(
    LaneState.READY, ids=topology_ids("log", TOPOLOGY), as_of=NOW_AT - 1_000, boards=frozenset({"main:all"})
)


@pytest.mark.parametrize(
    ("meta", "state", "said"),
    [
        (READY, "ready", "1 boards, as of 2027-01-15T07:59:59.000Z"),
        (replace(READY, as_of=NOW_AT - 61_000), "late", "the updaters are away, or far behind"),
        (replace(READY, as_of=None), "unconfirmed", "as of unknown: an updater has still to confirm"),
        (replace(READY, ids=topology_ids("another", TOPOLOGY)), "foreign", "1 boards"),
        (replace(READY, ids=topology_ids("log", Topology(2, 1, "truth"))), "foreign", "1 boards"),
        (LaneMeta(LaneState.REBUILDING, progress="12"), "rebuilding", "12 rows so far"),
        (LaneMeta(LaneState.LOST), "lost", "0 boards"),
    ],
)
def test_a_lane_is_well_only_where_it_is_ours_and_goes_on(meta: LaneMeta, state: str, said: str) -> None:
    part = describe_lane(0, meta, TOPOLOGY, LOG, NOW_AT)
    assert (part.part, part.state, part.ok) == ("lane 0", state, state == "ready")
    assert said in part.detail


def test_while_the_log_is_away_a_lane_is_believed_which_log_it_is_of() -> None:
    assert describe_lane(0, READY, TOPOLOGY, None, NOW_AT).ok
