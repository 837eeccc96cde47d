"""Readiness probes: each asks one question over the network once, bounded, and never raises."""

from __future__ import annotations

import http.client
import json
import socket
import struct
from collections.abc import Callable

from embedded.ports import LOOPBACK

PROBE_TIMEOUT_S = 1.0
_READYZ_TIMEOUT_S = 5.0  # it asks every store itself, for up to 4 s

Probe = Callable[[int], bool]
"""Takes the pid of the child that should answer; True when it answers and is ready."""


def probe_valkey(port: int) -> Probe:
    """Make a probe that is true once Valkey has loaded its file and runs as the given pid."""

    def ask(pid: int) -> bool:
        try:
            with socket.create_connection((LOOPBACK, port), timeout=PROBE_TIMEOUT_S) as link:
                link.sendall(b"PING\r\n")
                if not link.recv(64).startswith(b"+PONG"):
                    return False  # -LOADING while the append-only file is read
                link.sendall(b"INFO server\r\n")
                return f"process_id:{pid}\r\n".encode() in link.recv(65536)
        except OSError:
            return False

    return ask


def probe_broker(port: int) -> Probe:
    """Make a probe that is true once the broker answers a Kafka ApiVersions request."""
    correlation_id = 7
    body = struct.pack(">hhih", 18, 0, correlation_id, -1)
    request = struct.pack(">i", len(body)) + body

    def ask(_pid: int) -> bool:
        try:
            with socket.create_connection((LOOPBACK, port), timeout=PROBE_TIMEOUT_S) as link:
                link.sendall(request)
                head = link.recv(8, socket.MSG_WAITALL)
                return len(head) == 8 and struct.unpack(">ii", head)[1] == correlation_id
        except OSError:
            return False

    return ask


def probe_dynamodb(port: int) -> Probe:
    """Make a probe that is true once ListTables is answered.

    The emulator's first real request takes 0.3 s, for imports; so it is behind us then.
    """
    credential = "AWS4-HMAC-SHA256 Credential=probe/20200101/us-east-1/dynamodb/aws4_request"
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "X-Amz-Target": "DynamoDB_20120810.ListTables",
        "Authorization": f"{credential}, SignedHeaders=host, Signature=0",
    }
    return lambda _pid: _answers_200(port, "POST", "/", "{}", headers)


def probe_http(port: int, path: str) -> Probe:
    """Make a probe that is true once GET `path` answers 200; no proxy is ever asked."""
    return lambda _pid: _answers_200(port, "GET", path, None, {})


def ask_what_is_missing(port: int) -> str | None:
    """Ask the api, GET /readyz, what keeps it from being ready; None where nothing does."""
    try:
        status, body = _ask(port, "GET", "/readyz", None, {}, _READYZ_TIMEOUT_S)
        if status == 200:
            return None
        found = json.loads(body)
        unready = [lane for lane in found.get("lanes", ()) if lane["state"] != "ready"]
        if unready and all(lane["state"] == "rebuilding" for lane in unready):
            rows = sum(int(lane["progress"] or 0) for lane in unready)
            return f"boards are being rebuilt from the scorebook: {rows} rows so far"
        return str(found["detail"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        return f"the api does not answer: {error}"


def probe_nothing(_pid: int) -> bool:
    """Call a child ready as soon as it runs: for those that serve nothing."""
    return True


def _answers_200(port: int, method: str, path: str, body: str | None, headers: dict[str, str]) -> bool:
    try:
        return _ask(port, method, path, body, headers, PROBE_TIMEOUT_S)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def _ask(
    port: int, method: str, path: str, body: str | None, headers: dict[str, str], timeout_s: float
) -> tuple[int, bytes]:
    """Status and body of one reply."""
    link = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_s)
    try:
        link.request(method, path, body, headers)
        reply = link.getresponse()
        return reply.status, reply.read()
    finally:
        link.close()
