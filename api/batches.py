"""Batches: a match or one player's score a line, each line answered for itself."""

from __future__ import annotations

import asyncio
from typing import Any

from api.calls import Call
from api.keyring import Keyring
from api.lookups import Lookups
from api.parameters import Parameters, invalid_request
from api.replies import UNSTORED, Reply
from api.submits import MAX_BODY_BYTES, Acceptance, Accepted, decode_body
from schemas.errors import Fault
from schemas.events import MatchEvent, body_of
from schemas.positions import encode_position
from schemas.problems import Problem
from schemas.settings import SubmitKey
from schemas.wire import encode_json

MAX_BATCH_BYTES = 4 * 1024 * 1024
MAX_LINES = 1_000
NDJSON = "application/x-ndjson"
_LINES_PER_TURN = 25


class Batches:
    """POST /v1/matches:batch."""

    def __init__(self, keyring: Keyring, lookups: Lookups, acceptance: Acceptance) -> None:
        self._keyring = keyring
        self._lookups = lookups
        self._acceptance = acceptance

    async def submit(self, call: Call) -> Reply:
        """Put what is valid on the log, in order, and answer a line for every line."""
        key = self._keyring.admit(call.header(b"authorization"))
        call.check_content_type(NDJSON)
        lines = _split(await call.body(MAX_BATCH_BYTES))
        Parameters(call.query_string, ()).check()
        if not lines:
            raise invalid_request([Fault("", "is empty: send one match a line")])
        self._lookups.leaderboards()
        now_at = self._lookups.now_at()
        read: list[MatchEvent | Problem] = []
        for number, line in enumerate(lines):
            if number % _LINES_PER_TURN == 0:
                await asyncio.sleep(0)  # others' requests need not wait for a whole batch
            read.append(self._read(line, key, now_at))
        appended = iter(await self._acceptance.append([one for one in read if isinstance(one, MatchEvent)], now_at))
        outcomes = [next(appended) if isinstance(one, MatchEvent) else one for one in read]
        body = b"".join(
            encode_json({"line": number, **_show(outcome)}) + b"\n" for number, outcome in enumerate(outcomes, 1)
        )
        return Reply(200, body, [(b"content-type", NDJSON.encode("ascii")), UNSTORED])

    def _read(self, line: bytes, key: SubmitKey, now_at: int) -> MatchEvent | Problem:
        if len(line) > MAX_BODY_BYTES:
            return Problem("too-large", f"a line has at most {MAX_BODY_BYTES} bytes")
        try:
            value = decode_body(line)
            return self._acceptance.read(value, body_of(value), key, Parameters(b"", ()), now_at)
        except Problem as problem:
            return problem


def _split(raw: bytes) -> list[bytes]:
    """The lines, without their ends; none where there is nothing but white space."""
    if not raw.strip():
        return []
    lines = raw.removesuffix(b"\n").split(b"\n")
    if len(lines) > MAX_LINES:
        raise Problem("too-large", f"a batch has at most {MAX_LINES} lines, this one has {len(lines)}")
    return [line.removesuffix(b"\r") for line in lines]


def _show(outcome: Accepted | Problem) -> dict[str, Any]:
    if isinstance(outcome, Problem):
        return outcome.body()
    return {"status": 202, "position": encode_position(outcome.position)}
