"""Dead letters: records that can never be applied, kept with their reason and untouched bytes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from schemas.errors import StandingsError
from schemas.keys import Names
from stores.dead_letters import DETAIL, OFFSET, PARTITION, REASON, SHA256, SIZE, TIMESTAMP, TOPIC
from stores.log import Acknowledged, LogProducer, LogUnavailable, RecordTooLarge
from updater.batch import DeadLetter, Decoded

DELIVERY_TIMEOUT_S = 12.0
# What is kept of a record that is too large for the topic of dead letters.
_KEPT_KEY_BYTES = 1_024
_KEPT_VALUE_BYTES = 64 * 1_024
_SEEN = 1_000
_FEW = 100


Headers = list[tuple[str, bytes]]
Part = Callable[[DeadLetter], tuple[bytes | None, bytes, Headers]]


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
        """Append each to the topic of dead letters; returns once all are acknowledged, else StoreUnavailable.

        A record that is too large for that topic is kept as its beginning, with its size and hash: it must
        not stop what comes behind it.
        """
        waiting = [(one, self._begin(one, self._whole)) for one in letters]
        for letter, delivery in waiting:
            if delivery is None or not self._is_delivered(delivery):
                again = self._begin(letter, self._beginning)
                if again is None or not self._is_delivered(again):
                    raise LogUnavailable("not even the beginning of a dead letter fits into its topic")

    def _begin(self, letter: DeadLetter, part: Part) -> Future[Acknowledged] | None:
        """Send a part of it; None where that is too large to be sent at all."""
        key, value, more = part(letter)
        try:
            return self._producer.send(self._names.dead_letters, key, value, headers=[*self._headers(letter), *more])
        except RecordTooLarge:
            return None

    def _is_delivered(self, delivery: Future[Acknowledged]) -> bool:
        """False where the log will never take it. Raises LogUnavailable."""
        try:
            delivery.result(DELIVERY_TIMEOUT_S)
        except RecordTooLarge:
            return False
        except TimeoutError as error:
            raise LogUnavailable("a dead letter was not acknowledged in time") from error
        return True

    @staticmethod
    def _whole(letter: DeadLetter) -> tuple[bytes | None, bytes, Headers]:
        return letter.record.key, letter.record.value or b"", []

    @staticmethod
    def _beginning(letter: DeadLetter) -> tuple[bytes | None, bytes, Headers]:
        key, value = letter.record.key, letter.record.value or b""
        more = [(SIZE, str(len(value)).encode()), (SHA256, hashlib.sha256(value).hexdigest().encode())]
        return None if key is None else key[:_KEPT_KEY_BYTES], value[:_KEPT_VALUE_BYTES], more

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
