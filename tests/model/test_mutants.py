"""The machine finds what it is there for: with one rule left out, a bounded search comes upon a counterexample."""

from __future__ import annotations

import pytest
import redis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

import stores.dynamodb
from tests.fakes.deployment import Deployment
from tests.model.checks import Lost
from tests.model.machine import DeploymentMachine
from tests.model.mutants import MUTANTS, Mutant

_EXAMPLES = 400


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.put_in.__name__)
def test_the_machine_finds_a_counterexample(
    mutant: Mutant, valkey: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores.dynamodb, "STATEMENTS_PER_BATCH", 2)

    class Machine(DeploymentMachine):
        client = valkey
        # Few rows, so that reports meet.
        leaderboards = ("fine",)
        players = ("p",)
        troubles = mutant.troubles
        losses = mutant.losses
        in_a_turn = mutant.in_a_turn
        in_a_look = mutant.in_a_look

        def prepare(self, world: Deployment) -> None:
            mutant.put_in(world)

    with pytest.raises(Lost):
        run_state_machine_as_test(
            seed(1)(Machine),
            settings=settings(
                max_examples=_EXAMPLES,
                stateful_step_count=20,
                phases=[Phase.generate],
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
