"""A producer whose broker has forgotten it: the broker was restarted empty, or the topic is another."""

from __future__ import annotations

import os
import time
from pathlib import Path

from embedded.children import Child
from embedded.environment import clean_environment
from embedded.ports import LOOPBACK, find_free_port
from embedded.services import describe_broker
from schemas.settings import load_settings
from stores.kafka_admin import KafkaLogAdmin
from stores.kafka_producer import KafkaLogProducer
from stores.log import Acknowledged, LogUnavailable


def test_a_producer_goes_on_once_a_broker_that_was_emptied_has_its_topics_again(tmp_path: Path) -> None:
    port = find_free_port()
    broker = Child(describe_broker(port, clean_environment(os.environ)), tmp_path / "broker.log")
    settings = load_settings({"STANDINGS_KAFKA": f"{LOOPBACK}:{port}"})
    admin, producer = KafkaLogAdmin(settings), KafkaLogProducer(settings)
    topic = settings.names.events
    try:
        for _ in range(3):
            broker.kill()
            broker.start()
            assert broker.wait_until_ready()
            _insist(admin)
            assert _send(producer, topic).offset >= 0
    finally:
        producer.close()
        admin.close()
        broker.kill()


def test_a_producer_whose_number_was_given_to_another_loses_nothing_that_it_calls_accepted(tmp_path: Path) -> None:
    port = find_free_port()
    broker = Child(describe_broker(port, clean_environment(os.environ)), tmp_path / "broker.log")
    settings = load_settings({"STANDINGS_KAFKA": f"{LOOPBACK}:{port}"})
    admin = KafkaLogAdmin(settings)
    older, newer = KafkaLogProducer(settings), KafkaLogProducer(settings)
    topic = settings.names.events
    try:
        broker.start()
        assert broker.wait_until_ready()
        _insist(admin)
        for _ in range(3):
            _send(older, topic)
        broker.kill()
        broker.start()
        assert broker.wait_until_ready()
        _insist(admin)
        places = [_send(newer, topic) for _ in range(5)]
        # The emptied broker knows these two by one number: what the older sends next looks like a repeat.
        places += [_send(who, topic) for who in (older, older, older, newer, older, newer)]
        assert sorted((one.partition, one.offset) for one in places) == [(places[0].partition, n) for n in range(11)]
        assert sum(admin.log_ends(2).values()) == len(places)
    finally:
        older.close()
        newer.close()
        admin.close()
        broker.kill()


def _insist(admin: KafkaLogAdmin) -> None:
    give_up_at = time.monotonic() + 10
    while True:
        try:
            return admin.create_topics(2, 1)
        except LogUnavailable:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.1)


def _send(producer: KafkaLogProducer, topic: str) -> Acknowledged:
    """What a client does: again, until it is acknowledged."""
    give_up_at = time.monotonic() + 30
    while True:
        try:
            return producer.send(topic, b"key", b"value").result(15)
        except LogUnavailable:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.1)
