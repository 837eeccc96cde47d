"""A scorebook as the contract tests see it: on the DynamoDB in memory and on the emulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from schemas.keys import Names
from schemas.leaderboards import Board, Definition, Leaderboard, define
from schemas.rows import Candidate, Receipt, ReceiptKey, Row, board_shard
from stores.catalogue import Catalogue
from stores.deadline import Deadline
from stores.dynamodb import Dynamo
from stores.scorebook import Scorebook

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

NOW = 1_792_843_200_500  # 2026-10-24, at noon, in the middle of a second


def leaderboard(name: str = "main", **more: Any) -> Leaderboard:
    """A leaderboard whose all-time ticks are seconds, so that two instants may pack equal."""
    values = {"order": "higher", "min": 0, "max": 2_097_151, "windows": ["all"]} | more
    return define(name, Definition.model_validate(values), 0)


GAME = leaderboard().boards_at(NOW)[0]


def row(player: str, score: int = 10, at: int = NOW, match: str = "m", board: Board = GAME) -> Row:
    """A row as the codec of the board makes it."""
    return Row(player, score, board.codec.pack(score, at), at, match)


def candidate(player: str, score: int = 10, at: int = NOW, match: str = "m", board: Board = GAME) -> Candidate:
    """A candidate on the board."""
    return Candidate(board, row(player, score, at, match, board))


def receipt(match: str, part: str = "main#*", results: dict[str, int] | None = None, applied_at: int = NOW) -> Receipt:
    """A receipt of a match."""
    return Receipt(ReceiptKey(match, part), results or {"ann": 10}, NOW - 1, True, applied_at)


def soon(limit_ms: int = 20_000) -> Deadline:
    """A deadline that no test meets."""
    return Deadline.after(limit_ms)


@dataclass
class DynamoSide:
    """Tables of this test's own, and what works on them."""

    client: DynamoDBClient
    dynamo: Dynamo
    names: Names = field(default_factory=lambda: Names(f"t{uuid4().hex[:12]}"))

    def __post_init__(self) -> None:
        self.scorebook = Scorebook(self.dynamo, self.names)
        self.catalogue = Catalogue(self.dynamo, self.names, lambda _: None)

    def write(self, *candidates: Candidate, known: bool = False) -> list[Row]:
        """The images that the truth had, in the order of the candidates."""
        keys = {one.key for one in candidates} if known else set()
        images = self.scorebook.write_rows(candidates, keys, soon())
        assert set(images) == {one.key for one in candidates}
        return [images[one.key] for one in candidates]

    def read(self, *players: str, board: Board = GAME) -> list[Row | None]:
        """The rows of these players."""
        found = self.scorebook.read_rows([(board, player) for player in players], soon())
        rows = {key.player_id: one for key, one in found.items()}
        return [rows.get(player) for player in players]

    def put(self, one: Row, board: Board = GAME, **more: Any) -> None:
        """A row as another writer would have left it."""
        item: dict[str, Any] = {
            "board_shard": {"S": board_shard(board, one.player_id)},
            "player_id": {"S": one.player_id},
            "score": {"N": str(one.score)},
            "packed": {"N": str(one.packed)},
            "achieved_at": {"N": str(one.achieved_at)},
            "match_id": {"S": one.match_id},
        }
        self.client.put_item(TableName=self.names.scores, Item=item | more)

    def item(self, player: str, board: Board = GAME) -> dict[str, Any]:
        """A row as it is stored."""
        key = {"board_shard": {"S": board_shard(board, player)}, "player_id": {"S": player}}
        return self.client.get_item(TableName=self.names.scores, Key=key, ConsistentRead=True)["Item"]
