"""What `standings apply` would do."""

from __future__ import annotations

from pathlib import Path

import pytest

from commands.administer import plan, read_definitions
from schemas.errors import InvalidDefinition
from schemas.leaderboards import Definition, define

NOW_AT = 1_800_000_000_000
FIELDS = {"order": "higher", "min": 0, "max": 100, "windows": ("all", "daily")}


def definition(**changes: object) -> Definition:
    return Definition.model_validate(FIELDS | changes)


def test_a_change_names_its_fields() -> None:
    before = {"ranked": define("ranked", definition(), NOW_AT)}
    changed = definition(retention_days={"daily": 7}, peak_writes_per_s=5_500)
    (planned,) = plan({"ranked": changed}, before, NOW_AT)
    assert (planned.action, planned.notes) == ("change", ("peak_writes_per_s, retention_days",))
    (planned,) = plan({"ranked": definition()}, before, NOW_AT)
    assert (planned.action, planned.notes) == ("keep", ())


def test_what_cannot_change_is_named_and_nothing_is_planned() -> None:
    before = {"ranked": define("ranked", definition(), NOW_AT)}
    with pytest.raises(InvalidDefinition, match="ranked: max, scale can't change"):
        plan({"ranked": definition(max=101, scale=1), "other": definition()}, before, NOW_AT)


def test_days_that_are_no_table_are_told_how_to_be_one(tmp_path: Path) -> None:
    file = tmp_path / "leaderboards.toml"
    text = '[leaderboards.laps]\norder = "lower"\nmin = 0\nmax = 9\nwindows = ["all", "daily"]\ndurable_days = 90\n'
    file.write_text(text)
    with pytest.raises(InvalidDefinition, match=r"leaderboards\.laps\.durable_days: must be a table by window"):
        read_definitions(file)
