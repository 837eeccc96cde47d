"""The demo: a real sample through the whole way, then a small live game."""

from __future__ import annotations

import itertools
import math
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
from rich.console import Console
from rich.live import Live

from client import Client
from commands.administer import apply, read_definitions
from commands.http import open_client
from commands.output import page_table
from commands.submit import submit_lines
from embedded.up import tell
from samples import path as sample_path
from schemas.errors import StandingsError
from schemas.leaderboards import Definition
from schemas.settings import Settings
from schemas.times import format_time
from stores.clock import now_ms

GAME = "arena"
PLAYERS = (
    "ada", "amy", "bao", "chidi", "dara", "elif", "farid", "grace", "hana", "ines", "jin", "kofi", "lena", "mika",
    "noor", "omar", "pia", "quinn", "rosa", "sven", "tariq", "uma", "vera", "wei", "ximena", "yuki", "zoe",
)  # fmt: skip
_MATCH_EVERY_S = 0.5
_SHOW_EVERY_S = 5.0
_APPLIED_WITHIN_S = 60.0


class Demo:
    """Runs in a thread beside the stack's supervision; stops when told to."""

    def __init__(self, url: str, key: str, settings: Settings, sample: str, stopping: threading.Event) -> None:
        self._url = url
        self._key = key
        self._settings = settings
        self._folder = sample_path(sample)
        self._stopping = stopping
        self._console = Console()

    def run(self) -> None:
        """Feed the sample, show its top 10, then play until stopped. Errors are told, and end the demo alone."""
        try:
            with open_client(self._url, self._key) as client:
                self._show_sample(client)
                self._play(client)
        except StandingsError as error:
            if not self._stopping.is_set():
                tell(f"the demo ended: {error}")

    def _show_sample(self, client: Client) -> None:
        definitions = read_definitions(self._folder / "leaderboards.toml")
        game = Definition(order="higher", min=0, max=100_000, windows=("all", "daily", "weekly"))
        apply(self._settings, {**definitions, GAME: game}, dry_run=False)
        lines = list(_lines(self._folder / "matches.ndjson"))
        began_s = time.monotonic()
        submitted = submit_lines(client, lines)
        tell(
            f"{submitted.accepted} matches submitted, {len(submitted.refused)} refused; waiting until they are applied"
        )
        self._await_players(client, next(iter(definitions)), _players(lines))
        took_s = time.monotonic() - began_s
        for name in definitions:
            page = client.top(f"{name}:all", 10)
            self._console.print(page_table(page, f"{name}:all, {page.size} players, after {took_s:.1f} s"))

    def _await_players(self, client: Client, name: str, players: int) -> None:
        """Until every player of the sample is on the board."""
        until_s = time.monotonic() + _APPLIED_WITHIN_S
        while client.board(f"{name}:all").size != players:
            if time.monotonic() > until_s:
                raise StandingsError("the sample was not applied in time: see the logs of the updater")
            if self._stopping.wait(0.05):
                raise StandingsError("stopped")

    def _play(self, client: Client) -> None:
        """A match every half second, until stopped. All get better as they play: the board keeps moving."""
        tell(f"a live game is on: {self._url}/#board={GAME}:daily  (Ctrl-C stops)")
        chance = random.Random()
        skill = {player: chance.uniform(30, 400) for player in PLAYERS}
        with Live(console=self._console, auto_refresh=False, transient=True) as live:
            show_at_s = 0.0
            for number in itertools.count():
                if self._stopping.wait(_MATCH_EVERY_S):
                    return
                practice = 1 + math.sqrt(number) / 10
                match_id = f"demo-{now_ms()}-{chance.getrandbits(32):08x}"
                results = {
                    player: min(100_000, int(practice * chance.expovariate(1 / skill[player])))
                    for player in chance.sample(PLAYERS, 4)
                }
                try:
                    client.submit_match(match_id, results, leaderboard=GAME)
                    if sys.stdout.isatty():
                        live.update(page_table(client.top(f"{GAME}:daily", 10)), refresh=True)
                    elif time.monotonic() >= show_at_s:
                        show_at_s = time.monotonic() + _SHOW_EVERY_S
                        self._print_line(client)
                except StandingsError as error:
                    if not self._stopping.is_set():
                        tell(f"the game goes on, although: {error}")

    def _print_line(self, client: Client) -> None:
        page = client.top(f"{GAME}:daily", 5)
        leaders = "  ".join(f"{one.rank}. {one.player_id} {one.score}" for one in page.entries)
        self._console.print(f"{format_time(now_ms())}  {page.board}  {leaders}", markup=False, soft_wrap=True)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    with file.open(encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if line.strip():
                yield number, line.rstrip("\n")


def _players(lines: list[tuple[int, str]]) -> int:
    return len({result["player_id"] for _, line in lines for result in orjson.loads(line)["results"]})
