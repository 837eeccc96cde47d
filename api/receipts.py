"""Receipts: what of a match was applied."""

from __future__ import annotations

from collections.abc import Sequence

from api.calls import Call
from api.keyring import Keyring, check_may_write
from api.lookups import Lookups
from api.parameters import Parameters
from api.replies import Reply, json_reply
from api.scores import Scores
from schemas.leaderboards import Leaderboard
from schemas.problems import Problem
from schemas.rows import Receipt
from schemas.times import format_time


class Receipts:
    """GET /v1/leaderboards/{leaderboard}/matches/{match_id}."""

    def __init__(self, keyring: Keyring, lookups: Lookups, scores: Scores) -> None:
        self._keyring = keyring
        self._lookups = lookups
        self._scores = scores

    async def show(self, call: Call) -> Reply:
        """The receipt of a match; a key that is limited to other leaderboards does not see it.

        Reports of the same match are merged: the best score of each player, best first, the
        earliest end time, and when the last of them was applied.
        """
        key = self._keyring.admit(call.header(b"authorization"))
        parameters = Parameters(call.query_string, ())
        match_id = parameters.path_id("match_id", call.part("match_id"))
        parameters.check()
        name = call.part("leaderboard")
        if name is not None:
            check_may_write(key, name)
        leaderboard = self._lookups.leaderboard(name)
        found = await self._scores.receipts(match_id, leaderboard.name, self._lookups.now_at())
        if not found:
            raise Problem("match-not-found", f"nothing of {match_id!r} was applied on {leaderboard.name}")
        results = _merge(leaderboard, found)
        return json_reply({
            "match_id": match_id,
            "leaderboard": leaderboard.name,
            "ended_at": format_time(min(receipt.ended_at for receipt in found)),
            "applied_at": format_time(max(receipt.applied_at for receipt in found)),
            "results": [{"player_id": player_id, "score": score} for player_id, score in results],
        })  # fmt: skip


def _merge(leaderboard: Leaderboard, receipts: Sequence[Receipt]) -> list[tuple[str, int]]:
    is_better_higher = leaderboard.definition.order == "higher"
    merged: dict[str, int] = {}
    for receipt in receipts:
        for player_id, score in receipt.results.items():
            known = merged.setdefault(player_id, score)
            merged[player_id] = max(known, score) if is_better_higher else min(known, score)
    by_id = sorted(merged.items())
    return sorted(by_id, key=lambda one: one[1], reverse=is_better_higher)
