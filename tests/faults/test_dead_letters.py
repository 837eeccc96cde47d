"""Dead letters of a topic that was made anew: its records stand where others stood before."""

from __future__ import annotations

from pathlib import Path

from embedded.single import running_broker
from schemas.settings import load_settings
from stores.dead_letters import OFFSET, PARTITION, REASON, TIMESTAMP, TOPIC, read_dead_letters
from stores.kafka_admin import KafkaLogAdmin
from stores.kafka_producer import KafkaLogProducer


def test_records_at_the_same_place_of_two_logs_are_two_dead_letters(tmp_path: Path) -> None:
    with running_broker(tmp_path) as address:
        settings = load_settings({"STANDINGS_KAFKA": address})
        admin, producer = KafkaLogAdmin(settings), KafkaLogProducer(settings)
        admin.create_topics(1, 1)
        for value, timestamp in ((b"old", b"1"), (b"old", b"1"), (b"new", b"2")):
            headers = [(REASON, b"r"), (TOPIC, b"t"), (PARTITION, b"0"), (OFFSET, b"7"), (TIMESTAMP, timestamp)]
            producer.send(settings.names.dead_letters, b"key", value, headers=headers).result(10)
        assert [letter.value for letter in read_dead_letters(settings)] == [b"old", b"new"]
        producer.close()
        admin.close()
