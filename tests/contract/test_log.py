"""The log: what was acknowledged is read once, in order, from where the group stood."""

from __future__ import annotations

import itertools
from contextlib import closing

import pytest
from kafka.partitioner.default import murmur2

from stores.clock import now_ms
from stores.log import Acknowledged, Committed, LogConsumer, LogDescription, LogUnavailable
from tests.contract.log_side import PARTITIONS, LogSide, described, join, read, send, values, wait_until

pytestmark = pytest.mark.contract

KEYS = [f"match {n}".encode() for n in range(40)]
LETTERS = [(key, b"%d of " % n + key) for n in range(3) for key in KEYS]


def written(acknowledged: list[Acknowledged]) -> dict[int, list[bytes]]:
    """What stands in each partition, by what was acknowledged for LETTERS."""
    placed = sorted((one.partition, one.offset, letter[1]) for one, letter in zip(acknowledged, LETTERS, strict=True))
    return {
        partition: [value for _, _, value in group]
        for partition, group in itertools.groupby(placed, lambda one: one[0])
    }


def test_a_topic_is_made_once_and_told_by_its_id(log_side: LogSide) -> None:
    admin = log_side.admin()
    first = admin.describe()
    assert first is not None
    assert first.partitions == PARTITIONS
    admin.create_topics(PARTITIONS + 3, 1)
    assert admin.describe() == first
    assert admin.log_starts(PARTITIONS) == admin.log_ends(PARTITIONS) == dict.fromkeys(range(PARTITIONS), 0)


def test_a_record_is_acknowledged_where_its_key_puts_it(log_side: LogSide) -> None:
    before = now_ms()
    acknowledged = send(log_side, *LETTERS)
    for one, (key, _) in zip(acknowledged, LETTERS, strict=True):
        assert one.partition == (murmur2(key) & 0x7FFFFFFF) % PARTITIONS
        assert before - 1_000 <= one.timestamp <= now_ms() + 1_000
    for partition in range(PARTITIONS):
        offsets = [one.offset for one in acknowledged if one.partition == partition]
        assert offsets == list(range(len(offsets)))


@pytest.mark.parametrize("max_records", [7, 1_000])
def test_every_record_is_read_once_and_in_order(log_side: LogSide, max_records: int) -> None:
    acknowledged = send(log_side, *LETTERS)
    consumer = log_side.consumer()
    found = read(consumer, len(LETTERS), max_records)
    assert values(found) == written(acknowledged)
    assert [one.key for one in found if one.value in (b"0 of match 7", b"1 of match 7")] == [b"match 7"] * 2
    stamps = {(one.partition, one.offset): one.timestamp for one in acknowledged}
    assert {(one.partition, one.offset): one.timestamp for one in found} == stamps
    assert [consumer.position(partition) for partition in range(PARTITIONS)] == [
        len(written(acknowledged)[partition]) for partition in range(PARTITIONS)
    ]


def test_a_poll_returns_at_most_as_many_as_were_asked_for(log_side: LogSide) -> None:
    send(log_side, *LETTERS)
    consumer = log_side.consumer()
    counts: list[int] = []

    def all_read() -> bool:
        counts.append(len(consumer.poll(100, 7)))
        return sum(counts) >= len(LETTERS)

    wait_until(all_read)
    assert max(counts) <= 7


def test_the_log_gives_events_its_own_times(request: pytest.FixtureRequest, log_side: LogSide) -> None:
    if request.node.callspec.id == "real":
        request.applymarker(pytest.mark.xfail(reason="the embedded broker keeps the producer's times", strict=True))
    ((partition, offset, timestamp),) = [
        log_side.producer().send(log_side.names.events, b"key", b"value", timestamp=1_000).result(10)
    ]
    (record,) = read(log_side.consumer(), 1)
    assert (record.partition, record.offset, record.timestamp) == (partition, offset, timestamp)
    assert record.appended
    assert timestamp > 1_000


def test_dead_letters_keep_the_times_they_were_given(log_side: LogSide) -> None:
    acknowledged = log_side.producer().send(log_side.names.dead_letters, None, b"value", 1_000, [("why", b"x")])
    assert acknowledged.result(10) == Acknowledged(0, 0, 1_000)


# ---------------------------------------------------------------- committing


