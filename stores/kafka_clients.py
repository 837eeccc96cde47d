"""Making clients of kafka-python without leaving anything behind when the brokers are away."""

from __future__ import annotations

from typing import Any

from kafka.net.compat import KafkaNetClient


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
