"""The scorebook when DynamoDB throttles, forgets, times out or lets another writer in between: on the fake alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from schemas.errors import StoreUnavailable
from schemas.rows import Candidate, Row, board_shard
from stores.catalogue import Catalogue
from stores.deadline import Deadline, DeadlineMissed
from stores.dynamodb import Dynamo
from tests.contract.dynamo_side import GAME, NOW, DynamoSide, candidate, leaderboard, receipt, row, soon
from tests.fakes.dynamodb import FakeDynamoDB

pytestmark = pytest.mark.contract

PLAYERS = [f"player {n}" for n in range(200)]
Write = Callable[[DynamoSide], Any]


def write_many(side: DynamoSide) -> None:
    """200 rows, some of which are there and must be settled, and all of which come out the same."""
    assert side.write(*[candidate(player, n, NOW - 1) for n, player in enumerate(PLAYERS)]) == expected_rows()


def expected_rows() -> list[Row]:
    return [row(player, n, NOW - 1) for n, player in enumerate(PLAYERS)]


@pytest.fixture
def side(fake_dynamo: DynamoSide) -> DynamoSide:
    for n, player in enumerate(PLAYERS[::3]):
        fake_dynamo.put(row(player, 3 * n, NOW))
    return fake_dynamo


# ---------------------------------------------------------------- throttles


@pytest.mark.parametrize(
    "code",
    [
        "ThrottlingError",
        "ProvisionedThroughputExceeded",
        "TransactionConflict",
        "InternalServerError",
        "RequestLimitExceeded",
    ],
)
def test_statements_that_are_throttled_are_sent_again(side: DynamoSide, fake_dynamodb: FakeDynamoDB, code: str) -> None:
    fake_dynamodb.faults.fail_statements(code, times=60)
    write_many(side)
    assert side.read(*PLAYERS) == expected_rows()


@pytest.mark.parametrize(
    "code", ["ProvisionedThroughputExceededException", "ThrottlingException", "InternalServerError"]
)
@pytest.mark.parametrize("operation", ["BatchExecuteStatement", "BatchGetItem", "UpdateItem"])
def test_calls_that_are_throttled_are_made_again(
    side: DynamoSide, fake_dynamodb: FakeDynamoDB, operation: str, code: str
) -> None:
    fake_dynamodb.faults.fail_calls(code, 5, operation)
    write_many(side)
    assert side.read(*PLAYERS) == expected_rows()
    assert fake_dynamodb.faults.calls[operation] > 5


@pytest.mark.parametrize("operation", ["Query", "Scan", "GetItem", "TransactWriteItems"])
def test_reads_and_definitions_that_are_throttled_are_asked_again(
    side: DynamoSide, fake_dynamodb: FakeDynamoDB, operation: str
) -> None:
    fake_dynamodb.faults.fail_calls(times=3, operation=operation)
    side.catalogue.write_leaderboards([])
    side.catalogue.read_leaderboards()
    side.catalogue.read_topology()
    found = [one for shard in range(8) for page in side.scorebook.query_shard(GAME, shard, NOW) for one in page]
    assert len(found) == len(PLAYERS[::3])
    assert side.scorebook.find_receipts("m", "main", NOW, soon()) == []


def test_throttles_back_off_longer_each_time_and_never_beyond_the_deadline(fake_dynamodb: FakeDynamoDB) -> None:
    now = 0
    pauses: list[float] = []

    def sleep(pause_s: float) -> None:
        nonlocal now
        pauses.append(pause_s)
        now += max(1, int(pause_s * 1_000))

    dynamo = Dynamo(fake_dynamodb.as_client(), sleep, jitter=lambda _, most: most)
    throttled = DynamoSide(fake_dynamodb.as_client(), dynamo)
    throttled.catalogue.create_tables()
    fake_dynamodb.faults.fail_calls(times=1_000, operation="BatchExecuteStatement")
    with pytest.raises(DeadlineMissed):
        throttled.scorebook.write_rows([candidate("ann")], set(), Deadline(0, 10_000, lambda: now))
    assert now <= 10_001
    assert pauses[:4] == [0.025, 0.05, 0.1, 0.2]
    assert max(pauses) == 1.0
    assert throttled.read("ann") == [None]
    dynamo.close()


@pytest.mark.parametrize("left", [(1,), (100, 100, 100), (99, 50, 3, 3, 3), (100,) * 12])
def test_keys_that_were_left_unprocessed_are_read_until_none_is_left(
    side: DynamoSide, fake_dynamodb: FakeDynamoDB, left: tuple[int, ...]
) -> None:
    write_many(side)
    fake_dynamodb.faults.leave_unprocessed(*left)
    assert side.read(*PLAYERS, "nobody") == [*expected_rows(), None]


def test_an_error_that_nothing_cures_stops_at_once(side: DynamoSide, fake_dynamodb: FakeDynamoDB) -> None:
    fake_dynamodb.faults.fail_statements("AccessDenied")
    with pytest.raises(StoreUnavailable, match="AccessDenied"):
        side.scorebook.write_rows([candidate("zoe")], set(), soon())
    fake_dynamodb.faults.fail_calls("UnrecognizedClientException")
    before = fake_dynamodb.faults.calls["BatchExecuteStatement"]
    with pytest.raises(StoreUnavailable, match="UnrecognizedClientException"):
        side.scorebook.write_rows([candidate("zoe")], set(), soon())
    assert fake_dynamodb.faults.calls["BatchExecuteStatement"] == before + 1


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("operation", ["BatchExecuteStatement", "BatchGetItem", "UpdateItem"])
def test_a_write_whose_answer_got_lost_is_unknown_and_harmless_to_repeat(
    side: DynamoSide, fake_dynamodb: FakeDynamoDB, operation: str
) -> None:
    fake_dynamodb.faults.time_out_calls(operation=operation)
    with pytest.raises(StoreUnavailable):
        write_many(side)
    write_many(side)
    assert side.read(*PLAYERS) == expected_rows()


def test_a_receipt_whose_answer_got_lost_is_met_by_its_repeat(side: DynamoSide, fake_dynamodb: FakeDynamoDB) -> None:
    receipts = [receipt(f"match {n}") for n in range(60)]
    fake_dynamodb.faults.time_out_calls(operation="BatchExecuteStatement")
    with pytest.raises(StoreUnavailable):
        side.scorebook.insert_receipts(receipts, soon())
    there = side.scorebook.insert_receipts(receipts, soon())
    assert 0 < len(there) <= 60
    assert all(there[key] == receipt(key.match_id) for key in there)
    assert len(side.scorebook.read_receipts([one.key for one in receipts], soon())) == 60


def test_nothing_is_written_past_the_deadline(side: DynamoSide, fake_dynamodb: FakeDynamoDB) -> None:
    before = fake_dynamodb.faults.calls.copy()
    late = Deadline.after(0)
    with pytest.raises(DeadlineMissed):
        side.scorebook.write_rows([candidate("zoe")], set(), late)
    with pytest.raises(DeadlineMissed):
        side.scorebook.insert_receipts([receipt("m")], late)
    assert fake_dynamodb.faults.calls == before


def test_every_batch_of_a_write_asks_the_deadline(fake_dynamodb: FakeDynamoDB) -> None:
    now = 0

    def delay(operation: str, _: Any) -> None:
        nonlocal now
        if operation == "BatchExecuteStatement":
            time.sleep(0.02)
            now = 99

    dynamo = Dynamo(fake_dynamodb.as_client(), sleep=lambda _: None)
    slow = DynamoSide(fake_dynamodb.as_client(), dynamo)
    slow.catalogue.create_tables()
    fake_dynamodb.faults.before = delay
    with pytest.raises(DeadlineMissed):
        slow.scorebook.write_rows([candidate(f"player {n}") for n in range(1_000)], set(), Deadline(0, 50, lambda: now))
    # Only as many batches as were under way when the time was up.
    assert fake_dynamodb.faults.calls["BatchExecuteStatement"] <= 8
    dynamo.close()


# ---------------------------------------------------------------- other writers


class Meanwhile:
    """What another writer does just before the first call of an operation."""

    def __init__(self, fake: FakeDynamoDB, operation: str, act: Callable[[], None]) -> None:
        self.done = False

        def before(called: str, _: Any) -> None:
            if called == operation and not self.done:
                self.done = True
                act()

        fake.faults.before = before


BETTER, EQUAL, WORSE = row("ann", 20, NOW), row("ann", 10, NOW - 100, "a"), row("ann", 5, NOW)


@pytest.mark.parametrize("operation", ["BatchExecuteStatement", "BatchGetItem", "UpdateItem"])
@pytest.mark.parametrize("other", [BETTER, EQUAL, WORSE], ids=["better", "equal", "worse"])
@pytest.mark.parametrize("known", [False, True])
def test_a_row_that_another_writer_wrote_meanwhile_is_met(
    fake_dynamo: DynamoSide,
    fake_dynamodb: FakeDynamoDB,
    operation: str,
    other: Row,
    known: bool,  # noqa: FBT001
) -> None:
    fake_dynamo.put(WORSE if operation == "BatchExecuteStatement" else row("ann", 10, NOW, "m"))
    offer = row("ann", 10, NOW - 50, "b")
    meanwhile = Meanwhile(fake_dynamodb, operation, lambda: fake_dynamo.put(other))
    best = other if other.beats(offer) else offer
    assert fake_dynamo.write(Candidate(GAME, offer), known=known) == [best]
    assert fake_dynamo.read("ann") == [best]
    assert meanwhile.done


@pytest.mark.parametrize("operation", ["BatchExecuteStatement", "BatchGetItem", "UpdateItem"])
def test_a_row_that_expired_meanwhile_is_written_anew(
    fake_dynamo: DynamoSide, fake_dynamodb: FakeDynamoDB, operation: str
) -> None:
    fake_dynamo.put(row("ann", 10, NOW, "m"))
    offer = row("ann", 10, NOW - 50, "b")

    def expire() -> None:
        table = fake_dynamodb.tables[fake_dynamo.names.scores]
        del table.items[board_shard(GAME, "ann"), "ann"]

    Meanwhile(fake_dynamodb, operation, expire)
    assert fake_dynamo.write(Candidate(GAME, offer), known=True) == [offer]
    assert fake_dynamo.read("ann") == [offer]


def test_writers_at_the_same_time_leave_the_best_of_all(fake_dynamo: DynamoSide) -> None:
    offers = [row(player, n % 7, NOW - n % 3, f"m{n:03}") for n in range(80) for player in ("ann", "bob", "cid")]
    barrier = threading.Barrier(4)

    def write(part: int) -> None:
        barrier.wait()
        for one in offers[part::4]:
            (image,) = fake_dynamo.write(Candidate(GAME, one))
            assert image == one or image.beats(one)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    for player in ("ann", "bob", "cid"):
        mine = [one for one in offers if one.player_id == player]
        (best,) = [one for one in mine if all(one is other or one.beats(other) for other in mine)]
        assert fake_dynamo.read(player) == [best]


def test_an_outage_holds_calls_up_and_they_go_on_after_it(side: DynamoSide, fake_dynamodb: FakeDynamoDB) -> None:
    fake_dynamodb.faults.pause()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write_many, side)
        time.sleep(0.05)
        assert not writing.done()
        fake_dynamodb.faults.resume()
        writing.result(10)
    assert side.read(*PLAYERS) == expected_rows()


@pytest.mark.parametrize(
    "ask",
    [lambda of: of.take_lease("lane:1", "ann", 0, 10), lambda of: of.create_topology(4)],
    ids=["a lease", "the topology"],
)
def test_the_catalogue_is_unavailable_when_its_answer_got_lost(
    fake_dynamo: DynamoSide, fake_dynamodb: FakeDynamoDB, ask: Callable[[Catalogue], Any]
) -> None:
    fake_dynamodb.faults.time_out_calls(operation="PutItem")
    with pytest.raises(StoreUnavailable):
        ask(fake_dynamo.catalogue)
    assert fake_dynamo.catalogue.take_lease("lane:1", "ann", 0, 10)
    assert fake_dynamo.catalogue.create_topology(4) == fake_dynamo.catalogue.read_topology()


def test_definitions_whose_answer_got_lost_are_written_or_not_but_never_half(
    fake_dynamo: DynamoSide, fake_dynamodb: FakeDynamoDB
) -> None:
    games = [leaderboard("a"), leaderboard("b")]
    fake_dynamodb.faults.time_out_calls(operation="TransactWriteItems")
    with pytest.raises(StoreUnavailable):
        fake_dynamo.catalogue.write_leaderboards(games)
    assert fake_dynamo.catalogue.read_leaderboards() == {one.name: one for one in games}


# ---------------------------------------------------------------- pages that take too long


def test_a_page_that_takes_too_long_is_asked_for_again_smaller_and_no_row_is_missed(
    side: DynamoSide, fake_dynamodb: FakeDynamoDB
) -> None:
    limits: list[int] = []
    fake_dynamodb.faults.before = lambda operation, request: (
        limits.append(request["Limit"]) if operation == "Query" else None
    )
    fake_dynamodb.faults.time_out_calls(2, "Query")
    found = [
        one for shard in range(GAME.shards) for page in side.scorebook.query_shard(GAME, shard, NOW) for one in page
    ]
    assert {one.player_id for one in found} == set(PLAYERS[::3])
    assert limits[0] > limits[1] > limits[2]


def test_a_store_that_never_gives_a_page_is_unavailable_in_the_end(
    side: DynamoSide, fake_dynamodb: FakeDynamoDB
) -> None:
    fake_dynamodb.faults.time_out_calls(20, "Query")
    with pytest.raises(StoreUnavailable):
        list(side.scorebook.query_shard(GAME, 0, NOW))
    assert fake_dynamodb.faults.calls["Query"] < 20