def test_a_group_goes_on_where_it_committed(log_side: LogSide) -> None:
    acknowledged = send(log_side, *LETTERS)
    first = log_side.consumer()
    read(first, len(LETTERS))
    assert first.commit({partition: Committed(partition + 2, None) for partition in range(4)})
    assert [first.committed(partition) for partition in range(4)] == [2, 3, 4, 5]
    first.close()
    second = log_side.consumer()
    join(second)
    assert [second.position(partition) for partition in range(4)] == [2, 3, 4, 5]
    found = values(read(second, len(LETTERS) - 14))
    assert found == {partition: kept[partition + 2 :] for partition, kept in written(acknowledged).items()}


def test_up_to_when_a_partition_is_recorded_is_committed_with_its_offset(
    request: pytest.FixtureRequest, log_side: LogSide
) -> None:
    if request.node.callspec.id == "real":
        request.applymarker(pytest.mark.xfail(reason="the embedded broker drops the metadata of commits", strict=True))
    consumer = log_side.consumer()
    join(consumer)
    committed = {0: Committed(2, 1_000), 1: Committed(3, None), 2: Committed(0, 0), 3: Committed(2**40, 2**52)}
    assert consumer.commit(committed)
    assert log_side.admin().committed(described(log_side)) == committed
    assert consumer.commit({0: Committed(4, None)})
    assert log_side.admin().committed(described(log_side)) == committed | {0: Committed(4, None)}


def test_a_group_is_rewound_only_while_nobody_is_in_it(request: pytest.FixtureRequest, log_side: LogSide) -> None:
    if request.node.callspec.id == "real":
        request.applymarker(pytest.mark.xfail(reason="the embedded broker lets anybody commit", strict=True))
    admin, log_id = log_side.admin(), described(log_side)
    consumer = log_side.consumer()
    join(consumer)
    assert consumer.commit({0: Committed(9, 5), 1: Committed(9, 5)})
    with pytest.raises(LogUnavailable):
        admin.rewind_group(log_id, {0: 3})
    assert admin.committed(log_id) == {0: Committed(9, 5), 1: Committed(9, 5)}
    consumer.close()
    admin.rewind_group(log_id, {0: 3})
    assert admin.committed(log_id) == {0: Committed(3, None), 1: Committed(9, 5)}


def test_a_group_that_never_committed_begins_at_the_logs_start(log_side: LogSide) -> None:
    send(log_side, *LETTERS)
    first = log_side.consumer()
    read(first, len(LETTERS))
    first.close()
    assert log_side.admin().committed(described(log_side)) == {}
    second = log_side.consumer()
    join(second)
    assert [second.committed(partition) for partition in range(4)] == [None] * 4
    assert [second.position(partition) for partition in range(4)] == [0] * 4
    assert len(read(second, len(LETTERS))) == len(LETTERS)


def test_what_was_committed_for_another_log_is_not_met(log_side: LogSide) -> None:
    send(log_side, *LETTERS)
    other = log_side.consumer("another-log")
    read(other, len(LETTERS))
    assert other.commit({0: Committed(9, None)})
    consumer = log_side.consumer()
    join(consumer)
    assert consumer.committed(0) is None
    assert log_side.admin().committed(described(log_side)) == {}
    assert log_side.admin().committed("another-log") == {0: Committed(9, None)}


def test_a_consumer_goes_back_to_where_it_is_sent(log_side: LogSide) -> None:
    acknowledged = send(log_side, *LETTERS)
    consumer = log_side.consumer()
    read(consumer, len(LETTERS))
    consumer.seek(2, 3)
    assert consumer.position(2) == 3
    kept = written(acknowledged)
    assert values(read(consumer, len(kept[2]) - 3)) == {2: kept[2][3:]}
    assert consumer.position(2) == len(kept[2])


def test_a_paused_consumer_reads_nothing_and_stays_a_member(log_side: LogSide) -> None:
    consumer = log_side.consumer()
    join(consumer)
    consumer.pause()
    send(log_side, *LETTERS)
    generation = consumer.generation
    assert [consumer.poll(50, 100) for _ in range(8)] == [[]] * 8
    assert (consumer.generation, consumer.assignment()) == (generation, frozenset(range(4)))
    consumer.resume()
    assert len(read(consumer, len(LETTERS))) == len(LETTERS)


# ---------------------------------------------------------------- rebalances


def test_two_consumers_share_the_partitions_and_the_one_that_stays_gets_all(log_side: LogSide) -> None:
    acknowledged = send(log_side, *LETTERS)
    first, second = log_side.consumer(), log_side.consumer()
    join(first)
    generation = first.generation
    join(first, second)
    assert first.generation > generation
    assert first.assignment() | second.assignment() == set(range(4))
    assert first.assignment() & second.assignment() == set()
    kept = written(acknowledged)
    for consumer in (first, second):
        mine = {partition: kept[partition] for partition in consumer.assignment()}
        assert values(read(consumer, sum(map(len, mine.values())))) == mine
        assert consumer.commit({partition: Committed(len(of), None) for partition, of in mine.items()})
    second.close()
    join(first)
    assert first.poll(100, 100) == []
    more = send(log_side, *LETTERS)
    assert len(read(first, len(more))) == len(more)


