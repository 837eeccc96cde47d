"""Seeded schedules of faults on real servers: nothing is lost, and no reply is ever quietly wrong.

A failure names its seed. STANDINGS_FAULT_SEED=7 replays it here, and so does `python -m tests.faults.run --seed 7`.
`make faults N=200` draws many, on either broker.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator

import pytest

from tests.faults.runs import Runs
from tests.servers.missing import Missing, skip_or_fail

_CHOSEN = os.environ.get("STANDINGS_FAULT_SEED")
_FIXED = {"embedded": 2, "kafka": 9}
_DRAWN = {"embedded": 2, "kafka": 3}
_DICE = random.SystemRandom()


def _turns(broker: str) -> list[int]:
    """Which of a broker's seeds are played: named by their turn, for a drawn one has another name in every run."""
    return [0] if _CHOSEN else list(range(_FIXED[broker] + _DRAWN[broker]))


def _seed(broker: str, turn: int) -> int:
    """The seed of the environment; else 1, 2, 3 … that never change, and then some that nobody has tried."""
    if _CHOSEN:
        return int(_CHOSEN)
    return turn + 1 if turn < _FIXED[broker] else _DICE.randrange(1_000, 10**6)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(tmp_path_factory.mktemp("faults"), "embedded")
    yield runs
    runs.end()


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(tmp_path_factory.mktemp("faults"), "kafka")
    yield runs
    runs.end()


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("turn", _turns("embedded"))
def test_whatever_dies_all_that_was_accepted_is_on_its_boards(embedded: Runs, turn: int) -> None:
    _play(embedded, _seed("embedded", turn))


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(240)
@pytest.mark.parametrize("turn", _turns("kafka"))
def test_the_same_holds_on_apache_kafka(kafka: Runs, turn: int) -> None:
    _play(kafka, _seed("kafka", turn))


def _play(runs: Runs, seed: int) -> None:
    try:
        outcome = runs.play(seed)
    except Missing as missing:
        skip_or_fail(missing)
    shown = json.dumps(outcome.as_json(), indent=1)
    sys.stdout.write(shown)
    if outcome.verdict.faults:
        schedule = "\n".join(
            f"{one.at_s:5.2f} {one.kind} {one.lasts_s or ''} {one.details or ''}" for one in outcome.schedule
        )
        pytest.fail(f"seed {seed} on the {runs.broker} broker\n{schedule}\n{shown}", pytrace=False)
