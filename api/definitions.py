"""Leaderboards, as a reader needs them."""

from __future__ import annotations

from typing import Any

from api.calls import Call
from api.lookups import Lookups
from api.parameters import Parameters
from api.replies import Reply, json_reply
from schemas.leaderboards import Leaderboard

_HEADERS = ((b"cache-control", b"public, max-age=1"),)


class Definitions:
    """GET /v1/leaderboards and /v1/leaderboards/{leaderboard}."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    async def list_all(self, call: Call) -> Reply:
        """All leaderboards, by name."""
        Parameters(call.query_string, ()).check()
        now_at = self._lookups.now_at()
        shown = [_show(one, now_at) for one in self._lookups.leaderboards().values()]
        return json_reply({"leaderboards": shown}, headers=_HEADERS)

    async def show(self, call: Call) -> Reply:
        """One leaderboard."""
        leaderboard = self._lookups.leaderboard(call.part("leaderboard"))
        Parameters(call.query_string, ()).check()
        return json_reply(_show(leaderboard, self._lookups.now_at()), headers=_HEADERS)


def _show(leaderboard: Leaderboard, now_at: int) -> dict[str, Any]:
    definition = leaderboard.definition
    return {
        "leaderboard": leaderboard.name,
        "order": definition.order,
        "min": definition.min,
        "max": definition.max,
        "scale": definition.scale,
        "windows": definition.windows,
        "current_boards": [board.name for board in leaderboard.boards_at(now_at)],
        "tie_resolution_ms": leaderboard.tie_resolution_ms,
    }
