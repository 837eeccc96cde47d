"""Real results: the sample that ships, and all goals of international football where they lie beside the project."""

from __future__ import annotations

import json
import random
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from samples.goalscorers import Match, matches_from_csv
from schemas.settings import load_settings
from schemas.times import parse_time
from stores import kafka_admin
from tests.e2e.stack import ROOT, RunningStack, running_stack, wait_for

GOALSCORERS = ROOT.parent / "shared" / "data" / "football" / "goalscorers.csv"
TOP_OF_THE_SAMPLE = [
    ("Russia|Oleg Salenko", 5), ("Poland|Ernst Wilimowski", 4), ("Brazil|Ademir de Menezes", 4),
    ("Hungary|Sándor Kocsis", 4), ("France|Just Fontaine", 4), ("Portugal|Eusébio", 4),
    ("Spain|Emilio Butragueño", 4), ("United States|Bert Patenaude", 3), ("Argentina|Guillermo Stábile", 3),
    ("Uruguay|Pedro Cea", 3),
]  # fmt: skip
TOP_OF_ALL = [
    ("Australia|Archie Thompson", 13, "2001-04-11"), ("Australia|David Zdrilic", 8, "2001-04-11"),
    ("Australia|Gary Cole", 7, "1981-08-14"), ("Mexico|Luís Roberto Alves", 7, "1993-07-11"),
    ("Iran|Karim Bagheri", 7, "1997-06-02"),
]  # fmt: skip


def test_the_demo_shows_the_sample_and_goes_on_with_a_live_game(tmp_path: Path) -> None:
    with running_stack(tmp_path, "--sample", "football") as stack:
        wait_for("the game is on", lambda: "a live game is on" in stack.output.read_text(), 60)
        size = len(stack.entries("goals:all"))
        assert stack.entries("goals:all")[:10] == TOP_OF_THE_SAMPLE
        printed = re.findall(r"^ +\d+ +(.+?) +(\d+) +\d{4}-", stack.output.read_text(), re.MULTILINE)
        assert [(player, int(score)) for player, score in printed] == TOP_OF_THE_SAMPLE
        for window in ("daily", "weekly"):
            first = stack.entries(f"arena:{window}")
            wait_for(f"the {window} board moves", lambda: stack.entries(f"arena:{window}") != first)  # noqa: B023
        leaders = r"^\S+Z  arena:daily:\S+  1\. \w+ \d+  2\. \w+ \d+"
        wait_for("its leaders are told", lambda: re.search(leaders, stack.output.read_text(), re.MULTILINE) is not None)
        # The drill: Redis is killed and its data deleted while the game goes on.
        killed = stack.wipe_redis()
        sys.stdout.write(f"\nthe demo healed after {stack.watch_healing('goals:all', size, killed):.1f} s\n")
        assert stack.entries("goals:all")[:10] == TOP_OF_THE_SAMPLE
        stack.audit()
        stack.stop(signal.SIGINT)


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.skipif(not GOALSCORERS.exists(), reason="goalscorers.csv is not beside this checkout")
def test_all_goals_come_out_exactly_and_again_after_everything_twice_in_any_order(
    stack: RunningStack, tmp_path: Path
) -> None:
    matches = list(matches_from_csv(GOALSCORERS))
    assert (len(matches), sum(len(match["results"]) for match in matches)) == (15_453, 39_980)
    for match in matches:
        match["leaderboard"] = "allgoals"
    stack.apply("allgoals", max=100, starts_at="1870-01-01T00:00:00Z", ends_at="2070-01-01T00:00:00Z")
    wanted = _best_by_a_plain_sort(matches)
    seed = random.randrange(2**32)
    sys.stdout.write(f"\nshuffled by seed {seed}\n")
    again = matches * 2
    random.Random(seed).shuffle(again)
    for fed in (matches, again):
        began_s = time.monotonic()
        file = tmp_path / "matches.ndjson"
        file.write_text("".join(json.dumps(match) + "\n" for match in fed))
        done = stack.command("submit", str(file))
        assert (done.returncode, done.stderr) == (0, "")
        wait_for("all is applied", lambda: is_drained(stack), 120)
        sys.stdout.write(f"{len(fed)} matches in {time.monotonic() - began_s:.1f} s\n")
        assert stack.entries("allgoals:all") == wanted
    first = stack.get("/v1/boards/allgoals:all/top", n=5).json()["entries"]
    assert [(one["player_id"], one["score"], one["achieved_at"][:10]) for one in first] == TOP_OF_ALL
    stack.audit("--board", "allgoals:all")


def is_drained(stack: RunningStack) -> bool:
    """Everything on the log is recorded and projected."""
    return kafka_admin.is_drained(load_settings({"STANDINGS_KAFKA": stack.file["kafka"]}))


def _best_by_a_plain_sort(matches: list[Match]) -> list[tuple[str, int]]:
    """Most goals in one match; then the earlier match; then the player's bytes, descending."""
    best: dict[str, tuple[int, int]] = {}
    for match in matches:
        ended_at = parse_time(match["ended_at"])
        for result in match["results"]:
            player, goals = result["player_id"], result["score"]
            best[player] = max(best.get(player, (-1, 0)), (goals, -ended_at))
    by_player = sorted(best.items(), key=lambda one: (one[1], one[0].encode()), reverse=True)
    return [(player, goals) for player, (goals, _) in by_player]
