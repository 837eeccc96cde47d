"""Lanes: the boards that share one Redis slot, with the log offsets applied to them. Only the scripts write one.

The protocol is docs/recovery.md; each script's header says what it requires and what is atomic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple

import orjson
from redis.exceptions import ResponseError

from schemas.errors import StoreUnavailable
from schemas.keys import LaneKeys, Names
from schemas.lane_states import LaneState
from schemas.leaderboards import Board
from schemas.rows import RowKey, Topology
from schemas.times import SECOND_MS
from stores.connections import AnyRedis, Arg, redis_errors, run_script

__all__ = [
    "Behind", "Entries", "LaneIds", "LaneMeta", "LaneState", "Lanes", "Projected", "Range", "read_packed",
    "topology_ids",
]  # fmt: skip


class LaneIds(NamedTuple):
    """What a lane's content belongs to: a log, a truth, a layout. A lane under other ids counts as lost."""

    log_id: str
    truth_id: str
    topology: str


NO_IDS = LaneIds("", "", "")
_DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)


class Range(NamedTuple):
    """A stretch [first, next) of a partition; `as_of`: epoch ms before which all its records are below `next`.

    `partitions`: how many the log had at that time, which is what the lane's own as_of is a minimum over.
    """

    partition: int
    first: int
    next: int
    as_of: int | None = None
    partitions: int = 0


@dataclass(slots=True)
class _BoardEntries:
    expires_at: int | None
    packed: dict[str, int] = field(default_factory=dict)


class Entries:
    """Row images by board, merged by maximum: what one script call brings into a lane."""

    def __init__(self) -> None:
        self._boards: dict[str, _BoardEntries] = {}
        self.count = 0

    def add(self, board: Board, player_id: str, packed: int) -> None:
        """Merge one image."""
        entries = self._boards.get(board.name)
        if entries is None:
            entries = self._boards[board.name] = _BoardEntries(board.expires_at)
        known = entries.packed.get(player_id)
        if known is None:
            self.count += 1
        if known is None or known < packed:
            entries.packed[player_id] = packed

    def keys_and_args(self, keys: LaneKeys) -> tuple[list[str], list[Arg]]:
        """The keys and arguments that merge() in _lane.lua takes."""
        args: list[Arg] = []
        for board, entries in self._boards.items():
            expires_at = "" if entries.expires_at is None else entries.expires_at // SECOND_MS
            flat: list[str] = []
            for player_id, packed in entries.packed.items():
                flat += (str(packed), player_id)
            args += (board, expires_at, orjson.dumps(flat))
        return [keys.board(board) for board in self._boards], args


