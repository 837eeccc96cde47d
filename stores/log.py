"""The log: what Standings asks of Kafka, as a contract that the real adapter and the in-memory fake both keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from schemas.errors import StoreUnavailable


class LogChanged(Exception):
    """The topic was deleted or made anew: end the work on the old log at once and join the new one."""


class LogUnavailable(StoreUnavailable):
    """The log did not answer. `accepted`: whether a record may be in it, False (certainly not) or None (unknown)."""

    def __init__(self, message: str, *, accepted: bool | None = None) -> None:
        super().__init__(message)
        self.accepted = accepted


class RecordTooLarge(LogUnavailable):
    """The log takes no record of this size, now or ever: send less of it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, accepted=False)


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `timestamp` in epoch ms; `appended`: the broker set it when it took the record."""

    partition: int
    offset: int
    timestamp: int
    appended: bool
    key: bytes | None
    value: bytes | None


class Acknowledged(NamedTuple):
    """Where the log put a record, and the time it bears there (epoch ms)."""

    partition: int
    offset: int
    timestamp: int


class Committed(NamedTuple):
    """A committed offset: all records below are in the truth. `as_of`: epoch ms or None where nothing is known."""

    offset: int
    as_of: int | None


@dataclass(frozen=True, slots=True)
class LogDescription:
    """Which log this is (the topic's id, new after it was made anew) and how many partitions it has."""

    log_id: str
    partitions: int


class LogConsumer(Protocol):
    """An updater's place in the consumer group of one log. One thread owns it."""

    def poll(self, timeout_ms: int, max_records: int) -> list[Record]:
        """Records in offset order per partition, after what was returned before or the seek target.

        Only committed records of transactions. May change the assignment, and then returns nothing.
        Raises LogUnavailable.
        """

    @property
    def generation(self) -> int:
        """Grows whenever the assignment may have changed."""

    def assignment(self) -> frozenset[int]:
        """The partitions that are this consumer's since the last poll."""

    def position(self, partition: int) -> int:
        """The offset of the next record: after an assignment the committed one, else the log's start."""

    def committed(self, partition: int) -> int | None:
        """The offset that the group has committed."""

    def seek(self, partition: int, offset: int) -> None:
        """Go on from this offset."""

    def pause(self) -> None:
        """Return no records of any owned partition until resumed; polls still keep the membership."""

    def resume(self) -> None:
        """Return records again."""

    def commit(self, offsets: Mapping[int, Committed]) -> bool:
        """Commit; False where the partitions have gone to another consumer. Raises LogUnavailable."""

    def log_start(self, partition: int) -> int:
        """The first offset that the log still has, by the leader."""

    def caught_up(self, positions: Mapping[int, int]) -> frozenset[int]:
        """Those partitions of which all records accepted before this call stand below the position.

        Only on evidence: an empty poll proves nothing. The leaders are asked.
        """

    def close(self) -> None:
        """Leave the group. Commits nothing."""


class LogProducer(Protocol):
    """Appends records, durable once acknowledged: idempotent, acks=all, bounded in flight. Threads may share it."""

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes,
        timestamp: int | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Future[Acknowledged]:
        """Append one record. The future gives where it stands, or LogUnavailable.

        May block for seconds while the brokers or the topic are not known yet: never call it in an event
        loop. Raises LogUnavailable(accepted=False) when that fails, and at once when too much is in flight.
        """

    def close(self) -> None:
        """Sends what is in flight, bounded, and ends."""


class LogAdmin(Protocol):
    """Questions about a topic and its group, answered by the brokers, never from a cache."""

    def describe(self) -> LogDescription | None:
        """Which log the topic is now; None where there is none. Raises LogUnavailable."""

    def committed(self, log_id: str) -> dict[int, Committed]:
        """What the group of this log has committed."""

    def log_starts(self, partitions: int) -> dict[int, int]:
        """The first offset that the log still has, for each partition."""

    def log_ends(self, partitions: int) -> dict[int, int]:
        """The next offset of each partition, by its leader."""

    def rewind_group(self, log_id: str, offsets: Mapping[int, int]) -> None:
        """Commit these offsets for the group of this log; refused (LogUnavailable) while updaters are in it."""

    def create_topics(self, partitions: int, replication: int) -> None:
        """Create the topics of events and of dead letters where they are absent."""

    def add_partitions(self, partitions: int, *, only_ask: bool = False) -> None:
        """Let the topic of events have so many partitions, or only ask whether that would be done.

        Ask, tell the lanes, and then do it.
        """

    def close(self) -> None:
        """End the connections."""
