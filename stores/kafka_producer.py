"""Writing to the log on Kafka: acknowledged by all replicas, without repeats, and bounded."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from kafka import KafkaProducer
from kafka.errors import KafkaError

from schemas.settings import Settings
from stores.kafka_clients import MAX_RECORD_BYTES, REQUEST_TIMEOUT_MS, TOO_LARGE, kafka_options, log_errors, open_client
from stores.log import Acknowledged, LogUnavailable, RecordTooLarge


class KafkaLogProducer:
    """See LogProducer. kafka-python's own buffer has no bound, so this one counts what is in flight."""

    def __init__(self, settings: Settings) -> None:
        self._limit = settings.max_in_flight
        self._in_flight = 0
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._make: Callable[[], Any] = lambda: open_client(KafkaProducer, kafka_options(settings) | {
            "acks": "all",
            "enable_idempotence": True,
            "retries": 2**31 - 1,
            "max_in_flight_requests_per_connection": 5,
            "delivery_timeout_ms": 2 * REQUEST_TIMEOUT_MS,
            "max_block_ms": REQUEST_TIMEOUT_MS,
            "linger_ms": 2,
            "max_request_size": MAX_RECORD_BYTES,
            "batch_size": 131_072,
            "allow_auto_create_topics": False,
        })  # fmt: skip
        self._producer: Any = None

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes,
        timestamp: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Future[Acknowledged]:
        with self._lock:
            if self._in_flight >= self._limit:
                raise LogUnavailable(f"{self._limit} records are in flight already", accepted=False)
            self._in_flight += 1
        done: Future[Acknowledged] = Future()
        try:
            with log_errors("take a record", accepted=False):
                producer = self._connected()
                sending = producer.send(topic, value, key=key, timestamp_ms=timestamp, headers=list(headers))
        except LogUnavailable:
            self._finished()
            raise
        sending.add_callback(self._succeed, producer, done)
        sending.add_errback(self._fail, producer, done)
        return done

    def close(self) -> None:
        if self._producer is not None:
            _close(self._producer)

    def _connected(self) -> Any:
        with self._opening:
            if self._producer is None:
                self._producer = self._make()
            return self._producer

    def _succeed(self, producer: Any, done: Future[Acknowledged], metadata: Any) -> None:
        if metadata.offset < 0:
            # Taken for a repeat. A broker that lost its memory gives producers' numbers again: it may never have
            # met this record, and have met another producer under the same number.
            self._fail(producer, done, KafkaError("taken for a repeat of what the log does not show"))
            return
        self._finished()
        done.set_result(Acknowledged(metadata.partition, metadata.offset, metadata.timestamp))

    def _fail(self, producer: Any, done: Future[Acknowledged], error: BaseException) -> None:
        self._finished()
        unavailable: LogUnavailable
        if isinstance(error, TOO_LARGE):
            unavailable = RecordTooLarge(f"Kafka did not acknowledge: {error}")
        else:
            self._replace(producer)
            unavailable = LogUnavailable(f"Kafka did not acknowledge: {error}", accepted=None)
        unavailable.__cause__ = error
        done.set_exception(unavailable)

    def _replace(self, producer: Any) -> None:
        """The next record gets a new producer: an idempotent one that the brokers no longer know fails for ever."""
        with self._lock:
            if self._producer is not producer:
                return
            self._producer = None
        # This is the producer's own thread, and closing waits for it.
        threading.Thread(target=_close, args=(producer,), name="producer-close", daemon=True).start()

    def _finished(self) -> None:
        with self._lock:
            self._in_flight -= 1


def _close(producer: Any) -> None:
    with log_errors("close the producer"):
        producer.close(timeout=REQUEST_TIMEOUT_MS / 1000)
