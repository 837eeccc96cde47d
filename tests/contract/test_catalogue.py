"""Definitions, topology, leases: all or nothing, the first wins, and nobody overwrites what he did not see."""

from __future__ import annotations

import pytest

from schemas.errors import InvalidDefinition, StoreUnavailable
from schemas.keys import Names
from schemas.leaderboards import Leaderboard, define
from stores.catalogue import Catalogue
from stores.registry import REREAD_MS, Registry
from tests.contract.dynamo_side import NOW, DynamoSide, leaderboard

pytestmark = pytest.mark.contract

FULL = leaderboard(
    "full",
    order="lower",
    min=-(2**52),
    max=2**52 - 1,
    scale=3,
    windows=["daily", "weekly", "monthly", "all"],
    starts_at="2020-01-01T00:00:00.001Z",
    ends_at="2120-01-01T00:00:00Z",
    peak_writes_per_s=1_400,
    durable_days={"daily": 400},
    retention_days={"daily": 5, "weekly": 30},
)


def successor(of: Leaderboard, days: int = 9) -> Leaderboard:
    """The next version, with another retention."""
    definition = of.definition.model_copy(update={"retention_days": {"daily": days}})
    return define(of.name, definition, NOW, of)


# ---------------------------------------------------------------- tables and topology


def test_tables_are_made_once_however_often_it_is_asked(dynamo_side: DynamoSide) -> None:
    dynamo_side.catalogue.create_topology(4)
    for _ in range(2):
        dynamo_side.catalogue.create_tables()
    assert dynamo_side.catalogue.read_topology() is not None
    for table in (dynamo_side.names.scores, dynamo_side.names.matches):
        told = dynamo_side.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        assert (told["TimeToLiveStatus"], told["AttributeName"]) == ("ENABLED", "expires_at")


def test_the_first_topology_stays(dynamo_side: DynamoSide) -> None:
    assert dynamo_side.catalogue.read_topology() is None
    first = dynamo_side.catalogue.create_topology(4)
    assert (first.lanes, first.mapping) == (4, 1)
    assert dynamo_side.catalogue.create_topology(9) == first
    assert dynamo_side.catalogue.read_topology() == first


def test_a_truth_gets_an_id_of_its_own(dynamo_side: DynamoSide) -> None:
    first = dynamo_side.catalogue.create_topology(4)
    elsewhere = DynamoSide(dynamo_side.client, dynamo_side.dynamo)
    elsewhere.catalogue.create_tables()
    assert elsewhere.catalogue.create_topology(4).truth_id != first.truth_id


# ---------------------------------------------------------------- definitions


def test_a_leaderboard_comes_back_as_it_was_written(dynamo_side: DynamoSide) -> None:
    plain = leaderboard("plain")
    dynamo_side.catalogue.create_topology(4)
    assert dynamo_side.catalogue.read_leaderboards() == {}
    dynamo_side.catalogue.write_leaderboards([plain, FULL])
    found = dynamo_side.catalogue.read_leaderboards()
    assert found == {"full": FULL, "plain": plain}
    assert found["full"].boards_at(NOW) == FULL.boards_at(NOW)
    later = successor(FULL)
    dynamo_side.catalogue.write_leaderboards([later])
    found = dynamo_side.catalogue.read_leaderboards()
    assert found == {"full": later, "plain": plain}
    assert found["full"].version == 2


def test_of_several_leaderboards_all_are_written_or_none(dynamo_side: DynamoSide) -> None:
    held = leaderboard("held")
    dynamo_side.catalogue.write_leaderboards([held])
    with pytest.raises(InvalidDefinition, match="somebody else"):
        dynamo_side.catalogue.write_leaderboards([leaderboard("a"), leaderboard("held", max=9), leaderboard("z")])
    assert dynamo_side.catalogue.read_leaderboards() == {"held": held}


