"""What the real API answers, every operation of it, is what the models say; and both clients can ask for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from api.app import create_app
from client import AsyncClient, Client, MatchConflict, NotAppliedYet, NotFound, ProblemError, Retries
from schemas.positions import Position, encode_position
from schemas.problem_replies import (
    PROBLEM_REPLIES,
    BatchAccepted,
    BatchRefused,
    BoardNotReadyReply,
    DefectReply,
    InvalidRequestReply,
    UnreadyReply,
)
from schemas.problems import CATALOGUE
from schemas.replies import (
    Accepted,
    Alive,
    Applied,
    BoardInfo,
    Friends,
    LeaderboardInfo,
    LeaderboardList,
    Neighbours,
    PlayerBoards,
    PlayerPlace,
    Ready,
    Receipt,
    ReplyBody,
    TopPage,
)
from schemas.times import format_time, parse_time
from stores.clock import now_ms
from tests.api.conftest import emulator_access, stores, world
from tests.api.world import AUTH, HOUR_MS, KEY, World
from tests.client.asgi import BlockingTransport, StreamingTransport

__all__ = ["emulator_access", "stores", "world"]  # fixtures

BOARD = "/v1/boards/ranked:all"
URL = "http://service"
QUICK = Retries(deadline_s=0)
PLAYERS = {"zed": 10, "amy": 20, "a/b": 10, "..": 5}
READY: list[tuple[str, type[ReplyBody]]] = [
    ("/v1/leaderboards", LeaderboardList),
    ("/v1/leaderboards/ranked", LeaderboardInfo),
    ("/v1/leaderboards/ranked/matches/m", Receipt),
    (BOARD, BoardInfo),
    ("/v1/boards/ranked:weekly", BoardInfo),
    (f"{BOARD}/top", TopPage),
    (f"{BOARD}/top?n=1", TopPage),
    (f"{BOARD}/top?from_rank=90", TopPage),
    (f"{BOARD}/top?ties=shared", TopPage),
    ("/v1/boards/empty:daily/top", TopPage),
    (f"{BOARD}/players/zed", PlayerPlace),
    (f"{BOARD}/player?id=..", PlayerPlace),
    (f"{BOARD}/players/zed/around", Neighbours),
    (f"{BOARD}/around?id=zed&k=0", Neighbours),
    (f"{BOARD}/friends?id=zed&id=ghost", Friends),
    ("/v1/players/zed/boards", PlayerBoards),
    ("/v1/players/ghost/boards", PlayerBoards),
    ("/livez", Alive),
    ("/readyz", Ready),
]
REBUILDING: list[tuple[str, type[ReplyBody]]] = [
    (BOARD, BoardInfo),
    (f"{BOARD}/players/zed", PlayerPlace),
    (f"{BOARD}/friends?id=zed&id=ghost", Friends),
    ("/v1/players/zed/boards", PlayerBoards),
]
REFUSED: list[tuple[str, str]] = [
    ("/v1/leaderboards/none", "leaderboard-not-found"),
    ("/v1/boards/ranked:monthly", "board-not-found"),
    ("/v1/boards/ranked:daily:2020-01-01", "board-expired"),
    (f"{BOARD}/players/ghost", "player-not-found"),
    ("/v1/leaderboards/ranked/matches/none", "match-not-found"),
    ("/nowhere", "not-found"),
    (f"{BOARD}/top?n=0&m=1", "invalid-request"),
    (f"{BOARD}/friends", "invalid-request"),
]


@pytest.fixture
def recorded(world: World) -> World:
    """A match of four, applied, and a leaderboard without a score."""
    world.define("empty", min=1, max=2**53 - 1, order="lower", windows=("all", "daily"))
    results = [{"player_id": player_id, "score": score} for player_id, score in PLAYERS.items()]
    body = {"match_id": "m", "leaderboard": "ranked", "ended_at": format_time(now_ms() - HOUR_MS), "results": results}
    world.apply(world.event(body))
    world.await_leaderboard("empty")
    return world


@pytest.fixture
def blocking(recorded: World) -> Iterator[Client]:
    with Client(URL, KEY, retries=QUICK, transport=BlockingTransport(recorded.api)) as client:
        yield client


def check(response: httpx.Response, model: type[ReplyBody]) -> dict[str, Any]:
    """The body, which is nothing but what the model says."""
    shown = model.model_validate_json(response.content).model_dump(mode="json", exclude_unset=True)
    assert shown == response.json()
    return shown


def test_every_reply_is_what_its_model_says(recorded: World) -> None:
    for path, model in READY:
        response = recorded.api.get(path, headers=AUTH)
        assert response.status_code == 200, path
        check(response, model)
    check(recorded.api.post(f"{BOARD}/friends", {"player_ids": ["zed"]}, headers={}), Friends)


def test_every_reply_of_a_rebuild_is_what_its_model_says(recorded: World) -> None:
    recorded.begin_rebuild(recorded.lane_of(recorded.board()))
    for path, model in REBUILDING:
        response = recorded.api.get(path)
        assert response.status_code == 200, path
        assert check(response, model).get("state", "rebuilding") == "rebuilding"
    check(recorded.api.get(f"{BOARD}/top"), BoardNotReadyReply)
    check(recorded.api.get("/readyz"), UnreadyReply)


def test_every_answer_to_a_submission_is_what_its_model_says(recorded: World) -> None:
    check(recorded.api.submit(match_id="m-2"), Accepted)
    # Recorded and applied before it is asked for: the answer needn't race the test.
    recorded.skip()
    recorded.apply(recorded.event(_score("m-3")))
    check(recorded.api.send("POST", "/v1/scores?wait=5", json=_score("m-3"), headers=AUTH), Applied)
    lines = [json.dumps(one) for one in (_score("m-4"), _score("m-5") | {"score": "x"}, _score("m-6", "none"))]
    headers = AUTH | {"Content-Type": "application/x-ndjson"}
    response = recorded.api.send("POST", "/v1/matches:batch", content="\n".join([*lines, "{"]), headers=headers)
    answers = [json.loads(line) for line in response.content.splitlines()]
    models: list[type[ReplyBody]] = [BatchAccepted, BatchRefused, BatchRefused, BatchRefused]
    for answer, model in zip(answers, models, strict=True):
        assert model.model_validate(answer).model_dump(mode="json", exclude_unset=True) == answer
    assert [answer["status"] for answer in answers] == [202, 422, 404, 400]


def test_every_problem_is_what_its_document_says(recorded: World) -> None:
    for path, name in REFUSED:
        response = recorded.api.get(path, headers=AUTH)
        assert check(response, PROBLEM_REPLIES[name])["type"] == f"/problems/{name}"
        assert response.status_code == CATALOGUE[name][0]
    post = recorded.api.post
    check(post("/v1/scores", {}), InvalidRequestReply)
    for response, name in (
        (post("/v1/scores", _score("m"), headers={}), "unauthorized"),
        (post("/v1/scores", _score("m", "main"), headers={"Authorization": "Bearer limited-key"}), "forbidden"),
        (post("/v1/leaderboards", {}), "method-not-allowed"),
        (recorded.api.send("POST", "/v1/scores", content=b"x", headers=AUTH), "unsupported-media-type"),
        (post("/v1/scores", ["x" * 70_000]), "too-large"),
        (recorded.api.get(f"{BOARD}?wait=0.01&after={_far_off(recorded)}"), "not-applied-yet"),
    ):
        assert check(response, PROBLEM_REPLIES[name])["type"] == f"/problems/{name}"


def test_a_defect_is_what_its_document_says(recorded: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded.api.services.reader, "size", None)
    check(recorded.api.get(BOARD), DefectReply)


def test_the_client_asks_for_everything_there_is(blocking: Client) -> None:
    assert [one.leaderboard for one in blocking.leaderboards()] == ["empty", "ranked"]
    assert blocking.leaderboard("empty").order == "lower"
    assert blocking.board("ranked:all").size == 4
    assert [one.player_id for one in blocking.top("ranked:all", 2).entries] == ["amy", "zed"]
    assert [one.rank for one in blocking.top("ranked:all", from_rank=2, ties="shared").entries] == [2, 2, 4]
    walked = [one.player_id for page in blocking.pages("ranked:all", 3) for one in page.entries]
    assert walked == ["amy", "zed", "a/b", ".."]
    for player_id, score in PLAYERS.items():
        assert blocking.player("ranked:all", player_id).score == score
        assert blocking.around("ranked:all", player_id, 0).entries[0].player_id == player_id
        boards = blocking.player_boards(player_id)
        assert (boards.player_id, {one.score for one in boards.boards}) == (player_id, {score})
    for many in ([], ["ghost" * 20] * 50):
        friends = blocking.friends("ranked:all", ["..", "zed", *many])
        assert [(one.friend_rank, one.player_id) for one in friends.entries] == [(1, "zed"), (2, "..")]
    found = blocking.receipt("ranked", "m")
    assert {one.player_id: one.score for one in found.results} == PLAYERS
    assert datetime.fromisoformat(found.ended_at).timestamp() * 1_000 == pytest.approx(parse_time(found.ended_at))
    with pytest.raises(NotFound) as caught:
        blocking.player("ranked:all", "ghost")
    assert caught.value.name == "player-not-found"


def test_a_row_is_ready_unless_it_says_otherwise(recorded: World, blocking: Client) -> None:
    assert blocking.player("ranked:all", "zed").state == "ready"
    recorded.begin_rebuild(recorded.lane_of(recorded.board()))
    place = blocking.player("ranked:all", "zed")
    assert (place.state, place.rank, place.score) == ("rebuilding", None, 10)
    with pytest.raises(ProblemError, match="rebuilding") as caught:
        blocking.top("ranked:all")
    assert (caught.value.name, caught.value.retry_after_s) == ("board-not-ready", 2)


def test_the_client_submits_and_reads_what_it_wrote(recorded: World) -> None:
    transport = BlockingTransport(recorded.api)
    client = Client(URL, KEY, retries=QUICK, transport=transport, read_own_writes=True)
    accepted = client.submit_score("m-2", "new", 30, leaderboard="ranked", ended_at=format_time(now_ms()))
    assert client.last_position == accepted.position
    # The log begins at 0, and one match was applied by hand: this is the same place.
    assert client.player("ranked:all", "zed").score == 10
    client.submit_match("m-3", {"new": 30, "zed": 1}, leaderboard="ranked")
    with pytest.raises(NotAppliedYet):
        client.top("ranked:all", wait_s=0.05)
    recorded.skip([(recorded.board(), "new", recorded.board().codec.pack(30, now_ms()))])
    assert client.top("ranked:all").entries[0].player_id == "new"
    answers = list(client.submit_batch([_score("m-4"), b"{", _score("m-5")]))
    assert [(one.line, one.status) for one in answers] == [(1, 202), (2, 400), (3, 202)]
    assert isinstance(answers[2], BatchAccepted)
    assert client.last_position == answers[2].position
    client.close()


def test_a_conflict_is_told_to_who_waits(recorded: World, blocking: Client) -> None:
    with pytest.raises(MatchConflict):
        blocking.submit_score("m-2", "zed", 11, leaderboard="ranked", wait_s=5, ended_at=_record_another(recorded))


def test_the_asynchronous_client_does_the_same(recorded: World) -> None:
    async def use() -> None:
        transport = StreamingTransport(create_app(recorded.api.services))
        async with AsyncClient(URL, KEY, retries=QUICK, transport=transport) as client:
            assert (await client.player("ranked:all", "..")).score == 5
            walked = [one.player_id async for page in client.pages("ranked:all", 3) for one in page.entries]
            assert walked == ["amy", "zed", "a/b", ".."]
            answers = [one.status async for one in client.submit_batch([_score("m-4"), "{"])]
            assert answers == [202, 400]
            accepted = await client.submit_match("m-5", PLAYERS, leaderboard="ranked")
            assert client.last_position == accepted.position
            with pytest.raises(NotFound):
                await client.receipt("ranked", "m-5")

    recorded.api.run(use())


def test_a_live_board_comes_at_once_and_whenever_it_changes(recorded: World) -> None:
    board = recorded.board()

    async def listen() -> list[TopPage]:
        transport = StreamingTransport(create_app(recorded.api.services))
        async with AsyncClient(URL, transport=transport) as client:
            pages = client.live("ranked:all", 1)
            first = await anext(pages)
            await asyncio.to_thread(recorded.put, board, {"new": (99, now_ms())})
            second = await anext(pages)
            await pages.aclose()  # type: ignore[attr-defined]
            assert recorded.api.services.feeds.subscribers == 0
            return [first, second]

    pages = recorded.api.run(listen())
    assert [[one.player_id for one in page.entries] for page in pages] == [["amy"], ["new"]]
    assert [page.size for page in pages] == [4, 5]


def _score(match_id: str, leaderboard: str = "ranked") -> dict[str, Any]:
    return {"match_id": match_id, "leaderboard": leaderboard, "player_id": "zed", "score": 1}


def _far_off(world: World) -> str:
    return encode_position(Position(world.log_id, 0, 1_000_000))


def _record_another(world: World) -> str:
    """Record m-2 with another score, of a time that is answered; the log then has its next record applied."""
    ended_at = format_time(now_ms())
    world.apply(world.event(_score("m-2") | {"ended_at": ended_at}))
    return ended_at
