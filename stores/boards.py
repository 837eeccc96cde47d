"""Boards as they are read: pages, places, neighbours, of one moment each, or an honest refusal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.errors import BoardNotReady
from schemas.keys import Names
from schemas.leaderboards import Board
from schemas.positions import Cursor, Position
from schemas.rows import Topology
from stores.exchange import META_FIELDS, Command, Exchange
from stores.lanes import read_packed
from stores.scripts import script

Ties = Literal["unique", "shared"]

_STATE, _EPOCH, _TRUTH_ID, _TOPOLOGY, _BOARDS, _TORN, _AS_OF, _PROGRESS = range(len(META_FIELDS))
_HAS_APPLIED, _BOARDS_COUNTED, _TORN_COUNTED = range(len(META_FIELDS), len(META_FIELDS) + 3)


_TORN_LANE = object()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a board: rank is 1-based, `packed` holds score and time."""

    rank: int
    player_id: str
    packed: int


@dataclass(slots=True)
class Page:
    """Neighbouring entries of one moment. `as_of` in epoch ms; `first` is the index of the first entry.

    `encoded` and `cuts` are for the caller: bodies and shorter pages made of this one, shared by all who read
    it in the same turn.
    """

    as_of: int | None
    size: int
    first: int
    entries: list[Entry]
    encoded: dict[str, bytes] = field(default_factory=dict)
    cuts: dict[int, Page] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Places:
    """The places of the players that were asked for, in that order; None for who is not on the board."""

    as_of: int | None
    size: int
    entries: list[Entry | None]


@dataclass(frozen=True, slots=True)
class LaneReport:
    """What a lane shows from outside: `state` is lost, rebuilding or ready."""

    lane: int
    state: str
    as_of: int | None
    progress: str | None


class BoardReader:
    """Reads boards of READY lanes of this topology and truth. Each call is one round trip, shared within a turn.

    Raises BoardNotReady (the lane can't prove that it is whole: answer 503) and StoreUnavailable.
    """

    def __init__(self, exchange: Exchange, names: Names, topology: Callable[[], Topology | None]) -> None:
        self._exchange = exchange
        self._names = names
        self._topology = topology

    async def top(self, board: Board, count: int, ties: Ties, start: int | Cursor) -> Page:
        """Up to `count` entries from a 0-based index, or from behind a cursor's entry."""
        where: Command = ("", start.packed, start.player_id) if isinstance(start, Cursor) else (start,)
        command = self._script(board, "top", count, _ticks(board, ties), *where)
        page: Page = await self._ask(board, "page", [command], _page_maker(board, ties))
        return page

    async def around(self, board: Board, player_id: str, reach: int, ties: Ties) -> Page:
        """The player with up to `reach` entries above and below; no entries where the player is not on the board."""
        command = self._script(board, "around", reach, _ticks(board, ties), player_id)
        page: Page = await self._ask(board, "page", [command], _page_maker(board, ties))
        return page

    async def place(self, board: Board, player_id: str, ties: Ties) -> Places:
        """One player's place."""
        if ties == "shared":
            return await self.places(board, [player_id], ties)
        key = self._key(board)

        def make(meta: Sequence[Any], replies: list[Any]) -> Places:
            found, size = replies
            entry = None if found is None else Entry(int(found[0]) + 1, player_id, read_packed(found[1]))
            return Places(_as_of(meta), size, [entry])

        commands: list[Command] = [("ZREVRANK", key, player_id, "WITHSCORE"), ("ZCARD", key)]
        places: Places = await self._ask(board, "place", commands, make)
        return places

    async def places(self, board: Board, player_ids: Sequence[str], ties: Ties) -> Places:
        """The places of these players."""

        def make(meta: Sequence[Any], replies: list[Any]) -> Places:
            size, *found = replies[0]
            entries = [
                Entry(found[2 * i], player_id, read_packed(found[2 * i + 1])) if found[2 * i] else None
                for i, player_id in enumerate(player_ids)
            ]
            return Places(_as_of(meta), size, entries)

        command = self._script(board, "places", _ticks(board, ties), *player_ids)
        places: Places = await self._ask(board, "places", [command], make)
        return places

    async def size(self, board: Board) -> Page:
        """How many entries the board has: a page without entries."""

        def make(meta: Sequence[Any], replies: list[Any]) -> Page:
            return Page(_as_of(meta), replies[0], 0, [])

        page: Page = await self._ask(board, "size", [("ZCARD", self._key(board))], make)
        return page

    async def has_applied(self, board: Board, position: Position) -> bool:
        """True once the board's lane is READY under the position's log and has applied what stands there."""
        lane, topology = self._lane_of(board)
        keys = self._names.lane(lane)

        def make(meta: Sequence[Any], replies: list[Any]) -> bool:
            (log_id,), applied = replies
            ready = _refusal(lane, topology, meta) is None
            reached = int(applied) if (applied or b"").isdigit() else 0
            return bool(ready and log_id == position.log_id.encode() and reached > position.offset)

        asked: list[Command] = [("HMGET", keys.meta, "log_id"), ("HGET", keys.applied, position.partition)]
        applied: bool = await self._exchange.ask(lane, f"has applied {position}", asked, make)
        return applied

    async def report(self, lane: int) -> LaneReport:
        """What the lane shows, ready or not. Raises StoreUnavailable only."""
        topology = self._topology()

        def make(meta: Sequence[Any], _replies: list[Any]) -> LaneReport:
            refusal = _refusal(lane, topology, meta)
            if refusal is None:
                return LaneReport(lane, "ready", _as_of(meta), None)
            return LaneReport(lane, refusal.state, None, refusal.progress)

        report: LaneReport = await self._exchange.ask(lane, "report", [], make)
        return report

    def _lane_of(self, board: Board) -> tuple[int, Topology]:
        topology = self._topology()
        if topology is None:
            raise BoardNotReady(0, "not laid out yet: run `standings init`")
        return topology.lane_of(board.name), topology

    def _key(self, board: Board) -> str:
        return self._names.lane(self._lane_of(board)[0]).board(board.name)

    def _script(self, board: Board, name: str, *args: str | bytes | int) -> Command:
        return ("EVALSHA", script(name).sha, 1, self._key(board), *args)

    async def _ask(
        self, board: Board, what: str, commands: list[Command], make: Callable[[Sequence[Any], list[Any]], Any]
    ) -> Any:
        lane, topology = self._lane_of(board)

        def make_if_ready(meta: Sequence[Any], replies: list[Any]) -> Any:
            refusal = _refusal(lane, topology, meta)
            if refusal is not None:
                return refusal
            return _TORN_LANE if meta[_TORN_COUNTED] else make(meta, replies)

        def make_if_whole(meta: Sequence[Any], replies: list[Any]) -> Any:
            refusal = _refusal(lane, topology, meta)
            if refusal is not None:
                return refusal
            *own, torn, named = replies
            made = make(meta, own)
            # An absent key is an empty board only where the lane doesn't name the board: somebody deleted it.
            return BoardNotReady(lane, "rebuilding") if torn or (named and made.size == 0) else made

        found = await self._exchange.ask(lane, what, commands, make_if_ready)
        if found is _TORN_LANE or (not isinstance(found, BoardNotReady) and found.size == 0):
            # A board of this lane lost its key, or has none: whether it is whole has to be asked in the same
            # moment, because an update that comes between two questions makes a deleted key anew.
            keys = self._names.lane(lane)
            whole: list[Command] = [("HEXISTS", keys.torn, board.name), ("SISMEMBER", keys.boards, board.name)]
            found = await self._exchange.ask(lane, f"{what}, if whole", [*commands, *whole], make_if_whole)
        if isinstance(found, BoardNotReady):
            raise BoardNotReady(found.lane, found.state, found.progress)
        return found


