"""Schemathesis asks the running API for every operation, as the document says and as it forbids."""

from __future__ import annotations

import os
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from schemathesis import CheckFunction
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import negative_data_rejection

from api.openapi import describe
from schemas.ids import check_id
from schemas.positions import Cursor, encode_cursor
from schemas.replies import TopPage
from schemas.times import format_time
from stores.clock import now_ms
from tests.api.served import Server
from tests.api.world import KEY, World

# Another run: STANDINGS_TEST_SEED=2 pytest tests/openapi
SEED = int(os.environ.get("STANDINGS_TEST_SEED", "1"))
BATCH = "/v1/matches:batch"
LIVE = "/v1/boards/{board}/live"
_STREAM_S = 0.3
_PLAYERS = {"zed": 10, "amy": 7, "bo": 12, "a/b": 7, "🦊": 1}
_BOARDS = ("main:all", "main:weekly", "weekly", "ranked:daily", "main:all", "none:all", "main:monthly")
_CONFIG = schemathesis.Config.from_dict({
    "seed": SEED,
    "generation": {"database": "none", "allow-x00": False},
    # The stores are well: no reply may be a 503 or a 504.
    "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "304", "404", "410"]}},
})  # fmt: skip
schema = schemathesis.openapi.from_dict(describe(frozenset({"read", "submit"})), config=_CONFIG)


@schemathesis.serializer("application/x-ndjson")
def write_lines(_: Any, value: Any) -> bytes:
    """The text as it is."""
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


class Running:
    """The API as a process, with some scores; and what it answered so far, by operation."""

    def __init__(self, world: World, server: Server, position: str) -> None:
        self.url = f"http://127.0.0.1:{server.port}"
        self.session = requests.Session()
        self.answered: dict[str, set[int]] = defaultdict(set)
        board = world.board("all", "main")
        self.position = position
        self.cursor = {
            ties: encode_cursor(Cursor(board.codec.pack(10, now_ms()), "zed"), board.name, ties)
            for ties in ("unique", "shared")
        }


