"""After a schedule: everything that was accepted is in truth and view, exactly, and every reply was right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import boto3
import redis
from kafka import KafkaConsumer, TopicPartition

from embedded.services import with_project
from schemas.errors import StandingsError
from stores.kafka_admin import KafkaLogAdmin
from stores.lanes import LaneState
from tests.faults.load import Load, Submission
from tests.faults.reads import find_wrong_reads
from tests.faults.reference import Reference, Result, read_time
from tests.faults.stack import Stack

_MOST_LISTED = 10


@dataclass
class Verdict:
    """What was found. `faults` is empty where all is well."""

    accepted: int = 0
    results: int = 0
    conflicts: int = 0
    lost: int = 0
    reads: dict[str, int] = field(default_factory=dict)
    wrong_reads: int = 0
    audit_alarms: int = 0
    faults: list[str] = field(default_factory=list)


def is_healed(stack: Stack) -> bool:
    """True once all is recorded, and every lane is READY, of this log, and has applied what was committed."""
    try:
        return _are_ready(stack) and stack.is_drained() and _are_ready(stack)
    except (StandingsError, redis.RedisError):
        return False


def _are_ready(stack: Stack) -> bool:
    admin = KafkaLogAdmin(stack.settings)
    try:
        log = admin.describe()
        committed = {} if log is None else admin.committed(log.log_id)
    finally:
        admin.close()
    for meta in stack.metas():
        ours = log is not None and meta.ids.log_id == log.log_id and meta.state is LaneState.READY
        applied = all(meta.applied.get(partition, 0) >= one.offset for partition, one in committed.items())
        if not ours or not applied or meta.torn or meta.as_of is None:
            return False
    return True


def judge(stack: Stack, load: Load, letters_lost_at: int) -> Verdict:
    """Compare everything with everything."""
    verdict = Verdict()
    table = _Scorebook(stack)
    results = list(_results(load, table.receipts(load.rules.leaderboard), verdict))
    reference = Reference(load.rules, results)
    verdict.accepted = sum(1 for one in load.submissions if one.acknowledged_at)
    verdict.results = len(results)
    for board, rows in reference.rows.items():
        want = {player: (row.score, row.packed, row.ended_at, row.match_id) for player, row in rows.items()}
        have = table.rows(board)
        verdict.lost += _compare(verdict, f"truth of {board}", want, have)
        view = _view(stack, board, verdict)
        verdict.lost += _compare(
            verdict, f"view of {board}", {player: row.packed for player, row in rows.items()}, view
        )
    _check_letters(stack, load, letters_lost_at, verdict)
    wrong = find_wrong_reads(load.reads, reference, load.floor_at)
    verdict.wrong_reads = len(wrong)
    verdict.faults += wrong[:_MOST_LISTED]
    for read in load.reads:
        kind = str(read.status) if read.status != 200 or read.as_of else "200 without as_of"
        verdict.reads[kind] = verdict.reads.get(kind, 0) + 1
    if load.failed_reads:
        verdict.reads["no reply"] = load.failed_reads
    _audit(stack, verdict)
    return verdict


def _results(load: Load, receipts: dict[tuple[str, str], dict[str, Any]], verdict: Verdict) -> Iterable[Result]:
    """What counts: the first report of each match, at the end time that it gave, else that of its receipt."""
    for one in load.submissions:
        if one.kind != "first" or not one.acknowledged_at:
            continue
        part = f"{load.rules.leaderboard}#" + ("*" if one.whole else f"={one.body['player_id']}")
        receipt = receipts.get((one.match_id, part))
        if receipt is None or receipt["results"] != one.results:
            verdict.lost += 1
            verdict.faults.append(f"the receipt of {one.body} is {receipt}")
            continue
        given = one.body.get("ended_at")
        ended_at = receipt["ended_at"] if given is None else read_time(given)
        if receipt["ended_at"] != ended_at or (given is None and not one.sent_at <= ended_at <= one.acknowledged_at):
            verdict.faults.append(f"the receipt of {one.body} has the time {receipt['ended_at']}")
        for player_id, score in one.results.items():
            yield Result(player_id, score, ended_at, one.match_id, one.acknowledged_at)


def _compare(verdict: Verdict, what: str, want: dict[str, Any], have: dict[str, Any]) -> int:
    """How many of what is wanted are not there as wanted; all differences are noted."""
    wrong = [player for player in want if have.get(player) != want[player]]
    more = [player for player in have if player not in want]
    for player in [*wrong, *more][:_MOST_LISTED]:
        verdict.faults.append(f"{what}: {player} is {have.get(player)}, not {want.get(player)}")
    return len(wrong)


def _view(stack: Stack, board: str, verdict: Verdict) -> dict[str, int]:
    """The board as Redis has it, in whatever lane."""
    with stack.redis_client() as client:
        keys = [f"{stack.settings.prefix}:{{{lane}}}:{board}" for lane in range(stack.lane_count)]
        there = [key for key in keys if client.execute_command("EXISTS", key)]
        if len(there) != 1:
            verdict.faults.append(f"{board} is in these lanes: {there}")
            return {}
        flat: Any = client.execute_command("ZRANGE", there[0], 0, -1, "WITHSCORES")
    pairs = flat if flat and isinstance(flat[0], (list, tuple)) else list(zip(flat[::2], flat[1::2], strict=True))
    return {player.decode(): int(packed) for player, packed in pairs}


def _check_letters(stack: Stack, load: Load, lost_at: int, verdict: Verdict) -> None:
    """Dead letters are the conflicts that were sent, and nothing else."""
    sent = [one for one in load.submissions if one.kind == "conflict"]
    verdict.conflicts = len(sent)
    expected = {_content(one.body) for one in sent}
    found = set()
    for reason, value in _read_letters(stack):
        if value.get("leaderboard") != load.rules.leaderboard:
            continue
        found.add(_content(value))
        if reason != "match-conflict" or _content(value) not in expected:
            verdict.faults.append(f"dead letter {reason}: {value}")
    for one in sent:
        if one.acknowledged_at > lost_at and _content(one.body) not in found:
            verdict.faults.append(f"not dead-lettered: {one.body}")


def _content(body: dict[str, Any]) -> tuple[str, str, str]:
    results = {one["player_id"]: one["score"] for one in body.get("results", [body])}
    return body["match_id"], json.dumps(sorted(results.items())), body.get("ended_at", "")


def _read_letters(stack: Stack) -> Iterable[tuple[str, dict[str, Any]]]:
    consumer = KafkaConsumer(bootstrap_servers=stack.settings.kafka, enable_auto_commit=False)
    try:
        place = TopicPartition(stack.settings.names.dead_letters, 0)
        consumer.assign([place])
        consumer.seek_to_beginning(place)
        while True:
            found = consumer.poll(timeout_ms=500)
            for record in found.get(place, []):
                yield dict(record.headers)["standings-reason"].decode(), json.loads(record.value)
            mark = consumer.highwater(place)
            if not found and mark is not None and consumer.position(place) >= mark:
                return
    finally:
        consumer.close(autocommit=False)


def _audit(stack: Stack, verdict: Verdict) -> None:
    environment = with_project(
        stack.environment | {"STANDINGS_DYNAMODB_URL": stack.settings.dynamodb_url or "", "STANDINGS_DATA": ""}
    )
    command = [sys.executable, "-m", "cli", "audit", "--all", "--json"]
    done = subprocess.run(
        command, env=environment, cwd=stack.folder, capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode != 0:
        verdict.audit_alarms += 1
        verdict.faults.append(f"audit: exit {done.returncode}: {done.stdout[-2_000:]} {done.stderr[-2_000:]}")


class _Scorebook:
    """The tables, read plainly."""

    def __init__(self, stack: Stack) -> None:
        self._client: Any = boto3.client(
            "dynamodb", endpoint_url=stack.settings.dynamodb_url, region_name=os.environ["AWS_DEFAULT_REGION"]
        )
        self._prefix = stack.settings.prefix

    def rows(self, board: str) -> dict[str, tuple[int, int, int, str]]:
        found = {}
        pages = self._client.get_paginator("query").paginate(
            TableName=f"{self._prefix}-scores",
            KeyConditionExpression="board_shard = :shard",
            ExpressionAttributeValues={":shard": {"S": f"{board}#0"}},
        )
        for item in (item for page in pages for item in page["Items"]):
            numbers = [int(item[name]["N"]) for name in ("score", "packed", "achieved_at")]
            found[item["player_id"]["S"]] = (numbers[0], numbers[1], numbers[2], item["match_id"]["S"])
        return found

    def receipts(self, leaderboard: str) -> dict[tuple[str, str], dict[str, Any]]:
        """All of this leaderboard, by match and part."""
        found = {}
        for page in self._client.get_paginator("scan").paginate(TableName=f"{self._prefix}-matches"):
            for item in page["Items"]:
                if item["part"]["S"].startswith(f"{leaderboard}#"):
                    results = {player: int(score["N"]) for player, score in item["results"]["M"].items()}
                    found[item["match_id"]["S"], item["part"]["S"]] = {
                        "results": results, "ended_at": int(item["ended_at"]["N"])
                    }  # fmt: skip
        return found


def lost_submissions(load: Load) -> list[Submission]:
    """Those that were never acknowledged: there must be none in the end."""
    return [one for one in load.submissions if not one.acknowledged_at]
