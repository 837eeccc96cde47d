"""Clients of kafka-python: how they reach the brokers, what they raise, and nothing left behind when these are away."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka.errors import KafkaError, MessageSizeTooLargeError, RecordListTooLargeError
from kafka.net.compat import KafkaNetClient

from schemas.settings import Settings
from stores.log import LogUnavailable, RecordTooLarge

REQUEST_TIMEOUT_MS = 5_000
MAX_RECORD_BYTES = 2 * 1024 * 1024
TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError)


def kafka_options(settings: Settings) -> dict[str, Any]:
    """What every client needs to reach the brokers."""
    options: dict[str, Any] = {
        "bootstrap_servers": settings.kafka.split(","),
        "security_protocol": settings.kafka_security_protocol,
        "request_timeout_ms": REQUEST_TIMEOUT_MS,
        "bootstrap_timeout_ms": REQUEST_TIMEOUT_MS,
        "reconnect_backoff_max_ms": 1_000,
    }
    if settings.kafka_ca_file is not None:
        options["ssl_cafile"] = str(settings.kafka_ca_file)
    if settings.kafka_sasl_mechanism is not None:
        options["sasl_mechanism"] = settings.kafka_sasl_mechanism
        options["sasl_plain_username"] = settings.kafka_username
        password = settings.kafka_password
        options["sasl_plain_password"] = None if password is None else password.get_secret_value()
    return options


@contextmanager
def log_errors(what: str, *, accepted: bool | None = None) -> Iterator[None]:
    """Turns whatever kafka-python raises into LogUnavailable, keeping the cause."""
    try:
        yield
    except TOO_LARGE as error:
        raise RecordTooLarge(f"Kafka did not {what}: {error}") from error
    except (KafkaError, OSError, RuntimeError) as error:
        raise LogUnavailable(f"Kafka did not {what}: {type(error).__name__}: {error}", accepted=accepted) from error


def open_client(kind: Any, options: dict[str, Any]) -> Any:
    """A client of this class (admin, consumer, producer), which has met the brokers.

    Raises what its constructor raises. By itself that leaves a thread and sockets behind each time,
    and whoever asks every second while the brokers are away would run out of both.
    """
    made: list[Any] = []

    def make_net_client(**config: Any) -> Any:
        client = KafkaNetClient(**config)
        made.append(client)
        # kafka-python 3.0.12 takes this option and passes it to nobody. A broker that creates topics on demand,
        # which is Kafka's default, would make a deleted one anew, with one partition and the producers' times.
        client._manager.cluster.config["allow_auto_create_topics"] = False  # noqa: SLF001
        return client

    try:
        return kind(**options, kafka_client=make_net_client)
    except BaseException:
        for client in made:
            client.close()
        raise