@pytest.fixture(scope="module")
def running(shared: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    shared.define("main", windows=("all", "daily", "weekly"), min=-(2**52), max=2**52 - 1)
    results = [{"player_id": player_id, "score": score} for player_id, score in _PLAYERS.items()]
    body = {"match_id": "m-1", "ended_at": format_time(now_ms() - 1_000), "results": results}
    shared.await_leaderboard("main")
    submitted = shared.api.post("/v1/matches", body)
    shared.apply(shared.event(body))
    server = Server(shared, tmp_path_factory.mktemp("server") / "output")
    try:
        found = Running(shared, server, submitted.json()["position"])
        yield found
        found.session.close()
    finally:
        server.end()


@schema.parametrize()
@seed(SEED)
@settings(
    max_examples=15,
    derandomize=False,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_document_allows(case: schemathesis.Case[Any], running: Running) -> None:
    Steering(case, running).steer()
    headers = {"Authorization": f"Bearer {KEY}"} if "security" in case.operation.definition.raw else None
    waiting_s = _STREAM_S if case.operation.path == LIVE else 10
    response = case.call(base_url=running.url, session=running.session, headers=headers, timeout=waiting_s)
    running.answered[case.operation.label].add(response.status_code)
    again = {"base_url": running.url, "session": running.session, "timeout": waiting_s}
    # Whatever text a batch is, its lines are answered one by one.
    excluded: list[CheckFunction] | None = [negative_data_rejection] if case.operation.path == BATCH else None
    try:
        case.validate_response(response, headers=headers, excluded_checks=excluded, transport_kwargs=again)
        if case.operation.path == LIVE and response.status_code == 200:
            check_events(response.content)
    except Exception as error:
        error.add_note(f"STANDINGS_TEST_SEED={SEED}")
        raise


def check_events(content: bytes) -> None:
    """What a schema of text can't say: each event is a page, as JSON in one line."""
    events = [one for one in content.decode().split("\n\n") if one and not one.startswith(":")]
    assert events
    for event in events:
        name, data = event.split("\n")
        assert name == "event: top"
        TopPage.model_validate_json(data.removeprefix("data: "))


def test_every_operation_was_seen_to_succeed_and_to_refuse(running: Running) -> None:
    """That the test above met more than refusals. It stands behind it, in the same module."""
    if not running.answered:
        pytest.skip("the test above did not run")
    for method, path, operation in described():
        answered = running.answered[f"{method} {path}"]
        assert answered & {200, 202}, f"{method} {path} never succeeded (seed {SEED})"
        if any(one["in"] == "query" for one in operation.get("parameters", [])):
            assert 422 in answered, f"{method} {path} never refused (seed {SEED})"


def described() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in schema.raw_schema["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


class Steering:
    """Makes of values that keep the schema such ones that also keep the rules which a schema can't say.

    Ids are in NFC and counted in bytes; boards and tokens exist; scores and times suit their
    leaderboard. What was generated to be refused stays as it is.
    """

    def __init__(self, case: schemathesis.Case[Any], running: Running) -> None:
        self._case = case
        self._running = running
        self._dice = zlib.crc32(repr((case.path_parameters, case.query, case.body)).encode("utf-8", "replace"))

    def steer(self) -> None:
        if self._is_meant(ParameterLocation.PATH):
            self._steer_path(self._case.path_parameters)
        if self._is_meant(ParameterLocation.QUERY):
            self._steer_query(self._case.query)
        if self._is_meant(ParameterLocation.BODY) and isinstance(self._case.body, dict):
            self._steer_body(self._case.body)

    def _is_meant(self, location: ParameterLocation) -> bool:
        return self._case.meta is None or not self._case.meta.is_negative_at(location)

    def _steer_path(self, path: dict[str, Any]) -> None:
        if "board" in path:
            path["board"] = _BOARDS[self._dice % len(_BOARDS)]
        if "leaderboard" in path and self._dice % 3:
            path["leaderboard"] = "main"
        for name in ("player_id", "match_id"):
            if name in path:
                # What stands in a path is percent-encoded already, and clients eat . and ..
                text = self._id(unquote(path[name]))
                path[name] = quote("zed" if text in (".", "..") else text, safe="")
        if "match_id" in path and self._dice % 2:
            path |= {"leaderboard": "main", "match_id": "m-1"}

    def _steer_query(self, query: dict[str, Any]) -> None:
        if isinstance(query.get("id"), list):
            query["id"] = [self._id(one) for one in query["id"]]
        elif "id" in query:
            query["id"] = self._id(query["id"])
        if "after" in query:
            query["after"] = self._running.position
        if "wait" in query:
            query["wait"] = min(max(round(float(query["wait"]), 3), 0.001), 0.05)
        if "cursor" in query:
            self._case.path_parameters["board"] = "main:all"
            query["cursor"] = self._running.cursor[str(query.get("ties", "unique"))]
            query.pop("from_rank", None)

    def _steer_body(self, body: dict[str, Any]) -> None:
        for name in ("match_id", "player_id"):
            if name in body:
                body[name] = self._id(body[name])
        if "score" in body:
            body["score"] = _score(body["score"])
        if "leaderboard" in body:
            body["leaderboard"] = ("main", "ranked", "none")[self._dice % 3]
        if "ended_at" in body:
            body["ended_at"] = format_time(now_ms() - self._dice % 1_000)
        if "player_ids" in body:
            body["player_ids"] = [self._id(one) for one in body["player_ids"]]
        if "results" in body:
            found = {self._id(one["player_id"]): _score(one["score"]) for one in body["results"]}
            body["results"] = [{"player_id": player_id, "score": score} for player_id, score in found.items()]

    def _id(self, text: str) -> str:
        if self._dice % 4 == 0:
            return list(_PLAYERS)[len(text) % len(_PLAYERS)]
        kept = "".join(one for one in unicodedata.normalize("NFC", text) if unicodedata.category(one) != "Cc")
        try:
            return check_id(kept.encode("utf-8", "ignore")[:128].decode("utf-8", "ignore"))
        except ValueError:
            return "zed"


def _score(score: float) -> int:
    """Within bounds; 10.0 is an integer to a schema alone."""
    return int(score) % 1_000_000
