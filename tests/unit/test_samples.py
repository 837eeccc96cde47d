"""The shipped sample, and the rules by which it was counted."""

import json
import re
import tomllib
import unicodedata
from pathlib import Path

import pytest

import samples
from samples.build_football import build
from samples.goalscorers import matches_from_csv

GOALS = """date,home_team,away_team,team,scorer,minute,own_goal,penalty
1930-07-14,B,A,A,Zoé,3,FALSE,FALSE
1930-07-14,B,A,B,Amy,5,FALSE,FALSE
1930-07-13,A,B,B,Amy,NA,FALSE,FALSE
1930-07-13,A,B,B,Amy,NA,FALSE,FALSE
1930-07-13,A,B,B,Own,9,TRUE,FALSE
1930-07-13,A,B,B,NA,9,FALSE,FALSE
1930-07-15,C,D,C,Own,9,TRUE,FALSE
"""
RESULTS = """date,home_team,away_team,home_score,away_score,tournament,city,country,neutral
1930-07-13,A,B,0,4,FIFA World Cup,X,Y,TRUE
1930-07-14,B,A,1,1,Friendly,X,Y,TRUE
1930-07-15,C,D,1,0,FIFA World Cup,X,Y,TRUE
"""
FIRST = {
    "match_id": "1930-07-13|A|B",
    "leaderboard": "goals",
    "ended_at": "1930-07-13T00:00:00Z",
    "results": [{"player_id": "B|Amy", "score": 2}],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "goalscorers.csv").write_text(GOALS, encoding="utf-8")
    (tmp_path / "results.csv").write_text(RESULTS, encoding="utf-8")
    return tmp_path


def test_own_goals_and_unnamed_scorers_count_for_nobody(data: Path) -> None:
    second = {
        "match_id": "1930-07-14|B|A",
        "leaderboard": "goals",
        "ended_at": "1930-07-14T00:00:00Z",
        "results": [{"player_id": "A|Zoé", "score": 1}, {"player_id": "B|Amy", "score": 1}],
    }
    assert list(matches_from_csv(data / "goalscorers.csv")) == [FIRST, second]


def test_the_sample_takes_the_world_cup_only(data: Path) -> None:
    target = data / "matches.ndjson"
    assert build(data, target) == 1
    assert [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()] == [FIRST]


def test_the_shipped_matches_fit_their_leaderboard_and_the_rules_for_ids() -> None:
    folder = samples.path("football")
    boards = tomllib.loads((folder / "leaderboards.toml").read_text(encoding="utf-8"))["leaderboards"]
    matches = [json.loads(line) for line in (folder / "matches.ndjson").read_text(encoding="utf-8").splitlines()]
    assert len(matches) == 980
    assert len({match["match_id"] for match in matches}) == 980
    for match in matches:
        board = boards[match["leaderboard"]]
        assert board["starts_at"] <= match["ended_at"] < board["ends_at"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", match["ended_at"])
        assert all(board["min"] < result["score"] <= board["max"] for result in match["results"])
        players = [result["player_id"] for result in match["results"]]
        assert 1 <= len(set(players)) == len(players) <= 200
        for name in [match["match_id"], *players]:
            assert 1 <= len(name.encode()) <= 128
            assert unicodedata.is_normalized("NFC", name)
            assert name.isprintable()


def test_the_shipped_top_is_the_known_one() -> None:
    lines = (samples.path("football") / "matches.ndjson").read_text(encoding="utf-8").splitlines()
    scored = [
        (-result["score"], match["ended_at"], result["player_id"])
        for match in map(json.loads, lines)
        for result in match["results"]
    ]
    assert [(-score, at[:10], player) for score, at, player in sorted(scored)[:3]] == [
        (5, "1994-06-28", "Russia|Oleg Salenko"),
        (4, "1938-06-05", "Poland|Ernst Wilimowski"),
        (4, "1950-07-09", "Brazil|Ademir de Menezes"),
    ]


def test_an_unknown_sample_is_told_which_exist() -> None:
    with pytest.raises(LookupError, match="no sample named 'chess'; there is: football"):
        samples.path("chess")
