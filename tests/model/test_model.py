"""Any order, any crash, any loss: rows, receipts, views and dead letters equal the reference.

STANDINGS_MODEL_EXAMPLES and STANDINGS_MODEL_SEED let it look longer, and elsewhere.
"""

from __future__ import annotations

import os

import pytest
import redis
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

import stores.dynamodb
from tests.model.machine import DeploymentMachine

EXAMPLES = int(os.environ.get("STANDINGS_MODEL_EXAMPLES", "100"))
SEED = int(os.environ.get("STANDINGS_MODEL_SEED", "1"))


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_whatever_happens_the_boards_and_rows_equal_the_reference(
    valkey: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small batches: more places in which a writer can die.
    monkeypatch.setattr(stores.dynamodb, "STATEMENTS_PER_BATCH", 2)
    print(f"STANDINGS_MODEL_SEED={SEED}")  # noqa: T201 - shown where the test fails

    class Machine(DeploymentMachine):
        client = valkey

    run_state_machine_as_test(
        seed(SEED)(Machine),
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=20,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
