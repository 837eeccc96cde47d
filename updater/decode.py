"""Step 1, decode: a record is an event of a known leaderboard, or a dead letter with its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from schemas.errors import InvalidEvent, MalformedJson, UnknownLeaderboard
from schemas.events import MatchEvent, body_of, parse_event
from schemas.leaderboards import MAX_AHEAD_MS
from schemas.times import DAY_MS
from schemas.wire import decode_json
from stores.log import Record
from stores.registry import Registry
from updater.batch import DeadLetter, Decoded


class Decoder:
    """Decodes records by the definitions of the registry."""

    def __init__(self, registry: Registry, clock_skew_ms: int, now_at: Callable[[], int]) -> None:
        self._registry = registry
        self._now_at = now_at
        self._clock_skew_ms = clock_skew_ms

    def decode(self, records: Sequence[Record]) -> list[Decoded]:
        """What each record is. Raises StoreUnavailable when the definitions can't be read.

        A leaderboard that isn't known here is looked up once more: only what is absent in a read
        younger than the record is dead.
        """
        latest_at = self._now_at() + DAY_MS
        found = [Decoded(record, self._decode(record, latest_at)) for record in records]
        if any(isinstance(one.outcome, DeadLetter) and one.outcome.reason == "leaderboard-not-found" for one in found):
            self._registry.reread()
            found = [Decoded(record, self._decode(record, latest_at)) for record in records]
        return found

    def _decode(self, record: Record, latest_at: int) -> MatchEvent | DeadLetter:
        if not record.appended and record.timestamp > latest_at:
            # Rebuilds and audits know the boards of a day ahead (Leaderboard.existing_boards), and no others.
            return DeadLetter(
                record, "invalid-timestamp", "the record's timestamp is more than a day ahead of the clock"
            )
        # The record's own time decides what is too far ahead, so that a replay decides the same. Where
        # the broker set that time, its clock may be a little behind the one that accepted the event.
        ahead_ms = MAX_AHEAD_MS + (self._clock_skew_ms if record.appended else 0)
        try:
            value = decode_json(record.value or b"")
            event = parse_event(value, body_of(value), self._registry.leaderboards, record.timestamp, ahead_ms)
        except MalformedJson as error:
            return DeadLetter(record, "invalid-json", str(error))
        except InvalidEvent as error:
            return DeadLetter(record, "invalid-request", str(error))
        except UnknownLeaderboard as error:
            return DeadLetter(record, "leaderboard-not-found", str(error))
        if record.key != event.match_id.encode("utf-8"):
            # Reports of one match under several keys could be applied at once, and neither be the first.
            return DeadLetter(record, "invalid-key", "the record's key must be the match id in UTF-8")
        return event
