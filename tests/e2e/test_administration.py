"""`standings apply`, `init`, `status`, `rebuild`, `audit` and `dlq` against a running stack."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from tests.e2e.stack import RunningStack, wait_for

TWO = """
[leaderboards.{0}-points]
order = "higher"
min = 0
max = {1}
windows = ["all", "daily"]
[leaderboards.{0}-times]
order = "lower"
min = -5
max = 5
windows = ["weekly"]
"""


@pytest.fixture(scope="module", autouse=True)
def applied(stack: RunningStack) -> None:
    stack.apply("mended", "again", "moved", windows=["all", "weekly"])


def leaderboards(stack: RunningStack) -> dict[str, Any]:
    return {one["leaderboard"]: one for one in stack.get("/v1/leaderboards").json()["leaderboards"]}


def shown(stack: RunningStack, *arguments: str, exits: int = 0) -> Any:
    """What a command prints as JSON."""
    done = stack.command(*arguments, "--json")
    assert done.returncode == exits, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_apply_shows_its_plan_then_creates_keeps_and_refuses_what_cannot_change(
    stack: RunningStack, tmp_path: Path
) -> None:
    file = tmp_path / "leaderboards.toml"
    file.write_text(TWO.format("plan", 1_000))
    done = stack.command("apply", str(file), "--dry-run")
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["plan"], ["leaderboard", "action"], ["plan-points", "create"], ["plan-times", "create"],
    ]  # fmt: skip
    assert "plan-points" not in leaderboards(stack)
    applied = shown(stack, "apply", str(file))
    assert applied["dry_run"] is False
    assert [(one["action"], one["tie_resolution_ms"]) for one in applied["leaderboards"]] == [
        ("create", {"all": 1, "daily": 1}), ("create", {"weekly": 1}),
    ]  # fmt: skip
    assert leaderboards(stack)["plan-times"]["order"] == "lower"
    assert {one["action"] for one in shown(stack, "apply", str(file))["leaderboards"]} == {"keep"}
    # Bounds can't change; the other table of the file isn't applied either.
    file.write_text(TWO.format("plan", 2_000) + TWO.format("more", 10))
    done = stack.command("apply", str(file))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "plan-points: max can't change" in done.stderr
    assert leaderboards(stack)["plan-points"]["max"] == 1_000
    assert "more-points" not in leaderboards(stack)


def test_apply_tells_every_fault_of_a_file_in_one_line(stack: RunningStack, tmp_path: Path) -> None:
    faulty = '[leaderboards.a]\norder = "higher"\nmin = 1.5\nmax = 9\nwindows = ["all"]\nfoo = 1\n[leaderboards.B_]\n'
    many = "".join(
        f'[leaderboards.m{number}]\norder = "higher"\nmin = 0\nmax = 9\nwindows = ["all"]\n' for number in range(101)
    )
    file = tmp_path / "leaderboards.toml"
    for text, parts in (
        (faulty, ["leaderboards.a.min", "leaderboards.a.foo", "leaderboards.B_"]),
        ("x =", ["is not TOML"]),
        ("[boards.a]", ["boards: unknown"]),
        (many, ["at most 100"]),
    ):
        file.write_text(text)
        done = stack.command("apply", str(file))
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert all(part in done.stderr for part in parts), done.stderr
    assert not {"a", "m0"} & set(leaderboards(stack))


def test_status_tells_every_part_and_its_exit_code_whether_all_is_well(stack: RunningStack) -> None:
    found = shown(stack, "status")
    assert found["ok"] is True
    parts = {one["part"]: one["state"] for one in found["parts"]}
    assert parts == dict.fromkeys(["scorebook", "log", "lane 0", "lane 1", "lane 2", "lane 3"], "ready")
    assert set(found["versions"]) >= {"redis", "boto3", "kafka-python"}
    done = stack.command("status")
    assert [line.split()[0] for line in done.stdout.splitlines()][:3] == ["part", "scorebook", "log"]


def test_an_entry_that_was_changed_by_hand_is_found_by_audit_and_put_right_by_rebuild(stack: RunningStack) -> None:
    stack.submit_csv(" ".join(f"m{n},p{n},{n}" for n in range(20)), leaderboard="mended")
    wait_for("all results are in", lambda: len(stack.entries("mended:all")) == 20)
    before = stack.entries("mended:all")
    with stack.open_redis() as client:
        (key,) = client.scan_iter("lb:{*}:mended:all")
        client.zrem(key, "p3")
        client.zadd(key, {"p4": 1, "p5": 2**53 - 1, "nobody": 7})
    (found,) = shown(stack, "audit", "--board", "mended:all", exits=1)
    assert found["differing"] == 4
    assert {one["player_id"]: one["kind"] for one in found["differences"]} == {
        "p3": "missing", "p4": "lower", "p5": "higher", "nobody": "unknown",
    }  # fmt: skip
    done = stack.command("audit", "--board", "mended:all")
    assert done.returncode == 1
    assert "nobody" in done.stdout
    assert done.stdout.splitlines()[-1] == "20 rows, 20 entries of 1 boards: 4 differ"
    (rebuilt,) = shown(stack, "rebuild", "--board", "mended:all")
    assert (rebuilt["board"], rebuilt["rows"], rebuilt["expelled"]) == ("mended:all", 20, 2)
    assert stack.entries("mended:all") == before
    (found,) = shown(stack, "audit", "--board", "mended:all")
    assert (found["rows"], found["entries"], found["differing"]) == (20, 20, 0)
    # A sample smaller than the board, and one that takes in all of it.
    (found,) = shown(stack, "audit", "--board", "mended:all", "--sample", "5")
    assert (found["entries"], found["differing"]) == (5, 0)
    (found,) = shown(stack, "audit", "--board", "mended:all", "--sample", "1000")
    assert (found["rows"], found["entries"], found["differing"]) == (20, 20, 0)


def test_rebuild_takes_a_leaderboard_a_lane_or_all_and_returns_when_they_are_served(stack: RunningStack) -> None:
    stack.submit_csv("r1,zed,1 r2,amy,2", leaderboard="again")
    wait_for("both are in", lambda: len(stack.entries("again:all")) == 2)
    boards = {one["board"].rsplit(":", 1)[0]: one["rows"] for one in shown(stack, "rebuild", "--leaderboard", "again")}
    assert set(boards) == {"again", "again:weekly"}
    (lane,) = shown(stack, "rebuild", "--lane", "2")
    assert lane["lane"] == 2
    done = stack.command("rebuild", "--all")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2 + 4
    assert stack.entries("again:all") == [("amy", 2), ("zed", 1)]
    for wrong in (["--lane", "4"], ["--board", "nothing:all"], ["--leaderboard", "nothing"]):
        done = stack.command("rebuild", *wrong)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)


def test_a_dead_letter_is_listed_with_its_reason(stack: RunningStack) -> None:
    value = b'{"match_id":"d1","results":[{"player_id":"zed","score":1}]}'
    producer = KafkaProducer(bootstrap_servers=stack.file["kafka"], acks="all")
    try:
        for key, sent in ((b"other", value), (b"broken", b"\xff")):
            producer.send("lb-match-events", key=key, value=sent).get(10)
    finally:
        producer.close()
    wait_for("both are dead letters", lambda: len(shown(stack, "dlq", "list")) >= 2)
    letters = {one["key"]: one for one in shown(stack, "dlq", "list")}
    assert letters["other"]["reason"] == "invalid-key"
    assert letters["other"]["value"] == value.decode()
    assert letters["other"]["topic"] == "lb-match-events"
    done = stack.command("dlq", "list", "-n", "1")
    assert done.stdout.startswith("1 dead letters")


@pytest.mark.timeout(180)
def test_another_number_of_lanes_moves_every_board_and_no_read_goes_wrong_meanwhile(stack: RunningStack) -> None:
    stack.submit_csv(" ".join(f"m{n},p{n},{n}" for n in range(50)), leaderboard="moved")
    wait_for("all results are in", lambda: len(stack.entries("moved:all")) == 50)
    before = stack.entries("moved:all")
    seen: set[tuple[int, int]] = set()
    stopping = threading.Event()

    def read() -> None:
        with httpx.Client(base_url=stack.url, timeout=15) as client:
            while not stopping.wait(0.01):
                for window in ("all", "weekly"):
                    reply = client.get(f"/v1/boards/moved:{window}/top")
                    seen.add((reply.status_code, reply.json().get("size", 0)))

    reading = threading.Thread(target=read)
    reading.start()
    try:
        for lanes in (7, 2, 4):
            done = stack.command("init", "--lanes", str(lanes))
            assert (done.returncode, done.stderr) == (0, "")
            assert f"{lanes} lanes" in done.stdout
            wait_for("all lanes are served", lambda: stack.command("status").returncode == 0, 60)
            assert stack.entries("moved:all") == before
    finally:
        stopping.set()
        reading.join()
    assert (200, 50) in seen
    assert seen <= {(200, 50), (503, 0)}
    wait_for("the keys of former lanes are gone", lambda: lanes_with_keys(stack) == {"0", "1", "2", "3"})
    assert stack.command("audit", "--all").returncode == 0


def lanes_with_keys(stack: RunningStack) -> set[str]:
    with stack.open_redis() as client:
        return {key.decode().split("{")[1].split("}")[0] for key in client.scan_iter("lb:{*}:*")}


@pytest.mark.parametrize("what", ["partitions lacks", "meta is text", "boards is text", "the board is text"])
def test_what_somebody_wrote_into_a_lane_heals_by_itself(stack: RunningStack, what: str) -> None:
    stack.submit_csv("spoiled-1,zed,5 spoiled-2,amy,7", leaderboard="main")
    wait_for("both are in", lambda: {"zed", "amy"} <= {player for player, _ in stack.entries("main:all")})
    before = stack.entries("main:all")
    with stack.open_redis() as client:
        (key,) = client.scan_iter("lb:{*}:main:all")
        lane = key.decode().removesuffix("main:all")
        if what == "partitions lacks":
            client.hdel(f"{lane}meta", "partitions")
        elif what == "the board is text":
            client.set(key, "x")
        else:
            client.set(f"{lane}{what.split(maxsplit=1)[0]}", "x")
    seen = set()

    def is_whole() -> bool:
        reply = stack.get("/v1/boards/main:all/top", n=1_000)
        seen.add(reply.status_code)
        if reply.status_code != 200:
            return False
        assert [(one["player_id"], one["score"]) for one in reply.json()["entries"]] == before
        return stack.command("audit", "--board", "main:all").returncode == 0

    wait_for("it is whole again", is_whole, 60)
    assert seen <= {200, 503}


def test_partitions_that_the_broker_refuses_leave_the_lanes_as_they_were(stack: RunningStack) -> None:
    done = stack.command("init", "--partitions", "9")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    wait_for("as_of is known", lambda: stack.get("/v1/boards/main:all").json()["as_of"] is not None)


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 5_000,
        '[leaderboards.deep]\norder = "higher"\nmin = ' + "9" * 5_000 + '\nmax = 9\nwindows = ["all"]\n',
        "x = " + "1" * 2_000_000,
    ],
    ids=["too deep", "a number without end", "too long"],
)
def test_a_file_that_no_reader_survives_is_one_clear_line(stack: RunningStack, tmp_path: Path, text: str) -> None:
    file = tmp_path / "odd.toml"
    file.write_text(text)
    done = stack.command("apply", str(file), "--dry-run")
    assert done.returncode == 1
    assert done.stderr.startswith(f"standings: {file}")
    assert len(done.stderr.splitlines()) == 1
