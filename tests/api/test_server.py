"""The API as a process, over a socket: what only the HTTP server itself can get wrong."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from stores.clock import now_ms
from tests.api.served import ROOT, Server
from tests.api.world import KEY, World

BOARD = "/v1/boards/ranked:all"
SCORE = b'{"match_id": "m", "leaderboard": "ranked", "player_id": "zed", "score": 1}'
HEAD = f"POST /v1/scores HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(shared: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One for the tests that leave it running."""
    server = Server(shared, tmp_path_factory.mktemp("server") / "output")
    yield server
    server.end()


@pytest.fixture
def mortal(shared: World, tmp_path: Path) -> Iterator[Server]:
    """One for a test that ends it."""
    server = Server(shared, tmp_path / "output")
    yield server
    server.end()


def read_all(link: socket.socket) -> bytes:
    found = b""
    while piece := link.recv(65_536):
        found += piece
    return found


def test_paths_arrive_as_they_were_sent(shared: World, server: Server) -> None:
    ids = {"a/b": "a%2Fb", "..": "%2E%2E", "🦊": "%F0%9F%A6%8A", "%41": "%2541", "a?b": "a%3Fb"}
    shared.put(shared.board(), {player_id: (place, now_ms()) for place, player_id in enumerate(ids)})
    for player_id, sent in ids.items():
        status, body, _ = server.send("GET", f"{BOARD}/players/{sent}?ties=shared")
        assert (status, orjson.loads(body)["player_id"]) == (200, player_id)
    status, body, _ = server.send("GET", f"{BOARD}/players/%FF")
    assert (status, orjson.loads(body)["type"]) == (422, "/problems/invalid-request")
    with server.connect() as link:
        link.sendall(f"GET {BOARD}/players/🦊 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        assert read_all(link).startswith(b"HTTP/1.1 200 ")


def test_head_keeps_the_length_and_sends_no_body(server: Server) -> None:
    _, body, got = server.send("GET", BOARD)
    status, nothing, head = server.send("HEAD", BOARD)
    assert (status, nothing, head["Content-Length"]) == (200, b"", got["Content-Length"])
    assert int(head["Content-Length"]) == len(body)


def test_a_key_in_any_bytes_is_refused_and_does_no_harm(server: Server) -> None:
    for key in ("Löwe".encode(), b"\xff\xfe", b"x" * 10_000):
        with server.connect() as link:
            link.sendall(b"POST /v1/scores HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + key)
            link.sendall(b"\r\nContent-Length: 2\r\n\r\n{}")
            assert read_all(link).startswith(b"HTTP/1.1 401 ")


def test_too_large_is_told_although_the_client_is_still_sending(server: Server) -> None:
    for announced in ("Transfer-Encoding: chunked", "Content-Length: 100000000"):
        with server.connect() as link:
            link.sendall((HEAD + announced + "\r\n\r\n").encode())
            chunk = b" " * 70_000
            link.sendall(b"%x\r\n%b\r\n" % (len(chunk), chunk) if "chunked" in announced else chunk)
            assert link.recv(65_536).startswith(b"HTTP/1.1 413 ")
    status, body, _ = server.send("POST", "/v1/scores", b" " * 1_000_000)
    assert (status, orjson.loads(body)["type"]) == (413, "/problems/too-large")


def test_a_client_that_goes_away_harms_nobody(server: Server) -> None:
    with server.connect() as link:
        link.sendall((HEAD + "Content-Length: 1000\r\n\r\n{").encode())
    assert server.send("POST", "/v1/scores", SCORE)[0] == 202
    assert server.process.poll() is None


def test_at_the_end_requests_under_way_are_finished(mortal: Server) -> None:
    answers: list[int] = []
    waiting = threading.Thread(target=lambda: answers.append(mortal.send("POST", "/v1/scores?wait=2", SCORE)[0]))
    waiting.start()
    time.sleep(0.5)
    mortal.process.send_signal(signal.SIGTERM)
    waiting.join(10)
    assert answers == [202]
    assert mortal.process.wait(10) == 0
    assert "Traceback" not in mortal.output.read_text()


def test_a_port_that_is_taken_is_told_in_one_line(server: Server) -> None:
    second = subprocess.run(
        [sys.executable, "-m", "api"],
        cwd=ROOT,
        env=server.environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert line.startswith(f"can't listen on 127.0.0.1:{server.port} ")


def test_after_a_kill_nothing_listens_any_more(mortal: Server) -> None:
    mortal.process.kill()
    mortal.process.wait()
    with pytest.raises(ConnectionRefusedError):
        mortal.connect()
