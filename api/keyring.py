"""Who may submit: bearer keys, known by their SHA-256 alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from hmac import compare_digest

from schemas.problems import Problem
from schemas.settings import SubmitKey


class Keyring:
    """The keys of this deployment."""

    def __init__(self, keys: Sequence[SubmitKey]) -> None:
        self._keys = keys

    def admit(self, authorization: bytes | None) -> SubmitKey:
        """The key that an Authorization header shows. Raises the problem where it shows none that is known.

        Every key is compared in constant time, whether or not an earlier one fitted.
        """
        scheme, _, token = (authorization or b"").partition(b" ")
        found = None
        if scheme.lower() == b"bearer" and token.strip():
            digest = hashlib.sha256(token.strip()).digest()
            for key in self._keys:
                if compare_digest(key.digest, digest):
                    found = key
        if found is None:
            raise Problem(
                "unauthorized",
                "send a key that may submit: Authorization: Bearer KEY",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return found


def check_may_write(key: SubmitKey, leaderboard: str) -> None:
    """Raises the problem where the key is limited to other leaderboards."""
    if not key.may_write(leaderboard):
        raise Problem("forbidden", f"the key {key.name} may not write {leaderboard}")
