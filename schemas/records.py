"""The value of a record on the topic: a match event in its canonical form."""

from __future__ import annotations

from typing import Any

from schemas.events import MatchEvent
from schemas.times import format_time
from schemas.wire import encode_json


def encode_event(event: MatchEvent) -> bytes:
    """The event as a body of /v1/matches, or of /v1/scores for one player of a match.

    An end time that the publisher did not give is left out: the record's timestamp stands in for
    it, and a repeat without one is still the same.
    """
    body: dict[str, Any] = {"match_id": event.match_id, "leaderboard": event.leaderboard.name}
    if event.time_given:
        body["ended_at"] = format_time(event.ended_at)
    if event.whole:
        body["results"] = [{"player_id": player_id, "score": score} for player_id, score in event.results]
    else:
        ((body["player_id"], body["score"]),) = event.results
    return encode_json(body)
