"""The log when brokers are slow, stopped, dead, or willing to make topics that nobody asked for."""

from __future__ import annotations

import gc
import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from embedded.children import Child
from embedded.environment import clean_environment
from embedded.ports import find_free_port
from embedded.services import describe_broker
from embedded.single import running_child
from stores.log import Acknowledged, Committed, LogUnavailable
from tests.contract.log_side import PARTITIONS, KafkaSide, LogSide, MemorySide, described, join, read, send, wait_until
from tests.servers.kafka import Kafka, running_kafka
from tests.servers.missing import Missing, skip_or_fail

# kafka-python leaves the sockets of failed connections to the garbage collector.
pytestmark = [pytest.mark.contract, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]

# kafka-python's time-outs are 5 s; a delivery may take two of them.
CALL_S = 8.0
DELIVERY_S = 14.0


class Outage:
    """A side whose brokers can be stopped and, all at once, killed."""

    def __init__(self, side: MemorySide | KafkaSide, send_signal: Callable[[signal.Signals], None] | None) -> None:
        self.side: LogSide = side
        self._memory = side.log if isinstance(side, MemorySide) else None
        self._send_signal = send_signal

    def stop(self) -> None:
        """Brokers take requests and don't answer."""
        if self._send_signal is not None:
            self._send_signal(signal.SIGSTOP)
        elif self._memory is not None:
            self._memory.hold_acknowledgements()

    def go_on(self) -> None:
        if self._send_signal is not None:
            self._send_signal(signal.SIGCONT)
        elif self._memory is not None:
            self._memory.release_acknowledgements()

    def kill(self) -> None:
        """There are no brokers."""
        if self._send_signal is not None:
            self._send_signal(signal.SIGKILL)
        elif self._memory is not None:
            self._memory.available = False


@pytest.fixture(params=["fake", "real"])
def outage(request: pytest.FixtureRequest, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Outage]:
    # Records of the log would keep what they tell of, and with it the sockets.
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    if request.param == "fake":
        side = MemorySide()
        side.admin().create_topics(PARTITIONS, 1)
        yield Outage(side, None)
        return
    port = find_free_port()
    with running_child(describe_broker(port, clean_environment(os.environ)), tmp_path) as child:
        broker = KafkaSide(f"127.0.0.1:{port}", session_timeout_ms=1_000)
        broker.admin().create_topics(PARTITIONS, 1)
        given = Outage(broker, lambda which: os.kill(running(child), which))
        yield given
        if child.is_running():
            os.kill(child.pid, signal.SIGCONT)
        else:
            # The ends of connections to nobody are no part of the contract.
            broker.forget()
        broker.close()
    # Here, and not in a test of somebody else's, where it would be an error.
    vars(given).clear()
    vars(broker).clear()
    gc.collect()


def running(child: Child) -> int:
    """The process that listens."""
    assert child.is_running()
    return child.pid


def is_unavailable(limit_s: float, call: Callable[[], Any]) -> LogUnavailable:
    """The call fails as it must, within the time."""
    began_at = time.monotonic()
    with pytest.raises(LogUnavailable) as failure:
        call()
    assert time.monotonic() - began_at < limit_s
    return failure.value


def test_no_more_records_are_in_flight_than_the_setting_says(outage: Outage) -> None:
    side = outage.side
    producer = side.producer(max_in_flight=3)
    producer.send(side.names.events, b"key", b"first").result(10)
    outage.stop()
    waiting = [producer.send(side.names.events, b"key", b"%d" % n) for n in range(3)]
    refused = is_unavailable(0.1, lambda: producer.send(side.names.events, b"key", b"too much"))
    assert refused.accepted is False
    outage.go_on()
    acknowledged = [one.result(DELIVERY_S) for one in waiting]
    assert [one.offset for one in acknowledged] == [1, 2, 3]
    later = producer.send(side.names.events, b"key", b"later").result(10)
    assert later == Acknowledged(acknowledged[0].partition, 4, later.timestamp)
    assert [one.value for one in read(side.consumer(), 5)] == [b"first", b"0", b"1", b"2", b"later"]