def test_who_was_taken_for_dead_commits_nothing_and_joins_again(log_side: LogSide) -> None:
    consumer = log_side.consumer()
    join(consumer)
    generation = consumer.generation
    assert consumer.commit({0: Committed(1, None)})
    log_side.expel(consumer)
    assert not consumer.commit({0: Committed(7, None)})
    wait_until(lambda: not consumer.poll(50, 1) and consumer.generation > generation)
    join(consumer)
    assert consumer.committed(0) == 1
    assert consumer.commit({0: Committed(2, None)})


def test_a_consumer_that_polls_briefly_gets_its_partitions_all_the_same(
    request: pytest.FixtureRequest, log_side: LogSide
) -> None:
    # What a rebalance takes is longer than such a poll: the answer may come between two of them.
    for _ in range(1 if request.node.callspec.id == "real" else 10):
        with closing(log_side.consumer()) as consumer:
            wait_until(lambda who=consumer: not who.poll(20, 1) and len(who.assignment()) == PARTITIONS)  # type: ignore[misc]


@pytest.mark.slow
def test_partitions_that_were_added_are_shared_by_all(request: pytest.FixtureRequest, log_side: LogSide) -> None:
    if request.node.callspec.id == "real":
        request.applymarker(pytest.mark.xfail(reason="the embedded broker can't add partitions", strict=True))
    log_side.admin().add_partitions(5)
    first, second = log_side.consumer(), log_side.consumer()
    join(first, second, partitions=5)
    log_side.admin().add_partitions(6)
    join(first, second, partitions=6)
    acknowledged = send(log_side, *LETTERS)
    assert {one.partition for one in acknowledged} == set(range(6))
    assert log_side.admin().describe() == LogDescription(described(log_side), 6)
    for consumer in (first, second):
        mine = [one for one in acknowledged if one.partition in consumer.assignment()]
        assert len(read(consumer, len(mine))) == len(mine)


def test_a_pause_outlives_a_rebalance(log_side: LogSide) -> None:
    send(log_side, *LETTERS)
    first, second = log_side.consumer(), log_side.consumer()
    join(first, second)
    first.pause()
    second.close()

    def has_all() -> bool:
        assert first.poll(50, 100) == []
        return first.assignment() == set(range(4))

    wait_until(has_all)
    assert [first.poll(50, 100) for _ in range(5)] == [[]] * 5
    first.resume()
    assert len(read(first, len(LETTERS))) == len(LETTERS)


# ---------------------------------------------------------------- evidence


def test_nothing_is_caught_up_on_before_anything_was_fetched(log_side: LogSide) -> None:
    consumer = log_side.consumer()
    join_without_fetching(consumer)
    positions = {partition: consumer.position(partition) for partition in consumer.assignment()}
    assert consumer.caught_up(positions) <= set(range(4))
    wait_until(lambda: not consumer.poll(20, 10) and consumer.caught_up(positions) == set(range(4)))


def test_an_idle_partition_is_caught_up_on_again_by_who_was_taken_for_dead(log_side: LogSide) -> None:
    consumer = log_side.consumer()
    zero = dict.fromkeys(range(4), 0)
    wait_until(lambda: not consumer.poll(20, 10) and consumer.assignment() == set(range(4)))
    wait_until(lambda: not consumer.poll(20, 10) and consumer.caught_up(zero) == set(range(4)))
    generation = consumer.generation
    log_side.expel(consumer)
    wait_until(lambda: not consumer.poll(20, 10) and consumer.generation > generation)
    wait_until(lambda: not consumer.poll(20, 10) and consumer.assignment() == set(range(4)))
    wait_until(lambda: not consumer.poll(20, 10) and consumer.caught_up(zero) == set(range(4)))


