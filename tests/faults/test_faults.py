"""Seeded schedules of faults on real servers: nothing is lost, and no reply is ever quietly wrong.

A failure names its seed. STANDINGS_FAULT_SEED=7 replays it here, and so does `python -m tests.faults.run --seed 7`.
`make faults N=200` runs many.
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
_RANDOM = random.SystemRandom()


def _seeds(fixed: int, drawn: int) -> list[int]:
    """Seeds 1, 2, 3 … that never change, and some that nobody has tried; or the one of the environment."""
    if _CHOSEN:
        return [int(_CHOSEN)]
    return [*range(1, fixed + 1), *(_RANDOM.randrange(1_000, 10**6) for _ in range(drawn))]


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
@pytest.mark.parametrize("turn", range(len(_seeds(3, 2))))
def test_whatever_dies_all_that_was_accepted_is_on_its_boards(embedded: Runs, turn: int) -> None:
    _play(embedded, _SEEDS_EMBEDDED[turn])


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.timeout(240)
@pytest.mark.parametrize("turn", range(len(_seeds(8, 4))))
def test_the_same_holds_on_apache_kafka(kafka: Runs, turn: int) -> None:
    _play(kafka, _SEEDS_KAFKA[turn])


_SEEDS_EMBEDDED = _seeds(3, 2)
_SEEDS_KAFKA = _seeds(8, 4)


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
