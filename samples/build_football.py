"""Makes the sample `football` from the data set: ``python -m samples.build_football DIR``.

DIR holds ``goalscorers.csv`` and ``results.csv`` (where they come from: README.md beside this
file). Writes ``football/matches.ndjson``: the World Cup's matches, one JSON body of
``POST /v1/matches`` a line, oldest first. The same input gives the same bytes.
"""

import csv
import json
import sys
from pathlib import Path
from typing import Final

from samples import path as sample_path
from samples.goalscorers import Fixture, matches_from_csv

TOURNAMENT: Final = "FIFA World Cup"


def tournament_match_ids(results: Path, tournament: str) -> frozenset[str]:
    """Return the match ids of one tournament in a ``results.csv``."""
    with results.open(encoding="utf-8", newline="") as file:
        return frozenset(
            "|".join(Fixture(row["date"], row["home_team"], row["away_team"]))
            for row in csv.DictReader(file)
            if row["tournament"] == tournament
        )


def build(data: Path, target: Path) -> int:
    """Write the sample's matches to ``target`` and return how many there are."""
    wanted = tournament_match_ids(data / "results.csv", TOURNAMENT)
    lines = [
        json.dumps(match, ensure_ascii=False, separators=(",", ":"))
        for match in matches_from_csv(data / "goalscorers.csv")
        if match["match_id"] in wanted
    ]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return len(lines)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m samples.build_football DIR", file=sys.stderr)
        return 2
    target = sample_path("football") / "matches.ndjson"
    count = build(Path(arguments[0]), target)
    print(f"{target.name}: {count} matches, {target.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
