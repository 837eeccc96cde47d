"""What is reported: few matches, players, scores and times, so that they meet."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from tests.fakes.deployment import START_AT

_MINUTE_MS, _DAY_MS = 60_000, 86_400_000
# Two of one tick and two of one millisecond among them, the next day, and days whose boards are over.
TIMES = (0, 1, -40, -40, -41, -30 * _MINUTE_MS, -_DAY_MS, -3 * _DAY_MS, 3 * _MINUTE_MS, None, None)
SCORES = {"fine": (1, 2, 2, 3), "coarse": (0, 1, 1), "flat": (-(2**52), -1, 2**52 - 1)}
CHANGES = ("none", "order", "score", "time", "no time")

Body = dict[str, Any]


def reports(leaderboard: str, players: Sequence[str], matches: Sequence[str]) -> st.SearchStrategy[Body]:
    """Matches reported whole and single scores, with a time and without."""
    score, player = st.sampled_from(SCORES[leaderboard]), st.sampled_from(players)
    head = {"match_id": st.sampled_from(matches), "leaderboard": st.just(leaderboard)}
    results = st.dictionaries(player, score, min_size=1).map(
        lambda found: [{"player_id": player, "score": score} for player, score in found.items()]
    )
    time = st.sampled_from(TIMES).map(lambda after_ms: {} if after_ms is None else ended(START_AT + after_ms))
    whole = st.fixed_dictionaries({**head, "results": results})
    single = st.fixed_dictionaries({**head, "player_id": player, "score": score})
    return st.builds(lambda body, more: {**body, **more}, whole | single, time)


def changed(body: Body, change: str, score: int, after_ms: int) -> Body:
    """The same report once more: a repeat, or a conflict."""
    found = copy.deepcopy(body)
    if change == "order" and "results" in found:
        found["results"].reverse()
    elif change == "score":
        (found["results"][0] if "results" in found else found)["score"] = score
    elif change == "time":
        found |= ended(START_AT + after_ms)
    elif change == "no time":
        found = {name: one for name, one in found.items() if not name.startswith("ended")}
    return found


def ended(at_ms: int) -> Body:
    """The time as it is written, and beside it, for the reference alone, in ms."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)
    return {"ended_at": at.isoformat(timespec="milliseconds"), "ended_ms": at_ms}
