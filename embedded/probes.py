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
    link = http.client.HTTPConnection(LOOPBACK, port, timeout=_READYZ_TIMEOUT_S)
    try:
        link.request("GET", "/readyz")
        reply = link.getresponse()
        body = reply.read()
        if reply.status == 200:
            return None
        found = json.loads(body)
        rebuilding = [lane for lane in found.get("lanes", ()) if lane["state"] == "rebuilding"]
        if len(rebuilding) == sum(lane["state"] != "ready" for lane in found.get("lanes", ())) > 0:
            rows = sum(int(lane["progress"] or 0) for lane in rebuilding)
            return f"boards are being rebuilt from the scorebook: {rows} rows so far"
        return str(found["detail"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
        return f"the api does not answer: {error}"
    finally:
        link.close()


def probe_nothing(_pid: int) -> bool:
    """Call a child ready as soon as it runs: for those that serve nothing."""
    return True


def _answers_200(port: int, method: str, path: str, body: str | None, headers: dict[str, str]) -> bool:
    link = http.client.HTTPConnection(LOOPBACK, port, timeout=PROBE_TIMEOUT_S)
    try:
        link.request(method, path, body, headers)
        return link.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        link.close()
