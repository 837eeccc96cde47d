"""Ids of players, matches and leaderboards: opaque, case-sensitive, the same bytes everywhere."""

from __future__ import annotations

import re
import unicodedata
from typing import Annotated, Any

from pydantic import AfterValidator, Strict, WithJsonSchema

MAX_ID_BYTES = 128
WINDOW_KINDS = ("all", "daily", "weekly", "monthly")

_LEADERBOARD = re.compile(r"[a-z0-9][a-z0-9-]{0,62}", re.ASCII)

# As far as JSON Schema can say it: it counts characters, not bytes, and knows no normal forms.
ID_SCHEMA: dict[str, Any] = {
    "type": "string",
    "minLength": 1,
    "maxLength": MAX_ID_BYTES,
    "description": "1 to 128 bytes of UTF-8, in NFC, without control characters",
}
LEADERBOARD_SCHEMA: dict[str, Any] = {
    "type": "string",
    "pattern": f"^{_LEADERBOARD.pattern}$",
    "not": {"enum": list(WINDOW_KINDS)},
}


def check_id(text: str) -> str:
    """The text itself when it may name a player or a match: 1-128 bytes of UTF-8 in NFC.

    Raises ValueError for an empty or too long id, control characters, lone surrogates and text
    that is not in NFC (the composed form), because the same name written twice would be two
    players.
    """
    if text.isascii():
        size = len(text)
    else:
        try:
            size = len(text.encode("utf-8"))
        except UnicodeEncodeError:
            raise ValueError("an id has no lone surrogates") from None
        if not unicodedata.is_normalized("NFC", text):
            raise ValueError("an id is in Unicode normal form C: send the composed form")
    if not 1 <= size <= MAX_ID_BYTES:
        raise ValueError(f"an id has 1 to {MAX_ID_BYTES} bytes of UTF-8, this one has {size}")
    if not text.isprintable() and any(unicodedata.category(char) == "Cc" for char in text):
        raise ValueError("an id has no control characters")
    return text


def check_leaderboard_id(text: str) -> str:
    """The text itself when it may name a leaderboard; ValueError, with the rule, otherwise."""
    if _LEADERBOARD.fullmatch(text) is None:
        raise ValueError("a leaderboard's id is 1 to 63 of a-z, 0-9 and -, not starting with -")
    if text in WINDOW_KINDS:
        raise ValueError(f"{text!r} is the name of a window and can't name a leaderboard")
    return text


PlayerId = Annotated[str, Strict(), AfterValidator(check_id), WithJsonSchema(ID_SCHEMA)]
MatchId = Annotated[str, Strict(), AfterValidator(check_id), WithJsonSchema(ID_SCHEMA)]
LeaderboardId = Annotated[str, Strict(), AfterValidator(check_leaderboard_id), WithJsonSchema(LEADERBOARD_SCHEMA)]
