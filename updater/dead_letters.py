"""Dead letters: records that can never be applied, kept with their reason and untouched bytes."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.errors import StandingsError
from schemas.keys import Names
from stores.dead_letters import DETAIL, OFFSET, PARTITION, REASON, TIMESTAMP, TOPIC
from stores.log import LogProducer, LogUnavailable
from updater.batch import DeadLetter, Decoded

DELIVERY_TIMEOUT_S = 12.0
_SEEN = 1_000
_FEW = 100


class TooManyDeadLetters(StandingsError):
    """Nearly everything would be dead-lettered: this is a bad deploy, not bad events. Stop; nothing was dropped."""


class DeadLetters:
    """Sends dead letters and waits until they are durable."""

    def __init__(self, producer: LogProducer, names: Names, max_share: float) -> None:
        self._producer = producer
        self._names = names
        self._max_share = max_share
        self._recent: dict[tuple[int, int], bool] = {}

    def weigh(self, decoded: Sequence[Decoded]) -> None:
        """Raises TooManyDeadLetters when more than the allowed share of the last 1,000 events can't be decoded.

        Conflicts don't count: they are about the matches, not about the deploy. A record that is fetched
        again and again while a store is away counts once.
        """
        for one in decoded:
            place = one.record.partition, one.record.offset
            self._recent.pop(place, None)
            self._recent[place] = isinstance(one.outcome, DeadLetter)
        while len(self._recent) > _SEEN:
            del self._recent[next(iter(self._recent))]
        dead = sum(self._recent.values())
        if len(self._recent) >= _FEW and dead > self._max_share * len(self._recent):
            raise TooManyDeadLetters(
                f"{dead} of the last {len(self._recent)} events would be dead-lettered, more than the share of "
                f"{self._max_share:g} that STANDINGS_MAX_DEAD_LETTER_SHARE allows; set it to 1 to let them go"
            )

    def send(self, letters: Sequence[DeadLetter]) -> None:
        """Append each to the topic of dead letters; returns once all are acknowledged, else StoreUnavailable."""
        waiting = [
            self._producer.send(
                self._names.dead_letters, one.record.key, one.record.value or b"", headers=self._headers(one)
            )
            for one in letters
        ]
        for delivery in waiting:
            try:
                delivery.result(DELIVERY_TIMEOUT_S)
            except TimeoutError as error:
                raise LogUnavailable("a dead letter was not acknowledged in time") from error

    def _headers(self, letter: DeadLetter) -> list[tuple[str, bytes]]:
        record = letter.record
        return [
            (REASON, letter.reason.encode()),
            (DETAIL, letter.detail[:2_000].encode("utf-8", "replace")),
            (TOPIC, self._names.events.encode()),
            (PARTITION, str(record.partition).encode()),
            (OFFSET, str(record.offset).encode()),
            (TIMESTAMP, str(record.timestamp).encode()),
        ]