@pytest.mark.parametrize("versions", [[2, 2], [2, 3, 2], [3], [1]])
def test_a_version_that_was_not_built_on_the_present_one_is_refused(
    dynamo_side: DynamoSide, versions: list[int]
) -> None:
    chain = [FULL]
    while len(chain) < 3:
        chain.append(successor(chain[-1], days=10 + len(chain)))
    dynamo_side.catalogue.write_leaderboards([FULL])
    *good, last = versions
    for version in good:
        dynamo_side.catalogue.write_leaderboards([chain[version - 1]])
    held = dynamo_side.catalogue.read_leaderboards()
    with pytest.raises(InvalidDefinition):
        dynamo_side.catalogue.write_leaderboards([chain[last - 1]])
    assert dynamo_side.catalogue.read_leaderboards() == held


def test_a_hundred_leaderboards_change_at_once_and_more_are_refused(dynamo_side: DynamoSide) -> None:
    many = [leaderboard(f"game-{n}") for n in range(101)]
    with pytest.raises(InvalidDefinition, match="split"):
        dynamo_side.catalogue.write_leaderboards(many)
    assert dynamo_side.catalogue.read_leaderboards() == {}
    dynamo_side.catalogue.write_leaderboards(many[:100])
    dynamo_side.catalogue.write_leaderboards([])
    assert dynamo_side.catalogue.read_leaderboards() == {one.name: one for one in many[:100]}


def test_without_its_table_the_catalogue_is_unavailable(dynamo_side: DynamoSide) -> None:
    elsewhere = Catalogue(dynamo_side.dynamo, Names("elsewhere"), lambda _: None)
    for ask in (elsewhere.read_topology, elsewhere.read_leaderboards, lambda: elsewhere.create_topology(1)):
        with pytest.raises(StoreUnavailable):
            ask()


def test_a_registry_sees_a_change_once_its_copy_is_old(dynamo_side: DynamoSide) -> None:
    now = 0
    registry = Registry(dynamo_side.catalogue, lambda: now)
    assert (registry.topology, registry.leaderboards) == (None, {})
    topology = dynamo_side.catalogue.create_topology(4)
    dynamo_side.catalogue.write_leaderboards([FULL])
    registry.reread_when_old()
    assert (registry.topology, registry.leaderboards) == (topology, {"full": FULL})
    kept = registry.leaderboards["full"]
    later, other = successor(FULL), leaderboard("other")
    dynamo_side.catalogue.write_leaderboards([later])
    now = REREAD_MS - 1
    registry.reread_when_old()
    assert registry.leaderboards == {"full": FULL}
    now = REREAD_MS
    registry.reread_when_old()
    assert registry.leaderboards == {"full": later}
    dynamo_side.catalogue.write_leaderboards([other])
    registry.reread()
    assert registry.leaderboards == {"full": later, "other": other}
    assert registry.leaderboards["full"] is not kept


# ---------------------------------------------------------------- leases


def test_one_owner_at_a_time_holds_a_lease(dynamo_side: DynamoSide) -> None:
    take = dynamo_side.catalogue.take_lease
    assert take("lane:1", "ann", 0, 10)
    assert not take("lane:1", "bob", 10, 99)
    assert take("lane:2", "bob", 0, 10)
    assert take("lane:1", "ann", 5, 20)
    assert not take("lane:1", "bob", 20, 99)
    assert take("lane:1", "bob", 21, 99)
    assert not take("lane:1", "ann", 22, 99)


def test_only_its_owner_gives_a_lease_back(dynamo_side: DynamoSide) -> None:
    catalogue = dynamo_side.catalogue
    assert catalogue.take_lease("lane:1", "ann", 0, 10)
    catalogue.release_lease("lane:1", "bob")
    assert not catalogue.take_lease("lane:1", "bob", 5, 10)
    catalogue.release_lease("lane:1", "ann")
    catalogue.release_lease("lane:1", "ann")
    assert catalogue.take_lease("lane:1", "bob", 5, 10)


def test_leases_and_topology_are_no_leaderboards(dynamo_side: DynamoSide) -> None:
    dynamo_side.catalogue.create_topology(4)
    assert dynamo_side.catalogue.take_lease("lane:1", "ann", 0, 10)
    assert dynamo_side.catalogue.read_leaderboards() == {}
