"""The Lua scripts of lanes and boards. Each file opens with its keys, arguments, answer and what is atomic."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

# What a script needs before its own text: shared functions, which alone do nothing.
_OF_LANES = (
    "project", "prefilter", "begin", "fill", "finish", "add_partitions", "repair", "tear", "refill", "mend", "expel",
    "settle", "forget", "retire",
)  # fmt: skip
_OF_BOARDS = ("top", "around", "places")
_PRELUDES = dict.fromkeys(_OF_LANES, "_lane") | dict.fromkeys(_OF_BOARDS, "_board")


@dataclass(frozen=True, slots=True)
class Script:
    """A script's text and the SHA-1 by which Redis knows it once it was loaded."""

    name: str
    text: str
    sha: str


@cache
def script(name: str) -> Script:
    """The script of this name, with the functions that it shares with others put before it."""
    text = "\n".join(_read(part) for part in (_PRELUDES[name], name))
    return Script(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def all_scripts() -> list[Script]:
    """Every script, to be loaded into a server that has lost them."""
    return [script(name) for name in _PRELUDES]


def _read(part: str) -> str:
    return files(__name__).joinpath(f"{part}.lua").read_text(encoding="utf-8")