def _page_maker(board: Board, ties: Ties) -> Callable[[Sequence[Any], list[Any]], Page]:
    codec = board.codec

    def make(meta: Sequence[Any], replies: list[Any]) -> Page:
        size, first, shared_rank, flat = replies[0]
        entries: list[Entry] = []
        for index in range(0, len(flat), 2):
            packed = read_packed(flat[index + 1])
            rank = first + index // 2 + 1
            if ties == "shared":
                same = entries and codec.score(entries[-1].packed) == codec.score(packed)
                rank = entries[-1].rank if same else rank if entries else shared_rank
            entries.append(Entry(rank, flat[index].decode("utf-8"), packed))
        return Page(_as_of(meta), size, first, entries)

    return make


def _ticks(board: Board, ties: Ties) -> int:
    return 1 << board.codec.tick_bits if ties == "shared" else 0


def _as_of(meta: Sequence[Any]) -> int | None:
    return int(meta[_AS_OF]) if (meta[_AS_OF] or b"").isdigit() else None


def _refusal(lane: int, topology: Topology | None, meta: Sequence[Any]) -> BoardNotReady | None:
    if meta[_STATE] == b"rebuilding":
        return BoardNotReady(lane, "rebuilding", (meta[_PROGRESS] or b"0").decode())
    kept = meta[_HAS_APPLIED] == 1 and b"%d" % meta[_BOARDS_COUNTED] == (meta[_BOARDS] or b"0")
    kept = kept and b"%d" % meta[_TORN_COUNTED] == (meta[_TORN] or b"0")
    if meta[_STATE] != b"ready" or not kept or topology is None:
        return BoardNotReady(lane, "lost")
    if meta[_TRUTH_ID] != topology.truth_id.encode() or meta[_TOPOLOGY] != topology.tag.encode():
        return BoardNotReady(lane, "of another layout or truth")
    return None
