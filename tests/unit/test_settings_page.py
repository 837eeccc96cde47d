"""docs/settings.md says what the model says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from schemas.settings import PREFIX, Settings

PAGE = Path(__file__).parents[2] / "docs" / "settings.md"
OF_COMMANDS = {"STANDINGS_URL", "STANDINGS_KEY"}
# `STANDINGS_X` and `STANDINGS_X_FILE` stand for any setting.
PLACEHOLDERS = {"STANDINGS_X", "STANDINGS_X_FILE"}
ROW = re.compile(r"^\| `(STANDINGS_[A-Z0-9_]+)` \| ([^|]*) \| (.+) \|$", re.MULTILINE)
TWO_COLUMNS = re.compile(r"^\| `(STANDINGS_[A-Z0-9_]+)` \| ([^|]*) \|$", re.MULTILINE)


def shown(default: Any) -> str:
    """A default as the page writes it."""
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if default is None:
        return "unset"
    if default == "":
        return "empty"
    if isinstance(default, bool):
        return f"`{str(default).lower()}`"
    if isinstance(default, frozenset):
        return f"`{','.join(sorted(default))}`"
    return f"`{default:g}`" if isinstance(default, float) else f"`{default}`"


def test_the_page_lists_every_setting_once_with_its_default() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    listed = {variable: default for variable, default, _ in rows}
    wanted = {PREFIX + name.upper(): shown(field.default) for name, field in Settings.model_fields.items()}
    assert listed == wanted
    assert len(rows) == len(wanted)


def test_the_page_names_no_variable_that_there_is_not() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"STANDINGS_[A-Z0-9_]+", text))
    settings = {PREFIX + name.upper() for name in Settings.model_fields}
    assert named == settings | OF_COMMANDS | PLACEHOLDERS
    assert {variable for variable, _ in TWO_COLUMNS.findall(text)} == OF_COMMANDS


def test_a_secret_is_called_one() -> None:
    meanings = {variable: meaning for variable, _, meaning in ROW.findall(PAGE.read_text(encoding="utf-8"))}
    for name, field in Settings.model_fields.items():
        is_secret = "SecretStr" in str(field.annotation)
        assert ("Secret" in meanings[PREFIX + name.upper()]) == is_secret, name
