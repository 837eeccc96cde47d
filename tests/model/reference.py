"""What has to come out, in so few lines that one can see that it is right. It knows nothing of the code under test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

_S, _H, _DAY = 1_000, 3_600_000, 86_400_000
SPANS = {"all": 2**32 * _S, "daily": _DAY, "weekly": 7 * _DAY, "monthly": 31 * _DAY}
# For each window the tie resolution in ms that has to come out of the bounds; None where the score takes all bits.
LEADERBOARDS: dict[str, dict[str, Any]] = {
    "fine": {"order": "higher", "min": 0, "max": 3, "ticks": {"all": 1, "daily": 1}},
    "coarse": {
        "order": "lower",
        "min": 0,
        "max": 2**30,
        "ticks": {"all": _H, "daily": 100, "weekly": _S, "monthly": _S},
    },
    "flat": {"order": "higher", "min": -(2**52), "max": 2**52 - 1, "ticks": {"all": None, "daily": None}},
}
AHEAD_MS = 300_000 + 500  # the rule's five minutes, and how far clocks may differ

Best = tuple[int, int, int, str]  # score, packed, achieved_at, match_id


@dataclass
class Reference:
    """The rows, receipts and dead letters that these reports make, told in the order of arrival of each match."""

    rows: dict[tuple[str, str], Best] = field(default_factory=dict)
    receipts: dict[tuple[str, str], tuple[dict[str, int], int, bool]] = field(default_factory=dict)

    def tell(self, body: Mapping[str, Any], accepted_at: int) -> str | None:
        """One report; the reason why it is a dead letter, or None."""
        name, given_at = body["leaderboard"], body.get("ended_ms")
        ended_at = accepted_at if given_at is None else given_at
        results = {one["player_id"]: one["score"] for one in body.get("results", [body])}
        leaderboard = LEADERBOARDS.get(name)
        if leaderboard is None:
            return "leaderboard-not-found"
        in_bounds = all(leaderboard["min"] <= score <= leaderboard["max"] for score in results.values())
        if not in_bounds or ended_at > accepted_at + AHEAD_MS:
            return "invalid-request"
        part = name + ("#*" if "results" in body else "#=" + body["player_id"])
        known = self.receipts.get((body["match_id"], part))
        if known is not None:
            same_time = known[1] == ended_at or given_at is None or not known[2]
            return None if known[0] == results and same_time else "match-conflict"
        self.receipts[body["match_id"], part] = results, ended_at, given_at is not None
        for board, player_id, image in images(name, results, ended_at, body["match_id"]):
            known_best = self.rows.get((board, player_id))
            if known_best is None or _rank(image) < _rank(known_best):
                self.rows[board, player_id] = image
        return None


def images(name: str, results: Mapping[str, int], ended_at: int, match_id: str) -> list[tuple[str, str, Best]]:
    """What a match brings: board, player, and the row that it wants to be."""
    found = []
    for kind, tick_ms in LEADERBOARDS[name]["ticks"].items():
        window, starts_at, _ = window_of(kind, ended_at)
        bits = 0 if tick_ms is None else (-(-SPANS[kind] // tick_ms) - 1).bit_length()
        left = 0 if tick_ms is None else 2**bits - 1 - (ended_at - starts_at) // tick_ms
        for player_id, score in results.items():
            worst = LEADERBOARDS[name]["min" if LEADERBOARDS[name]["order"] == "higher" else "max"]
            found.append(
                (f"{name}:{window}", player_id, (score, abs(score - worst) * 2**bits + left, ended_at, match_id))
            )
    return found


def window_of(kind: str, at_ms: int) -> tuple[str, int, int]:
    """The window's name, start and end."""
    day = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms // _DAY * _DAY)
    if kind == "all":
        return "all", 0, SPANS["all"]
    if kind == "daily":
        return day.strftime("daily:%Y-%m-%d"), _ms(day), _ms(day + timedelta(days=1))
    if kind == "weekly":
        monday = day - timedelta(days=day.weekday())
        return day.strftime("weekly:%G-W%V"), _ms(monday), _ms(monday + timedelta(days=7))
    first = day.replace(day=1)
    return day.strftime("monthly:%Y-%m"), _ms(first), _ms((first + timedelta(days=31)).replace(day=1))


def _rank(image: Best) -> tuple[int, int, str]:
    """Less is better."""
    return -image[1], image[2], image[3]


def _ms(day: datetime) -> int:
    return int(day.timestamp()) * 1_000
