"""A stack of its own for the tests of the page, and a real Chromium that looks at it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from embedded.errors import StackError
from embedded.ports import find_free_port
from embedded.services import require_wheels
from tests.servers.missing import Missing, skip_or_fail

WIDTH, HEIGHT = 1100, 800
_LEADERBOARDS = ("live", "odd", "near", "pals", "keys", "looks", "phone", "lost", "gone", "still", "quiet", "words")
_STATE_TIMEOUT_S = 60


class Stack:
    """`standings up` in a process of its own, and its API."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.output = folder / "output"
        self.port = find_free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "cli", "up", "--data", str(self.data), "--port", str(self.port)],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "XDG_STATE_HOME": str(folder / "state")},
                cwd=Path(__file__).parents[2],
            )
        self._submitted = 0

    def await_ready(self) -> None:
        """Fails with what it has said if it ends, or takes too long."""
        until_s = time.monotonic() + _STATE_TIMEOUT_S
        while not (self.data / "stack.json").exists():
            if self.process.poll() is not None or time.monotonic() > until_s:
                pytest.fail(f"no stack:\n{self.output.read_text()}")
            time.sleep(0.1)

    @property
    def file(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.data / "stack.json").read_text())
        return found

    def submit(self, leaderboard: str, scores: dict[str, int]) -> None:
        """One match, which every live board holds once this returns."""
        self._submitted += 1
        results = [{"player_id": player_id, "score": score} for player_id, score in scores.items()]
        reply = httpx.post(
            f"{self.url}/v1/matches?wait=5",
            json={"match_id": f"m-{self._submitted}", "leaderboard": leaderboard, "results": results},
            headers={"Authorization": f"Bearer {self.file['submit_key']}"},
        )
        assert reply.status_code == 200, reply.text

    def apply(self, text: str) -> None:
        """Leaderboards, as a file says them; the API knows them once this returns."""
        file = self.data / "leaderboards.toml"
        file.write_text(text)
        command = [sys.executable, "-m", "cli", "apply", str(file), "--data", str(self.data)]
        subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[2])
        wanted = text.count("[leaderboards.") + 1
        until_s = time.monotonic() + 10
        while len(httpx.get(f"{self.url}/v1/leaderboards").json()["leaderboards"]) < wanted:
            assert time.monotonic() < until_s
            time.sleep(0.1)

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="session")
def chromium_path() -> str:
    found = shutil.which("chromium")
    if found is None:
        skip_or_fail(Missing("there is no Chromium: install Debian's package chromium"))
    return found


@pytest.fixture(scope="session")
def stack(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """With a leaderboard for each test that writes, so that none looks at another's."""
    del chromium_path  # without it there is no use for a stack
    try:
        require_wheels()
    except StackError as error:
        skip_or_fail(Missing(str(error)))
    stack = Stack(tmp_path_factory.mktemp("stack"))
    try:
        stack.await_ready()
        bounds = 'order = "higher"\nmin = -100_000\nmax = 100_000\nwindows = ["all", "daily"]\n'
        defined = [f"[leaderboards.{name}]\n{bounds}" for name in _LEADERBOARDS]
        stack.apply("\n".join([*defined, f"[leaderboards.laps]\nscale = 2\n{bounds}"]))
        yield stack
    finally:
        stack.end()


@pytest.fixture(scope="module")
def chromium(chromium_path: str) -> Iterator[Browser]:
    """For a module, not longer: while it runs, this thread is playwright's event loop."""
    sandbox = [] if os.geteuid() else ["--no-sandbox"]  # root has none
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path, args=sandbox)
        yield browser
        browser.close()


class Reader:
    """One who reads the page, and what its console said."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.complaints: list[str] = []
        self.page = self.open_page()

    def open_page(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(15_000)
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        return page

    def go(self, board: str, **more: str | list[str]) -> Page:
        """Open the page at a board, in a document of its own."""
        pairs = [("board", board)]
        for name, values in more.items():
            pairs += [(name, value) for value in ([values] if isinstance(values, str) else values)]
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/#" + "&".join(f"{name}={quote(value, safe='')}" for name, value in pairs))
        return self.page

    def _hear(self, message: ConsoleMessage) -> None:
        # A reply that is an error is logged by the browser itself, whatever the page makes of it.
        if message.type in ("error", "warning") and not message.text.startswith("Failed to load resource"):
            self.complaints.append(message.text)


def find_serious(page: Page) -> list[str]:
    """What axe-core finds that keeps people out."""
    found = Axe().run(page).response
    assert found["testEngine"]["name"] == "axe-core"
    return [
        f"{one['id']}: {[node['html'] for node in one['nodes']]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]


@pytest.fixture
def make_reader(stack: Stack, chromium: Browser) -> Iterator[Callable[..., Reader]]:
    """Readers with options of a browser's context. Afterwards none may have had anything to complain of."""
    made: list[Reader] = []

    def make(**options: Any) -> Reader:
        given = {"viewport": {"width": WIDTH, "height": HEIGHT}, "locale": "en-GB"} | options
        made.append(Reader(chromium.new_context(**given), stack.url))
        return made[-1]

    yield make
    for reader in made:
        reader.context.close()
    assert [complaint for reader in made for complaint in reader.complaints] == []


@pytest.fixture
def reader(make_reader: Callable[..., Reader]) -> Reader:
    return make_reader()
