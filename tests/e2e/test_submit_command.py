"""`standings submit`, `top`, `player` and `key`: what goes in from a file comes out in the terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.settings import parse_submit_keys
from tests.e2e.stack import ROOT, RunningStack, run_command, wait_for

CSV = (
    b"\xef\xbb\xbfmatch_id,player_id,score,leaderboard,ended_at\r\n"
    b"c1,zed,10,files,2026-01-01T00:00:00Z\r\n"
    b'c2,"a,b",x,files,\r\n'
    b"\r\n"
    b"c3,amy,1.0,files,\r\n"
    b"c4,br\xff,3,files,\r\n"
    b"c5,cy,1000001,files,\r\n"
    b"c6,ok,7,files,,more\r\n"
    b"c7," + b"long" * 40_000 + b",7,files\r\n"
    b'c8,"b,o",9,files\r\n'
    b"c9,last,8,files"
)
REFUSED_ROWS = {3: "/score", 5: "/score", 6: "utf-8", 7: "/score", 8: "/column 6", 9: "CSV"}
NDJSON = (
    b'{"match_id":"j1","leaderboard":"lines","results":[{"player_id":"jo","score":3},{"player_id":"ja","score":4}]}\r\n'
    b'{"match_id":"j2","leaderboard":"lines","results":[{"player_id":"jo","score":3.0}]}\n'
    b"\n"
    b"not json\n"
    b'{"match_id":"j3","leaderboard":"lines","results":[{"player_id":"\xff","score":3}]}\n'
    b'{"match_id":"j4","leaderboard":"none","results":[{"player_id":"jo","score":3}]}\n'
    b'{"match_id":"j5","leaderboard":"lines","results":[{"player_id":"jim","score":5}]}'
)
REFUSED_LINES = {2: "/results/0/score", 4: "JSON", 5: "utf-8", 6: "'none'"}


@pytest.fixture(scope="module", autouse=True)
def leaderboards(stack: RunningStack) -> None:
    stack.apply("files", "lines", "shown", min=-5)


def told_lines(stderr: str) -> dict[int, str]:
    """What is said of each refused line; fails where anything else is said."""
    found = [re.fullmatch(r"standings: line (\d+): (.+)", line) for line in stderr.splitlines()]
    return {int(one[1]): one[2] for one in found if one is not None} if all(found) else pytest.fail(stderr)


def assert_refused(told: dict[int, str], wanted: dict[int, str]) -> None:
    assert list(told) == list(wanted)
    for number, part in wanted.items():
        assert part in told[number]


def test_a_csv_goes_in_but_for_its_refused_rows(stack: RunningStack, tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_bytes(CSV)
    done = stack.command("submit", str(file))
    assert (done.returncode, done.stdout) == (1, "3 accepted, 6 refused\n")
    assert_refused(told_lines(done.stderr), REFUSED_ROWS)
    # The same again, from standard input, is accepted again and changes nothing.
    done = stack.command("submit", "-", "--json", stdin=CSV)
    said = json.loads(done.stdout)
    assert (done.returncode, said["accepted"]) == (1, 3)
    assert_refused({one["line"]: one["reason"] for one in said["refused"]}, REFUSED_ROWS)
    wanted = [("zed", 10), ("b,o", 9), ("last", 8)]
    wait_for("the rest is in", lambda: stack.entries("files:all") == wanted)
    assert stack.get("/v1/boards/files:all/top", after=said["position"], wait=5).status_code == 200
    assert stack.entries("files:all") == wanted


def test_ndjson_goes_in_but_for_its_refused_lines(stack: RunningStack) -> None:
    done = stack.command("submit", "-", stdin=NDJSON)
    assert (done.returncode, done.stdout) == (1, "2 accepted, 4 refused\n")
    assert_refused(told_lines(done.stderr), REFUSED_LINES)
    wait_for("the rest is in", lambda: stack.entries("lines:all") == [("jim", 5), ("ja", 4), ("jo", 3)])


def test_a_line_that_no_request_can_hold_is_refused_and_the_rest_goes_in(stack: RunningStack) -> None:
    lines = [
        b'{"match_id":"huge-%d","leaderboard":"lines","results":[{"player_id":"h","score":1}]%s}' % (number, more)
        for number, more in enumerate((b"", b" " * 5_000_000, b""))
    ]
    done = stack.command("submit", "-", stdin=b"\n".join(lines))
    assert (done.returncode, done.stdout) == (1, "2 accepted, 1 refused\n")
    assert_refused(told_lines(done.stderr), {2: "bytes"})


def test_a_byte_order_mark_does_not_make_ndjson_a_csv(stack: RunningStack) -> None:
    line = b'\xef\xbb\xbf{"match_id":"bom","results":[{"player_id":"bom","score":1}]}\n'
    done = stack.command("submit", "-", stdin=line)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 accepted, 0 refused\n", "")


def test_an_empty_file_is_nothing_to_do_and_an_absent_one_an_error(stack: RunningStack, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    done = stack.command("submit", str(tmp_path / "empty"), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"accepted": 0, "refused": [], "position": None}
    for path in (tmp_path / "absent", tmp_path):
        done = stack.command("submit", str(path))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert f"{path} can't be read" in done.stderr


def test_a_wrong_key_is_one_line_and_nothing_goes_in(stack: RunningStack) -> None:
    line = b'{"match_id":"keyless","results":[{"player_id":"keyless","score":1}]}\n'
    environment = stack.environment | {"STANDINGS_URL": stack.url, "STANDINGS_KEY": "sk_wrong"}
    done = run_command("submit", "-", stdin=line, environment=environment)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "key" in done.stderr
    assert stack.get("/v1/leaderboards/main/matches/keyless").status_code in {401, 404}


def test_top_and_player_show_what_was_submitted(stack: RunningStack) -> None:
    odd = "[bold]" + "é🏆" * 20
    stack.submit_csv(f"s1,zed,10 s2,{odd},-5 s3,amy,10", leaderboard="shown")
    wait_for("all three are in", lambda: stack.get("/v1/boards/shown:all").json().get("size") == 3)
    done = stack.command("top", "shown:all", "-n", "3")
    title, header, *rows = [line.split() for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (0, "")
    assert title[:4] == ["shown:all", "·", "3", "players"]
    assert header == ["rank", "player", "score", "achieved"]
    # Not folded, not taken for markup, and without a code of colour.
    assert [row[:3] for row in rows][2] == ["3", odd, "-5"]
    assert sorted(row[1] for row in rows[:2]) == ["amy", "zed"]
    assert "\x1b" not in done.stdout
    page = json.loads(stack.command("top", "shown:all", "-n", "1", "--json").stdout)
    assert (page["size"], len(page["entries"]), page["entries"][0]["score"]) == (3, 1, 10)
    done = stack.command("player", "shown:all", odd)
    assert done.stdout.splitlines()[-1].split()[:3] == ["3", odd, "-5"]
    found = json.loads(stack.command("player", "shown:all", odd, "--json").stdout)
    assert (found["rank"], found["score"], found["top_percent"]) == (3, -5, 100.0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["top", "main"], "name its window"),
        (["top", "nothing:all"], "no leaderboard"),
        (["top", "main:hourly"], "hourly"),
        (["player", "main:all", "nobody"], "nobody"),
        (["player", "main:all", ""], "id"),
    ],
)
def test_what_is_not_there_is_one_line_and_exit_1(stack: RunningStack, arguments: list[str], told: str) -> None:
    done = stack.command(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert done.stderr.startswith("standings: ")
    assert told in done.stderr


@pytest.mark.parametrize(("setting", "is_lively"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["plain", "no-color"])
def test_a_bar_is_shown_on_a_terminal_unless_no_color_is_set(
    stack: RunningStack, setting: dict[str, str], *, is_lively: bool
) -> None:
    environment = {name: value for name, value in stack.environment.items() if name != "NO_COLOR"}
    line = b'{"match_id":"bar","results":[{"player_id":"bar","score":1}]}\n'
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cli", "submit", "-"],
            input=line, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=False, cwd=ROOT,
            env=environment | {"TERM": "xterm"} | setting,
        )  # fmt: skip
        os.write(theirs, b".")  # so that there is something to read
        shown = os.read(ours, 100_000)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (done.returncode, done.stdout) == (0, b"1 accepted, 0 refused\n")
    assert (b"submitted" in shown, shown == b".") == (is_lively, not is_lively)


def test_a_new_key_is_shown_with_the_entry_that_lets_it_in(stack: RunningStack) -> None:
    done = stack.command("key", "new", "--name", "season-2", "--leaderboards", "main,shown")
    key, entry = (line.split(maxsplit=1)[1] for line in done.stdout.splitlines())
    (parsed,) = parse_submit_keys(entry)
    assert parsed.name == "season-2"
    assert key.startswith("sk_")
    assert stack.command("key", "new").stdout.splitlines()[0] != done.stdout.splitlines()[0]
    assert stack.command("key", "new", "--name", "a b").returncode == 1
