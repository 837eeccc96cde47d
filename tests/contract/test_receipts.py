"""Receipts: the first report of a match stays, and a later one meets it."""

from __future__ import annotations

import pytest

from schemas.errors import StoreUnavailable
from schemas.keys import Names
from schemas.rows import RECEIPT_KEPT_MS, ReceiptKey
from stores.scorebook import Scorebook
from tests.contract.dynamo_side import NOW, DynamoSide, receipt, soon

pytestmark = pytest.mark.contract

ODD_IDS = ["a:b", "a#b", "#", "=", "*", "{x}", "../", "007", "日本", "🏆", "'", "?", "x" * 128]


def test_a_receipt_is_kept_as_it_was_written(dynamo_side: DynamoSide) -> None:
    receipts = [receipt(match, results={player: n for n, player in enumerate(ODD_IDS)}) for match in ODD_IDS]
    assert dynamo_side.scorebook.insert_receipts(receipts, soon()) == {}
    found = dynamo_side.scorebook.read_receipts(
        [one.key for one in receipts] + [ReceiptKey("nobody", "main#*")], soon()
    )
    assert found == {one.key: one for one in receipts}


def test_the_first_receipt_stays_and_is_told_to_the_second(dynamo_side: DynamoSide) -> None:
    first, second = receipt("m", results={"ann": 10}), receipt("m", results={"ann": 11}, applied_at=NOW + 5)
    other = receipt("other")
    assert dynamo_side.scorebook.insert_receipts([first], soon()) == {}
    assert dynamo_side.scorebook.insert_receipts([second, other], soon()) == {first.key: first}
    assert dynamo_side.scorebook.read_receipts([first.key, other.key], soon()) == {first.key: first, other.key: other}


def test_a_match_of_two_hundred_results_fits(dynamo_side: DynamoSide) -> None:
    most = 2**53 - 1
    long = receipt("m", results={f"{n:03}" + "é" * 62: most - n for n in range(200)})
    dynamo_side.scorebook.insert_receipts([long], soon())
    assert dynamo_side.scorebook.read_receipts([long.key], soon()) == {long.key: long}


def test_more_receipts_than_one_batch_holds_are_written_and_read(dynamo_side: DynamoSide) -> None:
    receipts = [receipt(f"match {n}", results={"ann": n}) for n in range(230)]
    assert dynamo_side.scorebook.insert_receipts(receipts, soon()) == {}
    assert dynamo_side.scorebook.insert_receipts(receipts, soon()) == {one.key: one for one in receipts}


def test_receipts_of_a_match_are_found_for_one_leaderboard(dynamo_side: DynamoSide) -> None:
    whole = receipt("m", "main#*")
    singles = [receipt("m", f"main#={player}", {player: 1}) for player in ODD_IDS]
    others = [receipt("m", "main-2#*"), receipt("m", "mai#*"), receipt("m2", "main#*")]
    dynamo_side.scorebook.insert_receipts([whole, *singles, *others], soon())
    found = dynamo_side.scorebook.find_receipts("m", "main", NOW, soon())
    assert sorted(found, key=lambda one: one.key) == sorted([whole, *singles], key=lambda one: one.key)
    assert dynamo_side.scorebook.find_receipts("nobody", "main", NOW, soon()) == []


def test_a_receipt_past_its_time_is_not_shown_but_still_tells_a_repeat(dynamo_side: DynamoSide) -> None:
    old = receipt("m")
    dynamo_side.scorebook.insert_receipts([old], soon())
    ends_at = NOW + RECEIPT_KEPT_MS
    assert dynamo_side.scorebook.find_receipts("m", "main", ends_at - 1_000, soon()) == [old]
    assert dynamo_side.scorebook.find_receipts("m", "main", ends_at, soon()) == []
    assert dynamo_side.scorebook.insert_receipts([receipt("m", applied_at=ends_at)], soon()) == {old.key: old}


def test_nothing_to_read_asks_nothing(dynamo_side: DynamoSide) -> None:
    assert dynamo_side.scorebook.read_receipts([], soon()) == {}
    assert dynamo_side.scorebook.insert_receipts([], soon()) == {}


def test_health_is_told_by_the_tables(dynamo_side: DynamoSide) -> None:
    dynamo_side.scorebook.check()
    with pytest.raises(StoreUnavailable):
        Scorebook(dynamo_side.dynamo, Names("elsewhere")).check()


def test_tables_that_are_not_there_are_an_outage_not_a_result(dynamo_side: DynamoSide) -> None:
    elsewhere = Scorebook(dynamo_side.dynamo, Names("elsewhere"))
    with pytest.raises(StoreUnavailable):
        elsewhere.insert_receipts([receipt("m")], soon())
    with pytest.raises(StoreUnavailable):
        elsewhere.read_receipts([receipt("m").key], soon())
