"""docs/leaderboards.md says what the model says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pydantic_core import PydanticUndefined

from schemas.leaderboards import (
    DEFAULT_RETENTION_DAYS,
    MOST_KEPT_WINDOWS,
    WRITES_PER_SHARD_AND_S,
    Definition,
    refused_changes,
)
from schemas.packing import RESOLUTIONS_MS

PAGE = (Path(__file__).parents[2] / "docs" / "leaderboards.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \| (.+) \|$", PAGE, re.MULTILINE)
# A valid value that differs, for each field.
OTHERS: dict[str, object] = {
    "order": "lower", "min": 1, "max": 99, "windows": ("all",), "scale": 1, "starts_at": "2026-01-01T00:00:00Z",
    "ends_at": "2200-01-01T00:00:00Z", "tie_resolution_ms_max": 10**9, "peak_writes_per_s": 10_000,
    "retention_days": {"daily": 5}, "durable_days": {"daily": 9},
}  # fmt: skip
BASE = {"order": "higher", "min": 0, "max": 100, "windows": ("all", "daily")}


def test_the_page_lists_every_field_once_with_its_default() -> None:
    wanted = {}
    for name, field in Definition.model_fields.items():
        if field.is_required():
            wanted[name] = "required"
        elif field.default is None or name == "durable_days":
            wanted[name] = "unset"
        else:
            wanted[name] = "by window" if field.default is PydanticUndefined else f"`{field.default}`"
    assert {name: default for name, default, _, _ in ROWS} == wanted


def test_the_page_says_which_fields_may_change() -> None:
    before = Definition.model_validate(BASE)
    for name, _, may_change, _ in ROWS:
        refused = refused_changes(before, Definition.model_validate(BASE | {name: OTHERS[name]}))
        assert (may_change == "yes") == (refused == []), name
    assert refused_changes(before, Definition.model_validate(BASE | {"peak_writes_per_s": 5_100})) == []


def test_the_numbers_on_the_page_are_those_of_the_model() -> None:
    kept = ", ".join(f"{kind} {days}" for kind, days in DEFAULT_RETENTION_DAYS.items())
    for text in (
        f"{kept.capitalize()} days unless",
        f"At most {MOST_KEPT_WINDOWS:,} windows",
        f"every {WRITES_PER_SHARD_AND_S}",
    ):
        assert text in PAGE
    assert RESOLUTIONS_MS == (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)


def test_the_example_is_valid_and_main_is_as_told() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    for definition in tomllib.loads(example)["leaderboards"].values():
        Definition.model_validate(definition)
    main = Definition(order="higher", min=0, max=2**21 - 1, windows=("all", "daily", "weekly", "monthly"))
    assert main.max == 2_097_151
    assert main.codec("all", main.origin_at).resolution_ms == 1_000
