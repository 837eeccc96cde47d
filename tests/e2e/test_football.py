"""Real results: the sample that ships, and all goals of international football where they lie beside the project."""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

import pytest

from samples.goalscorers import Match, matches_from_csv
from schemas.times import parse_time
from tests.e2e.stack import ROOT, RunningStack, running_stack, wait_for

GOALSCORERS = ROOT.parent / "shared" / "data" / "football" / "goalscorers.csv"
TOP_OF_THE_SAMPLE = [
    ("Russia|Oleg Salenko", 5), ("Poland|Ernst Wilimowski", 4), ("Brazil|Ademir de Menezes", 4),
    ("Hungary|Sándor Kocsis", 4), ("France|Just Fontaine", 4), ("Portugal|Eusébio", 4),
    ("Spain|Emilio Butragueño", 4), ("United States|Bert Patenaude", 3), ("Argentina|Guillermo Stábile", 3),
    ("Uruguay|Pedro Cea", 3),
]  # fmt: skip
TOP_OF_ALL = [
    ("Australia|Archie Thompson", 13), ("Australia|David Zdrilic", 8), ("Australia|Gary Cole", 7),
    ("Mexico|Luís Roberto Alves", 7), ("Iran|Karim Bagheri", 7),
]  # fmt: skip


def test_the_demo_shows_the_sample_and_goes_on_with_a_live_game(tmp_path: Path) -> None:
    with running_stack(tmp_path, "--sample", "football") as stack:
        wait_for("the game is on", lambda: "a live game is on" in stack.output.read_text(), 60)
        assert stack.entries("goals:all")[:10] == TOP_OF_THE_SAMPLE
        printed = re.findall(r"^ +\d+ +(.+?) +(\d+) +\d{4}-", stack.output.read_text(), re.MULTILINE)
        assert [(player, int(score)) for player, score in printed] == TOP_OF_THE_SAMPLE
        for window in ("daily", "weekly"):
            first = stack.entries(f"arena:{window}")
            wait_for(f"the {window} board moves", lambda: stack.entries(f"arena:{window}") != first)  # noqa: B023


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not GOALSCORERS.exists(), reason="goalscorers.csv is not beside this checkout")
def test_all_goals_come_out_exactly_and_again_after_everything_twice_in_any_order(
    stack: RunningStack, tmp_path: Path
) -> None:
    matches = list(matches_from_csv(GOALSCORERS))
    for match in matches:
        match["leaderboard"] = "allgoals"
    assert sum(len(match["results"]) for match in matches) == 39_980
    stack.apply("allgoals", max=100, starts_at="1870-01-01T00:00:00Z", ends_at="2070-01-01T00:00:00Z")
    wanted = _best_by_a_plain_sort(matches)
    assert [(player, goals) for player, goals in wanted[:5]] == TOP_OF_ALL
    seed = random.randrange(2**32)
    sys.stdout.write(f"\nshuffled by seed {seed}\n")
    again = matches * 2
    random.Random(seed).shuffle(again)
    for fed in (matches, again):
        file = tmp_path / "matches.ndjson"
        file.write_text("".join(json.dumps(match) + "\n" for match in fed))
        done = stack.command("submit", str(file))
        assert done.returncode == 0, done.stderr
        position = json.loads(stack.command("submit", str(_last_line(file, tmp_path)), "--json").stdout)["position"]
        wait_for("all is applied", lambda: _is_applied(stack, position), 120)  # noqa: B023
        assert stack.entries("allgoals:all")[:20] == wanted[:20]
        assert sorted(stack.entries("allgoals:all")) == sorted(wanted)
    wait_for("nothing is under way", lambda: stack.command("audit", "--board", "allgoals:all").returncode == 0, 120)


def _best_by_a_plain_sort(matches: list[Match]) -> list[tuple[str, int]]:
    """Most goals in one match; then the earlier match; then the player's bytes, descending."""
    best: dict[str, tuple[int, int]] = {}
    for match in matches:
        ended_at = parse_time(str(match["ended_at"]))
        for result in match["results"]:
            player, goals = result["player_id"], result["score"]
            best[player] = max(best.get(player, (-1, 0)), (goals, -ended_at))
    by_player = sorted(best.items(), key=lambda one: (one[1], one[0].encode()), reverse=True)
    return [(player, goals) for player, (goals, _) in by_player]


def _last_line(file: Path, folder: Path) -> Path:
    last = folder / "last.ndjson"
    last.write_text(file.read_text().splitlines()[-1] + "\n")
    return last


def _is_applied(stack: RunningStack, position: str) -> bool:
    reply = stack.get("/v1/boards/allgoals:all/top", n=1, after=position, wait=5)
    lag = stack.command("status", "--json").stdout
    return reply.status_code == 200 and " 0 events not recorded" in lag
