"""Submitters and readers who go on whatever happens, and note all they did."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from tests.faults.reference import Rules, show_time, windows_of

_PLAYERS = ["zoë", "a:b", "a/b", "007", "{x}", "..", *(f"player-{number}" for number in range(40))]
_HOUR_MS = 3_600_000


@dataclass
class Submission:
    """One report: what was sent, from when on, and when it was first acknowledged (epoch ms). 0: not yet.

    `kind` is first, repeat or conflict: a conflict contradicts a report that was acknowledged before it was sent.
    """

    kind: str
    match_id: str
    body: dict[str, Any]
    sent_at: int = 0
    acknowledged_at: int = 0
    position: str = ""
    attempts: int = 0

    @property
    def whole(self) -> bool:
        return "results" in self.body

    @property
    def results(self) -> dict[str, int]:
        listed = self.body.get("results", [self.body])
        return {one["player_id"]: one["score"] for one in listed}

    @property
    def is_delicate(self) -> bool:
        """What becomes of it depends on the order in the log: it has to go to the partition of its first report."""
        return self.kind == "conflict" or "ended_at" not in self.body


@dataclass
class Read:
    """One reply as it came: what was asked, when (epoch ms), and everything that it said."""

    kind: str
    board: str
    asked: dict[str, Any]
    sent_at: int
    answered_at: int
    status: int
    as_of: str | None
    body: bytes
    awaited: str | None = None
    """The match whose position the read waited for."""


@dataclass
class Load:
    """The traffic of one schedule on one leaderboard. All of it runs in one event loop."""

    url: str
    key: str
    rules: Rules
    dice: random.Random
    submissions: list[Submission] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    failed_reads: int = 0
    in_flight: dict[int, Submission] = field(default_factory=dict)
    floor_at: int = 0
    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    only_timed: bool = False
    _known: list[Submission] = field(default_factory=list)
    _ended: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    _number: int = 0
    _submitters: int = 0

    async def begin(self, submitters: int, readers: int) -> None:
        """Let them begin."""
        self.is_open.set()
        self._submitters = submitters
        create = asyncio.get_running_loop().create_task
        self._tasks = [create(self._submit_for_ever()) for _ in range(submitters)]
        self._tasks += [create(self._read_for_ever()) for _ in range(readers)]

    async def lay_floor(self) -> None:
        """Fill the boards a little, before anything else happens: from `floor_at` on every reply has to show that.

        Whatever Redis loses later, it is in the truth and in every dump.
        """
        ended_at = show_time(now_ms())
        async with httpx.AsyncClient(base_url=self.url, headers={"authorization": f"Bearer {self.key}"}) as client:
            for _ in range(12):
                report = self._report()
                report.body["ended_at"] = ended_at
                self.submissions.append(report)
                await self._submit(client, [report])
            for board, _, _ in windows_of(self.rules.leaderboard, now_ms()):
                for report in self.submissions:
                    await _await_position(client, board, report.position)
        self.floor_at = now_ms()

    async def finish_submitting(self) -> None:
        """No new reports; returns once everything that was sent is acknowledged."""
        self.is_open.clear()
        while self.in_flight:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.02)

    async def go_on(self) -> None:
        """Submit again."""
        self.is_open.set()

    async def stop(self) -> None:
        """End all."""
        self._ended = True
        for task in self._tasks[: self._submitters]:
            task.cancel()
        for one in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(one, Exception):
                raise one

    async def settle_delicate(self, within_s: float) -> bool:
        """Send nothing whose fate depends on its partition, and nothing about what was reported before.

        Until `only_timed` is reset. False where some of it stays in flight.
        """
        self.only_timed = True
        self._known.clear()
        give_up_at = time.monotonic() + within_s
        while any(one.is_delicate for one in self.in_flight.values()):
            if time.monotonic() > give_up_at:
                self.only_timed = False
                return False
            await asyncio.sleep(0.02)
        return True

    # ------------------------------------------------------------------ submitting

    async def _submit_for_ever(self) -> None:
        async with httpx.AsyncClient(base_url=self.url, headers={"authorization": f"Bearer {self.key}"}) as client:
            while not self._ended:
                await self.is_open.wait()
                await self._submit(client, self._invent())
                await asyncio.sleep(self.dice.uniform(0.02, 0.1))

    def _invent(self) -> list[Submission]:
        """One report, or some that travel as a batch."""
        count = self.dice.choice([1, 1, 1, 1, 5])
        made = [self._report() for _ in range(count)]
        if count > 1 and any("results" not in one.body for one in made):
            made = [one for one in made if one.whole] or made[:1]
        self.submissions += made
        return made

    def _report(self) -> Submission:
        fate = self.dice.random() if self.floor_at else 1.0
        if self._known and fate < 0.15:
            first = self.dice.choice(self._known)
            return Submission("repeat", first.match_id, first.body)
        if self._known and fate < 0.2:
            first = self.dice.choice(self._known)
            return Submission("conflict", first.match_id, _contradict(first.body, self.rules))
        self._number += 1
        match_id = f"{self.rules.leaderboard}-m{self._number}"
        body: dict[str, Any] = {"match_id": match_id, "leaderboard": self.rules.leaderboard}
        if self.only_timed or self.dice.random() < 0.7:
            body["ended_at"] = show_time(
                now_ms() - self.dice.choice([0, 0, 1, 30]) * _HOUR_MS - self.dice.randrange(3_000)
            )
        players = self.dice.sample(_PLAYERS, self.dice.randint(1, 6))
        results = [{"player_id": one, "score": self._score()} for one in players]
        body |= results[0] if self.dice.random() < 0.4 else {"results": results}
        return Submission("first", match_id, body)

    def _score(self) -> int:
        if self.dice.random() < 0.2:
            return self.rules.least + self.dice.randrange(5)  # many equal ones
        return self.dice.randint(self.rules.least, self.rules.most)

    async def _submit(self, client: httpx.AsyncClient, sent: list[Submission]) -> None:
        """Send until acknowledged: nobody knows what became of an attempt that was not."""
        for one in sent:
            self.in_flight[id(one)] = one
            one.sent_at = now_ms()
        waiting = sent
        while waiting and not self._ended:
            waiting = await self._attempt(client, waiting)
            if waiting:
                await asyncio.sleep(0.1)
        for one in sent:
            self.in_flight.pop(id(one), None)
            if one.kind == "first" and one.acknowledged_at and not self.only_timed:
                self._known = [*self._known[-60:], one]

    async def _attempt(self, client: httpx.AsyncClient, sent: list[Submission]) -> list[Submission]:
        for one in sent:
            one.attempts += 1
        if (len(sent) == 1 and self.dice.random() < 0.9) or not all(one.whole for one in sent):
            path, body, kind = "/v1/matches" if sent[0].whole else "/v1/scores", json.dumps(sent[0].body), "json"
        else:
            path, body, kind = "/v1/matches:batch", "\n".join(json.dumps(one.body) for one in sent), "x-ndjson"
        try:
            reply = await client.post(path, content=body, headers={"content-type": f"application/{kind}"}, timeout=12)
        except httpx.HTTPError:
            return sent
        answers = [json.loads(line) for line in reply.content.splitlines()] if kind == "x-ndjson" else [reply.json()]
        if kind == "x-ndjson" and reply.status_code != 200:
            answers = [answers[0]] * len(sent)
        again = []
        for one, answer in zip(sent, answers, strict=True):
            status = answer.get("status", reply.status_code)
            if status == 202:
                one.acknowledged_at = now_ms()
                one.position = answer["position"]
            elif status == 503:
                again.append(one)
            else:
                raise AssertionError(f"{one.body} was answered {status}: {answer}")
        return again

    # ------------------------------------------------------------------ reading

    async def _read_for_ever(self) -> None:
        asks: list[Callable[[str], tuple[str, dict[str, Any]]]] = [
            self._top,
            self._top,
            self._player,
            self._around,
            self._friends,
        ]
        async with httpx.AsyncClient(base_url=self.url) as client:
            while not self._ended:
                boards = windows_of(self.rules.leaderboard, now_ms())
                board = self.dice.choice(boards)[0]
                path, asked = self.dice.choice(asks)(board)
                await self._read(client, board, path, asked)
                await asyncio.sleep(self.dice.uniform(0.0, 0.04))

    def _top(self, board: str) -> tuple[str, dict[str, Any]]:
        del board
        return "top", {"n": 1000, "ties": self.dice.choice(["unique", "unique", "shared"])}

    def _player(self, board: str) -> tuple[str, dict[str, Any]]:
        del board
        asked: dict[str, Any] = {"id": self.dice.choice(_PLAYERS)}
        if self._known and self.dice.random() < 0.3:
            first = self.dice.choice(self._known)
            asked = {"id": self.dice.choice(list(first.results)), "after": first.position, "wait": 0.3}
            asked["match"] = first.match_id
        return "player", asked

    def _around(self, board: str) -> tuple[str, dict[str, Any]]:
        del board
        return "around", {"id": self.dice.choice(_PLAYERS), "k": self.dice.choice([0, 3, 100])}

    def _friends(self, board: str) -> tuple[str, dict[str, Any]]:
        del board
        return "friends", {"id": self.dice.sample(_PLAYERS, 8)}

    async def _read(self, client: httpx.AsyncClient, board: str, kind: str, asked: dict[str, Any]) -> None:
        awaited = asked.pop("match", None)
        sent_at = now_ms()
        try:
            reply = await client.get(f"/v1/boards/{quote(board, safe='')}/{kind}", params=asked, timeout=8)
        except httpx.HTTPError:
            self.failed_reads += 1
            return
        as_of = reply.headers.get("standings-as-of")
        self.reads.append(Read(kind, board, asked, sent_at, now_ms(), reply.status_code, as_of, reply.content, awaited))


async def _await_position(client: httpx.AsyncClient, board: str, position: str) -> None:
    give_up_at = time.monotonic() + 40
    params = {"n": "1", "after": position, "wait": "2"}
    while (await client.get(f"/v1/boards/{quote(board, safe='')}/top", params=params)).status_code != 200:
        if time.monotonic() > give_up_at:
            raise TimeoutError(f"{position} is not applied to {board}")
        await asyncio.sleep(0.05)


def _contradict(body: dict[str, Any], rules: Rules) -> dict[str, Any]:
    """The same match with another score."""
    changed: dict[str, Any] = json.loads(json.dumps(body))
    result = changed.get("results", [changed])[0]
    result["score"] = rules.least if result["score"] > rules.least else rules.most
    return changed


def now_ms() -> int:
    return time.time_ns() // 1_000_000
