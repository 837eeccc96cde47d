"""Calls: what each operation of the API sends, and what becomes of its reply. No I/O."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

import httpx

from schemas.replies import (
    Accepted,
    Applied,
    BoardInfo,
    Friends,
    LeaderboardInfo,
    LeaderboardList,
    Neighbours,
    PlayerBoards,
    PlayerPlace,
    Receipt,
    ReplyBody,
    TopPage,
)

T = TypeVar("T")
ReplyT = TypeVar("ReplyT", bound=ReplyBody)
Ties = Literal["unique", "shared"]
Results = Mapping[str, int] | Iterable[tuple[str, int]]

JSON = "application/json"
# A longer query is not for every proxy.
_LONGEST_QUERY = 2_000


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and how its reply is read. `needs_key`: it isn't public; `takes_after`: it may wait for a position."""

    method: str
    path: str
    read: Callable[[httpx.Response], T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    media_type: str = JSON
    wait_s: float = 0.0
    needs_key: bool = False
    takes_after: bool = False


# ---- submit


def submit_score(
    match_id: str,
    player_id: str,
    score: int,
    *,
    leaderboard: str = "main",
    ended_at: str | datetime | None = None,
    wait_s: float | None = None,
) -> Call[Accepted]:
    """Submit one player's result of a match; returns once the log has it.

    `ended_at` (RFC 3339, or a datetime with an offset) is when the log took it where it is left out.
    With `wait_s` (above 0, at most 5) the reply is an `Applied` with the standings, unless the time
    ran out. Safe to repeat.
    """
    return _submission(
        "/v1/scores", {"match_id": match_id, "player_id": player_id, "score": score}, leaderboard, ended_at, wait_s
    )


def submit_match(
    match_id: str,
    results: Results,
    *,
    leaderboard: str = "main",
    ended_at: str | datetime | None = None,
    wait_s: float | None = None,
) -> Call[Accepted]:
    """Submit a whole match: the score of each of 1 to 200 players. Otherwise as `submit_score`."""
    pairs = results.items() if isinstance(results, Mapping) else results
    listed = [{"player_id": player_id, "score": score} for player_id, score in pairs]
    return _submission("/v1/matches", {"match_id": match_id, "results": listed}, leaderboard, ended_at, wait_s)


def receipt(leaderboard: str, match_id: str) -> Call[Receipt]:
    """What of a match was applied. Raises NotFound while there is none."""
    path = f"/v1/leaderboards/{encode_part(leaderboard)}/matches/{encode_part(match_id)}"
    return Call("GET", path, _to(Receipt), needs_key=True)


# ---- read


def leaderboards() -> Call[list[LeaderboardInfo]]:
    """All leaderboards."""
    read = _to(LeaderboardList)
    return Call("GET", "/v1/leaderboards", lambda response: read(response).leaderboards)


def leaderboard(name: str) -> Call[LeaderboardInfo]:
    """One leaderboard."""
    return Call("GET", f"/v1/leaderboards/{encode_part(name)}", _to(LeaderboardInfo))


def board(name: str, *, after: str | None = None, wait_s: float | None = None) -> Call[BoardInfo]:
    """A board, such as `ranked:weekly` or `ranked:weekly:2026-W43`: its window, its size, its state."""
    return _read(name, "", BoardInfo, _query(after=after, wait=wait_s))


def top(
    name: str,
    n: int = 100,
    *,
    from_rank: int | None = None,
    cursor: str | None = None,
    ties: Ties = "unique",
    after: str | None = None,
    wait_s: float | None = None,
) -> Call[TopPage]:
    """A page of 1 to 1,000 entries, best first: from a rank, or behind the page whose `next` is the cursor."""
    query = _query(n=n, from_rank=from_rank, cursor=cursor, ties=ties, after=after, wait=wait_s)
    return _read(name, "/top", TopPage, query)


def player(
    name: str, player_id: str, *, ties: Ties = "unique", after: str | None = None, wait_s: float | None = None
) -> Call[PlayerPlace]:
    """A player's place on a board. Raises NotFound without a score on it; `rank` is None while it is rebuilt."""
    return _read(name, "/player", PlayerPlace, _query(id=player_id, ties=ties, after=after, wait=wait_s))


def around(
    name: str,
    player_id: str,
    k: int = 5,
    *,
    ties: Ties = "unique",
    after: str | None = None,
    wait_s: float | None = None,
) -> Call[Neighbours]:
    """A player with up to 0 to 100 neighbours above, and below. Raises NotFound without a score on the board."""
    return _read(name, "/around", Neighbours, _query(id=player_id, k=k, ties=ties, after=after, wait=wait_s))


def friends(
    name: str,
    player_ids: Iterable[str],
    *,
    ties: Ties = "unique",
    after: str | None = None,
    wait_s: float | None = None,
) -> Call[Friends]:
    """1 to 500 players of a board, ranked among themselves, best first; `missing` are those without a score on it."""
    listed = list(player_ids)
    query = _query(ties=ties, after=after, wait=wait_s)
    asked = (*(("id", one) for one in listed), *query)
    if listed and len(str(httpx.QueryParams(asked))) <= _LONGEST_QUERY:
        return _read(name, "/friends", Friends, asked)
    body = _encode({"player_ids": listed})
    path = f"/v1/boards/{encode_part(name)}/friends"
    return Call("POST", path, _to(Friends), query, body, wait_s=wait_s or 0.0, takes_after=True)


def player_boards(
    player_id: str, *, ties: Ties = "unique", after: str | None = None, wait_s: float | None = None
) -> Call[PlayerBoards]:
    """Every live board that a player is on; none for an unknown player."""
    query = _query(ties=ties, after=after, wait=wait_s)
    path = f"/v1/players/{encode_part(player_id)}/boards"
    return Call("GET", path, _to(PlayerBoards), query, wait_s=wait_s or 0.0, takes_after=True)


# ---- the parts


def encode_part(text: str) -> str:
    """A part of a path, percent-encoded whole; also dots, where they would mean a folder."""
    return "%2E" * len(text) if text in (".", "..") else quote(text, safe="")


def _read(name: str, below: str, model: type[ReplyT], query: tuple[tuple[str, str], ...]) -> Call[ReplyT]:
    path = f"/v1/boards/{encode_part(name)}{below}"
    wait_s = float(dict(query).get("wait", 0.0))
    return Call("GET", path, _to(model), query, wait_s=wait_s, takes_after=True)


def _submission(
    path: str, body: dict[str, Any], leaderboard: str, ended_at: str | datetime | None, wait_s: float | None
) -> Call[Accepted]:
    body["leaderboard"] = leaderboard
    if ended_at is not None:
        body["ended_at"] = ended_at.isoformat() if isinstance(ended_at, datetime) else ended_at
    query = _query(wait=wait_s)
    return Call("POST", path, _read_submission, query, _encode(body), wait_s=wait_s or 0.0, needs_key=True)


def _read_submission(response: httpx.Response) -> Accepted:
    return _to(Applied if response.status_code == httpx.codes.OK else Accepted)(response)


def _to(model: type[ReplyT]) -> Callable[[httpx.Response], ReplyT]:
    """Reads a reply as the model. What a newer service adds is not seen."""
    return lambda response: model.model_validate_json(response.content, extra="ignore")


def _query(**parameters: str | float | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, _plain(value)) for name, value in parameters.items() if value is not None)


def _plain(value: str | float) -> str:
    """A value without an exponent, which the API does not take."""
    return f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _encode(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