@dataclass(frozen=True, slots=True)
class LaneMeta:
    """What a lane says of itself. `as_of` in epoch ms; `progress`: rows filled by the rebuild.

    `state` is what it can prove, `stored_state` what its meta claims.
    """

    state: LaneState
    stored_state: str = ""
    epoch: str = ""
    ids: LaneIds = NO_IDS
    partitions: int = 0
    seq: int = 0
    as_of: int | None = None
    progress: str = ""
    applied: Mapping[int, int] = field(default_factory=dict)
    boards: frozenset[str] = frozenset()
    torn: frozenset[str] = frozenset()
    expelled: frozenset[RowKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Behind:
    """The lane has gaps: per partition, the offset from which it needs the log again."""

    applied: Mapping[int, int]


class Projected(StrEnum):
    """What became of a projection that left no gap."""

    APPLIED = "applied"
    LOST = "lost"


class Lanes:
    """The scripts, called. Every method raises StoreUnavailable when nobody knows whether Redis executed it."""

    def __init__(self, client: AnyRedis, names: Names) -> None:
        self._client: Any = client
        self._names = names

    def project(self, lane: int, ids: LaneIds, ranges: Sequence[Range], entries: Entries) -> Projected | Behind:
        """Bring whole ranges with all row images they touch into the lane, atomically.

        LOST (not ready under these ids) and Behind (a gap) changed nothing. One round trip.
        """
        keys = self._names.lane(lane)
        board_keys, board_args = entries.keys_and_args(keys)
        args: list[Arg] = [*ids, max((one.partitions for one in ranges), default=0), len(ranges)]
        for one in ranges:
            args += (one.partition, one.first, one.next, "" if one.as_of is None else one.as_of)
        answer = self._run(
            "project", [keys.meta, keys.applied, keys.as_of, keys.boards, keys.torn, *board_keys], args + board_args
        )
        if answer[0] == b"BEHIND":
            return Behind({int(answer[i]): int(answer[i + 1]) for i in range(1, len(answer), 2)})
        return Projected.APPLIED if answer[0] == b"APPLIED" else Projected.LOST

    def prefilter(self, lane: int, ids: LaneIds, wanted: Mapping[str, Sequence[str]]) -> dict[RowKey, int] | None:
        """The packed values that the lane's boards hold for these players (board to players).

        None where the lane is not ready under these ids: then nothing in it may be compared with.
        One round trip.
        """
        keys = self._names.lane(lane)
        args: list[Arg] = [*ids]
        for players in wanted.values():
            args += (len(players), *players)
        answer = self._run(
            "prefilter",
            [keys.meta, keys.applied, keys.boards, keys.torn, *(keys.board(board) for board in wanted)],
            args,
        )
        if answer[0] != b"READY":
            return None
        asked = (RowKey(board, player) for board, players in wanted.items() for player in players)
        return {key: read_packed(packed) for key, packed in zip(asked, answer[1:], strict=True) if packed != b""}

    def read_meta(self, lane: int) -> LaneMeta:
        """What the lane says of itself, of one moment.

        LOST where it has no meta, lacks keys that it must have, or holds what no script writes.
        """
        keys = self._names.lane(lane)
        with redis_errors("read a lane"):
            pipeline = self._client.pipeline(transaction=True)
            pipeline.execute_command("HGETALL", keys.meta)
            pipeline.execute_command("HGETALL", keys.applied)
            pipeline.execute_command("SMEMBERS", keys.boards)
            pipeline.execute_command("HKEYS", keys.torn)
            pipeline.execute_command("SMEMBERS", keys.expelled)
            found = pipeline.execute(raise_on_error=False)
        meta, applied, *sets = found
        if isinstance(meta, ResponseError):
            return LaneMeta(LaneState.LOST)
        if any(isinstance(one, ResponseError) for one in found):
            return replace(_parse_meta(_pairs(meta), {}, (), (), ()), state=LaneState.LOST)
        return _parse_meta(_pairs(meta), _pairs(applied), *sets)

    def begin(
        self, lane: int, epoch: str, ids: LaneIds, partitions: int, seen: LaneMeta, boards: Iterable[str]
    ) -> bool:
        """Empty the lane and open it for a rebuild under this epoch; False where another runner was quicker.

        `boards`: names of boards that may have a key here; those that the lane names are found by itself.
        """
        keys = self._names.lane(lane)
        declared = set(boards) | seen.boards
        head = [keys.meta, keys.applied, keys.as_of, keys.boards, keys.expelled, keys.torn]
        while True:
            named = sorted(declared)
            args: list[Arg] = [epoch, *ids, partitions, seen.stored_state, seen.epoch, *named]
            answer = self._run("begin", [*head, *(keys.board(board) for board in named)], args)
            if answer[0] != b"UNDECLARED":
                return bool(answer[0] == b"OK")
            declared.update(board.decode("utf-8") for board in answer[1:])

    def fill(self, lane: int, epoch: str, step: int, progress: int, entries: Entries) -> bool:
        """Merge the step-th chunk of the truth's rows; False where the rebuild is no longer this runner's."""
        keys = self._names.lane(lane)
        board_keys, board_args = entries.keys_and_args(keys)
        args: list[Arg] = [epoch, step, progress, *board_args]
        return bool(self._run("fill", [keys.meta, keys.boards, keys.torn, *board_keys], args)[0] == b"OK")

    def finish(self, lane: int, epoch: str, steps: int, offsets: Mapping[int, tuple[int, int | None]]) -> bool:
        """Declare the lane whole up to these offsets (partition to offset and as_of); False where fenced."""
        keys = self._names.lane(lane)
        args: list[Arg] = [epoch, steps]
        for partition, (offset, as_of) in offsets.items():
            args += (partition, offset, "" if as_of is None else as_of)
        return bool(self._run("finish", [keys.meta, keys.applied, keys.as_of], args)[0] == b"OK")

    def add_partitions(self, lane: int, epoch: str, partitions: int) -> bool:
        """Tell the lane of partitions before the log has them, so that as_of can't overlook one; False where fenced."""
        keys = self._names.lane(lane)
        return bool(self._run("add_partitions", [keys.meta, keys.as_of], [epoch, partitions])[0] == b"OK")

    def eviction_policy(self) -> str:
        """Redis' maxmemory-policy, which must be noeviction. Empty where the server doesn't tell."""
        with redis_errors("tell its settings"):
            try:
                found = self._client.execute_command("CONFIG", "GET", "maxmemory-policy")
            except ResponseError:
                return ""  # hosted servers have no CONFIG
        values = list(found.values()) if isinstance(found, dict) else list(found)[1:]
        return values[0].decode() if values else ""

    def _run(self, name: str, keys: Sequence[str], args: Sequence[Arg]) -> list[bytes]:
        return run_script(self._client, name, keys, args)


def read_packed(text: bytes) -> int:
    """The integer of a score as Redis writes it; never by way of a double."""
    if text.isdigit():
        return int(text)
    raise StoreUnavailable(f"Redis holds {text!r}, which is no packed value: rebuild this lane")


def topology_ids(log_id: str, topology: Topology) -> LaneIds:
    """The ids that a lane must carry under this log and topology."""
    return LaneIds(log_id, topology.truth_id, topology.tag)


def _number(text: str) -> int | None:
    return int(text) if _DIGITS.fullmatch(text) else None


def _pairs(reply: Any) -> dict[bytes, bytes]:
    return dict(reply) if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def _parse_meta(
    meta: dict[bytes, bytes],
    applied: dict[bytes, bytes],
    boards: Iterable[bytes],
    torn: Iterable[bytes],
    expelled: Iterable[bytes],
) -> LaneMeta:
    text = {name.decode(): value.decode("utf-8", "replace") for name, value in meta.items()}
    named = frozenset(board.decode("utf-8") for board in boards)
    state = LaneState(text["state"]) if text.get("state") in ("ready", "rebuilding") else LaneState.LOST
    torn_boards = frozenset(board.decode("utf-8") for board in torn)
    numbers = {name: _number(text.get(name, "")) for name in ("boards", "torn", "partitions", "seq")}
    offsets = {_number(partition.decode()): _number(offset.decode()) for partition, offset in applied.items()}
    broken = not applied or None in {*numbers.values(), *offsets, *offsets.values()}
    broken = broken or len(named) != numbers["boards"] or len(torn_boards) != numbers["torn"]
    if state is LaneState.READY and broken:
        state = LaneState.LOST
    return LaneMeta(
        state=state,
        stored_state=text.get("state", ""),
        epoch=text.get("epoch", ""),
        ids=LaneIds(text.get("log_id", ""), text.get("truth_id", ""), text.get("topology", "")),
        partitions=numbers["partitions"] or 0,
        seq=numbers["seq"] or 0,
        as_of=_number(text.get("as_of", "")),
        progress=text.get("progress", ""),
        applied={one: offset for one, offset in offsets.items() if one is not None and offset is not None},
        boards=named,
        torn=torn_boards,
        expelled=frozenset(RowKey(*note.decode("utf-8").split("\n", 1)) for note in expelled),
    )
