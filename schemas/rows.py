"""Rows of the scorebook, as values: what DynamoDB holds, without its wire types."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

from schemas.events import MatchEvent
from schemas.leaderboards import Board
from schemas.times import DAY_MS

RECEIPT_KEPT_MS = 400 * DAY_MS


@dataclass(frozen=True, slots=True)
class Row:
    """A player's best on a board: the image that the truth has, or a candidate for it.

    `achieved_at` in epoch ms, not cut to the tick.
    """

    player_id: str
    score: int
    packed: int
    achieved_at: int
    match_id: str

    def beats(self, other: Row) -> bool:
        """True where this row takes the other's place: greater packed, then earlier, then the smaller match id.

        Match ids compare by code points, which is the order of their UTF-8 bytes, DynamoDB's.
        """
        if self.packed != other.packed:
            return self.packed > other.packed
        return (self.achieved_at, self.match_id) < (other.achieved_at, other.match_id)


class RowKey(NamedTuple):
    """Which row: a board's name and a player."""

    board: str
    player_id: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that wants to stand on a board."""

    board: Board
    row: Row

    @property
    def key(self) -> RowKey:
        """Which row it wants to be."""
        return RowKey(self.board.name, self.row.player_id)


class ReceiptKey(NamedTuple):
    """Which receipt: `match_id` and the sort key `<leaderboard>#*` or `<leaderboard>#=<player_id>`."""

    match_id: str
    part: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """Which results of a match were applied. All times in epoch ms."""

    key: ReceiptKey
    results: dict[str, int]
    ended_at: int
    time_given: bool
    applied_at: int

    @property
    def expires_at(self) -> int:
        """When the receipt may go."""
        return self.applied_at + RECEIPT_KEPT_MS

    def contradicts(self, event: MatchEvent) -> bool:
        """True where the event reports something else under the same key.

        A time that the server filled in is not compared, on either side.
        """
        if self.results != dict(event.results):
            return True
        return self.time_given and event.time_given and self.ended_at != event.ended_at


@dataclass(frozen=True, slots=True)
class Topology:
    """How boards are spread over lanes, and which truth they show.

    `lanes_before`: the most lanes that any earlier layout had: those that are no more have to be removed.
    """

    lanes: int
    mapping: int
    truth_id: str
    lanes_before: int = 0

    @property
    def tag(self) -> str:
        """What a lane keeps of it, to tell whether it was laid out this way."""
        return f"{self.lanes}/{self.mapping}"

    def lane_of(self, board: str) -> int:
        """The lane of a board, the same on every host."""
        return _hash_of(board) % self.lanes


def receipt_key(event: MatchEvent) -> ReceiptKey:
    """Where the event's receipt stands: a leaderboard's id has no '#', so that no two keys collide."""
    part = "*" if event.whole else f"={event.results[0][0]}"
    return ReceiptKey(event.match_id, f"{event.leaderboard.name}#{part}")


def receipt_of(event: MatchEvent, applied_at: int) -> Receipt:
    """The receipt that says that the event's results were applied."""
    return Receipt(receipt_key(event), dict(event.results), event.ended_at, event.time_given, applied_at)


def candidates_of(event: MatchEvent) -> list[Candidate]:
    """One candidate for every player of the event on every board that its end time belongs to."""
    return [
        Candidate(board, Row(player_id, score, board.codec.pack(score, event.ended_at), event.ended_at, event.match_id))
        for board in event.leaderboard.boards_at(event.ended_at)
        for player_id, score in event.results
    ]


def board_shard(board: Board, player_id: str) -> str:
    """The partition key of a player's row on a board."""
    return shard_key(board.name, _hash_of(player_id) % board.shards)


def shard_key(board: str, shard: int) -> str:
    """The partition key of one shard of a board."""
    return f"{board}#{shard}"


def _hash_of(text: str) -> int:
    """Four bytes of SHA-256 as an integer: Python's hash() differs from process to process."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:4], "big")
