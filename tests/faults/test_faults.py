"""Seeded schedules of faults on real servers: nothing is lost, and no reply is ever quietly wrong.

A failure names its seed. STANDINGS_FAULT_SEED=7 replays it here, and so does `python -m tests.faults.run --seed 7`.
`make faults N=200` draws many, on either broker.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pytest

from tests.faults.runs import Runs
from tests.servers.missing import Missing, skip_or_fail

_CHOSEN = os.environ.get("STANDINGS_FAULT_SEED")
# Always the same: what is random belongs to `make faults`, which says which seed it was.
SEEDS = [int(_CHOSEN)] if _CHOSEN else [1, 2, 3]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    runs = Runs(tmp_path_factory.mktemp("faults"), "embedded")
    yield runs
    runs.end()


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_dies_all_that_was_accepted_is_on_its_boards(embedded: Runs, seed: int) -> None:
    _play(embedded, seed)


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
