"""key new: a submit key, and the line by which the service knows it."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence


def new_key(name: str, leaderboards: Sequence[str]) -> tuple[str, str]:
    """A fresh random key and its entry for STANDINGS_SUBMIT_KEYS, which holds only the key's hash."""
    key = f"sk_{secrets.token_urlsafe(32)}"
    digest = hashlib.sha256(key.encode()).hexdigest()
    limited = ":" + ",".join(leaderboards) if leaderboards else ""
    return key, f"{name}:{digest}{limited}"
