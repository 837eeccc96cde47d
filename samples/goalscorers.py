"""Reads the football data set (one goal a line) as matches for the leaderboard `goals`."""

import csv
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypedDict

__all__ = ["Fixture", "Match", "Result", "matches_from_csv"]

LEADERBOARD: Final = "goals"
UNKNOWN: Final = frozenset({"", "NA"})


class Fixture(NamedTuple):
    """What tells one match from another in both files of the data set; sorts by date."""

    date: str
    home_team: str
    away_team: str


class Result(TypedDict):
    """One player's goals in one match; the player id is ``team|scorer``."""

    player_id: str
    score: int


class Match(TypedDict):
    """The JSON body of ``POST /v1/matches``."""

    match_id: str
    leaderboard: str
    ended_at: str
    results: list[Result]


def matches_from_csv(path: Path) -> Iterator[Match]:
    """Yield the matches of a ``goalscorers.csv`` in which a named player scored, oldest first.

    Own goals count for nobody and goals of unnamed scorers are left out, so a match that had no
    others is not yielded. The data set knows the day of a match and not its hour: a match ends at
    00:00 UTC of its day. The match id is ``date|home|away``. Reads the whole file before the first
    match, because the goals of one match need not stand together.
    """
    goals: defaultdict[Fixture, Counter[str]] = defaultdict(Counter)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["own_goal"] == "TRUE" or row["scorer"] in UNKNOWN:
                continue
            fixture = Fixture(row["date"], row["home_team"], row["away_team"])
            goals[fixture][f"{row['team']}|{row['scorer']}"] += 1
    for fixture in sorted(goals):
        yield {
            "match_id": "|".join(fixture),
            "leaderboard": LEADERBOARD,
            "ended_at": f"{fixture.date}T00:00:00Z",
            "results": [
                {"player_id": player_id, "score": score} for player_id, score in sorted(goals[fixture].items())
            ],
        }