def test_a_partition_with_an_unread_record_is_never_caught_up_on(log_side: LogSide) -> None:
    consumer = log_side.consumer()
    join(consumer)
    zero = dict.fromkeys(range(4), 0)
    wait_until(lambda: not consumer.poll(20, 10) and consumer.caught_up(zero) == set(range(4)))
    unread = 0
    for key, value in LETTERS[:20]:
        (acknowledged,) = send(log_side, (key, value))
        at = acknowledged.partition
        positions = {partition: consumer.position(partition) for partition in range(4)}
        if positions[at] <= acknowledged.offset:
            unread += 1
            assert at not in consumer.caught_up(positions)
        # A poll that returns nothing proves nothing.
        for record in consumer.poll(0, 1):
            assert consumer.caught_up({record.partition: record.offset}) == set()
    assert unread > 0

    def caught_up() -> bool:
        consumer.poll(20, 100)
        positions = {partition: consumer.position(partition) for partition in range(4)}
        return consumer.caught_up(positions) == set(range(4))

    wait_until(caught_up)
    assert {n: consumer.position(n) for n in range(4)} == log_side.admin().log_ends(4)


def test_only_what_was_asked_about_is_answered(log_side: LogSide) -> None:
    consumer = log_side.consumer()
    join(consumer)
    wait_until(lambda: not consumer.poll(20, 10) and consumer.caught_up({2: 0}) == {2})
    assert consumer.caught_up({}) == set()


# ---------------------------------------------------------------- gaps, retention, another log


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_gaps_that_transactions_leave_are_passed(request: pytest.FixtureRequest, log_side: LogSide, end: str) -> None:
    if request.node.callspec.id == "real-abort":
        request.applymarker(pytest.mark.xfail(reason="the embedded broker shows what was aborted", strict=True))
    commit = end == "commit"
    key = KEYS[0]
    at = (murmur2(key) & 0x7FFFFFFF) % PARTITIONS
    send(log_side, (key, b"before"))
    log_side.write_transaction(key, b"in it", commit=commit)
    send(log_side, (key, b"after"))
    log_side.write_transaction(key, b"last", commit=commit)
    consumer = log_side.consumer()
    expected = [(0, b"before"), (1, b"in it"), (3, b"after"), (4, b"last")]
    if not commit:
        expected = [expected[0], expected[2]]
    found = read(consumer, len(expected))
    assert [(one.offset, one.value) for one in found] == expected
    # The marker behind the last record is passed as well, or the end would never be reached.
    wait_until(lambda: not consumer.poll(20, 10) and consumer.caught_up({at: consumer.position(at)}) == {at})
    assert consumer.position(at) == log_side.admin().log_ends(4)[at] == 6


def test_a_log_that_lost_its_start_says_so_and_is_read_from_what_is_left(
    request: pytest.FixtureRequest, log_side: LogSide
) -> None:
    if request.node.callspec.id == "real":
        request.applymarker(pytest.mark.xfail(reason="the embedded broker keeps everything", strict=True))
    key = KEYS[0]
    acknowledged = send(log_side, *[(key, b"%d" % n) for n in range(10)])
    at = acknowledged[0].partition
    first = log_side.consumer()
    join(first)
    assert first.commit({at: Committed(2, None)})
    first.close()
    log_side.advance_start(at, 6)
    assert log_side.admin().log_starts(4) == dict.fromkeys(range(4), 0) | {at: 6}
    second = log_side.consumer()
    assert [one.offset for one in read(second, 4)] == [6, 7, 8, 9]
    assert second.log_start(at) == 6
    second.seek(at, 3)
    assert [one.offset for one in read(second, 4)] == [6, 7, 8, 9]


def test_a_topic_made_anew_has_another_id_and_nothing_of_the_old_one(log_side: LogSide) -> None:
    send(log_side, *LETTERS)
    consumer = log_side.consumer()
    read(consumer, len(LETTERS))
    old = described(log_side)
    assert consumer.commit({0: Committed(5, 1)})
    log_side.recreate_topic(2)
    new = log_side.admin().describe()
    assert new is not None
    assert (new.log_id == old, new.partitions) == (False, 2)
    assert log_side.admin().log_ends(2) == {0: 0, 1: 0}
    assert log_side.admin().committed(new.log_id) == {}
    fresh = log_side.consumer(new.log_id)
    send(log_side, (KEYS[0], b"new"))
    assert [one.value for one in read(fresh, 1)] == [b"new"]


def test_a_topic_that_is_gone_is_described_as_none(log_side: LogSide) -> None:
    admin = log_side.admin()
    log_side.delete_topic()
    wait_until(lambda: admin.describe() is None)
    admin.create_topics(PARTITIONS, 1)
    assert admin.describe() is not None


def join_without_fetching(consumer: LogConsumer) -> None:
    """Poll until partitions are assigned."""
    wait_until(lambda: bool(consumer.poll(10, 1) or consumer.assignment()))
