"""The API as a process of its own, over a test's deployment."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
from pathlib import Path

from embedded.ports import find_free_port
from tests.api.world import KEY, World, wait_until

ROOT = Path(__file__).resolve().parents[2]


class Server:
    """`python -m api` over a test's deployment."""

    def __init__(self, world: World, output: Path) -> None:
        settings = world.settings
        self.port = find_free_port()
        self.environment = os.environ | {
            "STANDINGS_PREFIX": settings.prefix,
            "STANDINGS_REDIS_URL": settings.redis_url.get_secret_value(),
            "STANDINGS_KAFKA": settings.kafka,
            "STANDINGS_DYNAMODB_URL": settings.dynamodb_url or "",
            "STANDINGS_SUBMIT_KEYS": settings.submit_keys.get_secret_value(),
            "STANDINGS_PORT": str(self.port),
        }
        self.output = output
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "api"], cwd=ROOT, env=self.environment, stdout=file, stderr=file
            )
        wait_until(self._is_ready)

    def send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes, http.client.HTTPMessage]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            link.request(method, path, body, {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"})
            reply = link.getresponse()
            return reply.status, reply.read(), reply.headers
        finally:
            link.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.output.read_text()
        try:
            return self.send("GET", "/readyz")[0] == 200
        except OSError:
            return False