def test_without_brokers_everything_is_unavailable_in_bounded_time(outage: Outage) -> None:
    side = outage.side
    producer, admin, consumer = side.producer(), side.admin(), side.consumer()
    producer.send(side.names.events, b"key", b"value").result(10)
    log_id = described(side)
    admin.describe()
    join(consumer)
    outage.kill()
    waiting = producer.send(side.names.events, b"key", b"lost?")
    for ask in (
        admin.describe,
        lambda: admin.committed(log_id),
        lambda: consumer.caught_up(dict.fromkeys(range(PARTITIONS), 0)),
        lambda: consumer.commit({0: Committed(1, None)}),
    ):
        is_unavailable(CALL_S, ask)
    began_at = time.monotonic()
    assert consumer.poll(200, 10) == []
    assert time.monotonic() - began_at < CALL_S
    # Nobody knows whether it was taken.
    assert is_unavailable(DELIVERY_S, lambda: waiting.result(DELIVERY_S)).accepted is None


def test_a_consumer_can_not_be_made_without_brokers(outage: Outage) -> None:
    log_id = described(outage.side)
    outage.kill()
    is_unavailable(CALL_S, lambda: outage.side.consumer(log_id))


# ---------------------------------------------------------------- an Apache Kafka of its own


@pytest.fixture
def own_kafka(tmp_path: Path) -> Iterator[Kafka]:
    """One that makes topics on demand, which is Kafka's default."""
    settings = {"group.min.session.timeout.ms": "500", "auto.create.topics.enable": "true"}
    try:
        with running_kafka(tmp_path, settings=settings) as kafka:
            yield kafka
    except Missing as missing:
        skip_or_fail(missing)


@pytest.fixture
def kafka_side(own_kafka: Kafka) -> Iterator[KafkaSide]:
    side = KafkaSide(own_kafka.bootstrap, session_timeout_ms=3_000)
    side.admin().create_topics(PARTITIONS, 1)
    yield side
    side.close()


@pytest.mark.kafka
@pytest.mark.slow
def test_a_deleted_topic_stays_deleted_although_clients_go_on_asking_for_it(kafka_side: KafkaSide) -> None:
    producer, consumer = kafka_side.producer(), kafka_side.consumer()
    producer.send(kafka_side.names.events, b"key", b"value").result(10)
    join(consumer)
    kafka_side.delete_topic()
    admin = kafka_side.admin()
    wait_until(lambda: admin.describe() is None)
    fresh = kafka_side.producer()
    assert is_unavailable(CALL_S, lambda: fresh.send(kafka_side.names.events, b"key", b"value")).accepted is False
    for _ in range(20):
        consumer.poll(100, 10)
        assert admin.describe() is None


@pytest.mark.kafka
@pytest.mark.slow
def test_a_record_that_had_to_be_sent_again_is_in_the_log_once(own_kafka: Kafka, kafka_side: KafkaSide) -> None:
    (first,) = send(kafka_side, (b"key", b"first"))
    producer = kafka_side.producer()
    producer.send(kafka_side.names.events, b"key", b"second").result(10)
    os.kill(own_kafka.pid, signal.SIGSTOP)
    waiting = [producer.send(kafka_side.names.events, b"key", b"%d" % n) for n in range(20)]
    # Longer than a request may take, so that all are sent once more.
    time.sleep(6)
    os.kill(own_kafka.pid, signal.SIGCONT)
    offsets = [one.result(DELIVERY_S).offset for one in waiting]
    assert offsets == list(range(first.offset + 2, first.offset + 22))
    found = read(kafka_side.consumer(), 22)
    assert [one.value for one in found] == [b"first", b"second", *[b"%d" % n for n in range(20)]]
