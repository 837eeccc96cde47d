"""The commands that use the client, against a service on this machine that answers by a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLACE = {
    "board": "main:all", "as_of": None, "size": None, "player_id": "a/b", "rank": None, "score": 7,
    "achieved_at": None, "top_percent": None, "state": "rebuilding",
}  # fmt: skip
ENTRY = {"rank": 1, "player_id": "[bold]🏆", "score": 10, "achieved_at": "2026-12-01T00:41:27.953Z"}
TOP = {"board": "main:all", "as_of": "2026-12-01T00:41:27.997Z", "size": 1, "entries": [ENTRY], "next": None}
REFUSED = {
    "type": "/problems/invalid-request", "title": "t", "status": 422, "detail": "d",
    "errors": [{"pointer": "/score", "detail": "is required"}, {"pointer": "/match_id", "detail": "is required"}],
}  # fmt: skip


class Service(BaseHTTPRequestHandler):
    """Knows one board and one player; of a batch, every line of `bad` is refused."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        path = self.path.partition("?")[0]
        replies = {"/v1/boards/all/top": TOP, "/v1/boards/all/player": PLACE}
        missing = {
            "type": "/problems/board-not-found",
            "title": "t",
            "status": 404,
            "detail": "there is no\nsuch board",
        }
        self._reply(200 if path in replies else 404, json.dumps(replies.get(path, missing)))

    def do_POST(self) -> None:
        self.asked.append(self.path)
        lines = self.rfile.read(int(self.headers["Content-Length"])).split(b"\n")
        if b"forbidden" in lines[0]:
            self._reply(403, json.dumps({"type": "/problems/forbidden", "title": "t", "status": 403, "detail": "no"}))
            return
        said = [REFUSED if b"bad" in line else {"status": 202, "position": f"p-{len(line)}"} for line in lines]
        self._reply(200, "\n".join(json.dumps({"line": number} | one) for number, one in enumerate(said, 1)))

    def _reply(self, status: int, text: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def service() -> Iterator[ThreadingHTTPServer]:
    Service.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run(url: str, *arguments: str, stdin: bytes = b"", program: str = "import cli; cli.main()") -> Any:
    known = {name: value for name, value in os.environ.items() if not name.startswith("STANDINGS_")}
    known |= {"STANDINGS_URL": url, "STANDINGS_KEY": "k", "NO_PROXY": "127.0.0.1", "XDG_STATE_HOME": os.devnull}
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.argv[0] = 'standings'; {program}", *arguments],
        input=stdin, capture_output=True, timeout=60, env=known, cwd=ROOT, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def url_of(service: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{service.server_port}"


def test_top_and_player_print_what_the_service_says(service: ThreadingHTTPServer) -> None:
    code, out, err = run(url_of(service), "top", "all", "-n", "3")
    assert (code, err) == (0, "")
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["rank", "player", "score", "achieved"],
        ["1", "[bold]🏆", "10", "2026-12-01T00:41:27.953Z"],
    ]
    code, out, _ = run(url_of(service), "top", "all", "--json")
    assert (code, json.loads(out)) == (0, TOP)
    code, out, _ = run(url_of(service), "player", "all", "a/b")
    assert (code, out.splitlines()[-1].split()) == (0, ["a/b", "7"])
    code, out, _ = run(url_of(service), "player", "all", "a/b", "--json")
    assert (code, json.loads(out)) == (0, PLACE)
    assert Service.asked[0].startswith("/v1/boards/all/top?n=3&")
    assert Service.asked[2].startswith("/v1/boards/all/player?id=a%2Fb&")


def test_a_problem_is_one_line_and_exit_1(service: ThreadingHTTPServer) -> None:
    assert run(url_of(service), "top", "none") == (1, "", "standings: there is no such board\n")


def test_nobody_at_the_address_is_one_line_and_exit_1_soon(service: ThreadingHTTPServer) -> None:
    url = url_of(service)
    service.server_close()
    for arguments in (("top", "all"), ("player", "all", "zed"), ("submit", "-")):
        code, out, err = run(url, *arguments, stdin=b'{"match_id": "m"}\n')
        assert (code, out.strip(), err.count("\n")) == (1, "", 1)
        assert err.startswith(f"standings: no service answers at {url} (")
        assert "is it running? STANDINGS_URL or --data tell where" in err


def test_what_is_no_address_is_one_line_and_exit_1() -> None:
    code, _, err = run("nowhere", "top", "all")
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("standings: 'nowhere' is no address of a service")


def test_refused_lines_are_told_by_their_number_in_the_file(service: ThreadingHTTPServer) -> None:
    file = b'{"match_id": "m-1"}\n\n{"bad": "\xff"}\r\n{"match_id": "m-2, longer"}\n{"bad": 2}'
    code, out, err = run(url_of(service), "submit", "-", stdin=file)
    assert (code, out) == (1, "2 accepted, 2 refused\n")
    reason = "/score: is required; /match_id: is required"
    assert err == f"standings: line 3: {reason}\nstandings: line 5: {reason}\n"
    code, out, _ = run(url_of(service), "submit", "-", "--json", stdin=file)
    refused = [{"line": 3, "reason": reason}, {"line": 5, "reason": reason}]
    assert json.loads(out) == {"accepted": 2, "refused": refused, "position": "p-27"}


def test_a_long_file_goes_in_batches_and_keeps_its_numbers(service: ThreadingHTTPServer) -> None:
    rows = [f"{'bad' if number == 1_700 else 'm'},zed,{number}" for number in range(1, 2_101)]
    code, out, err = run(url_of(service), "submit", "-", stdin="\n".join(rows).encode())
    assert (code, out) == (1, "2099 accepted, 1 refused\n")
    assert err.startswith("standings: line 1700: ")
    assert Service.asked == ["/v1/matches:batch"] * 3


def test_a_file_that_breaks_off_says_how_far_it_went(service: ThreadingHTTPServer) -> None:
    rows = [f"{'forbidden' if number == 1_001 else 'm'},zed,{number}" for number in range(1, 1_501)]
    code, out, err = run(url_of(service), "submit", "-", stdin="\n".join(rows).encode())
    assert (code, out.strip(), err.count("\n")) == (1, "", 1)
    assert "no; 1000 lines were accepted before this" in err
    assert "submit the whole again" in err


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import client", "boto3 botocore kafka redis starlette granian orjson structlog typer prometheus_client"),
        ("import cli; cli.main()", "boto3 botocore kafka redis starlette granian prometheus_client"),
    ],
    ids=["the client", "a command"],
)
def test_what_goes_over_http_loads_nothing_of_the_server(
    service: ThreadingHTTPServer, program: str, absent: str
) -> None:
    told = "import atexit; atexit.register(lambda: print(*sys.modules, file=sys.stderr))"
    code, _, err = run(url_of(service), "top", "all", program=f"{told}; {program}")
    assert code == 0
    assert "client.session" in err.split()
    assert not set(absent.split()) & set(err.split())
