"""The scorebook: the truth. Best scores and receipts in DynamoDB.

A row only ever grows: every write carries a condition that the row it replaces is worse. Repeating a
write is therefore harmless, in any order, from anywhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence

from botocore.exceptions import ClientError

from schemas.errors import StoreUnavailable
from schemas.keys import Names
from schemas.leaderboards import Board
from schemas.rows import Candidate, Receipt, ReceiptKey, Row, RowKey, board_shard, shard_key
from schemas.times import SECOND_MS
from stores.deadline import Deadline
from stores.dynamodb import DUPLICATE, REFUSED, Dynamo, Item, Statement, store_errors

PAGE_ROWS = 5_000
_LEAST_PAGE_ROWS = 50
_PAGE_TRIES = 6
_QUERY_MS = 30_000

# The clauses of "this row takes the place of the one that is there", each under its name.
NOT_THERE = "attribute_not_exists(player_id)"
NEVER_CORRECTED = "attribute_not_exists(rev)"
BETTER = "packed < :packed"
EQUAL_BUT_EARLIER = "(packed = :packed AND achieved_at > :achieved_at)"
EQUAL_BUT_SMALLER_MATCH = "(packed = :packed AND achieved_at = :achieved_at AND match_id > :match_id)"
BEATS = f"{NEVER_CORRECTED} AND ({NOT_THERE} OR {BETTER} OR {EQUAL_BUT_EARLIER} OR {EQUAL_BUT_SMALLER_MATCH})"


class Scorebook:
    """Rows and receipts. All reads are strongly consistent. Raises StoreUnavailable and DeadlineMissed.

    `parallel_queries`: how many shards may be read at once by whoever reads all of them.
    """

    def __init__(self, dynamo: Dynamo, names: Names, parallel_queries: int = 8) -> None:
        self._dynamo = dynamo
        self._names = names
        self.parallel_queries = parallel_queries

    # ------------------------------------------------------------------ rows

    def write_rows(self, candidates: Sequence[Candidate], known: set[RowKey], deadline: Deadline) -> dict[RowKey, Row]:
        """Let each candidate take its row if it beats what is there; answer the image that the truth then had.

        At most one candidate per row. `known`: rows that exist for certain (the view shows them); for the
        others an insert is tried first. Not atomic between rows. Usually one statement per candidate; a
        refusal costs a read, and an equal packed value one more write.
        """
        images: dict[RowKey, Row] = {}
        waiting = {candidate.key: candidate for candidate in candidates}
        existing = known & waiting.keys()
        while waiting:
            tried = list(waiting.values())
            outcomes = self._dynamo.execute(
                [self._statement(one, exists=one.key in existing) for one in tried], deadline
            )
            refused = []
            for candidate, outcome in zip(tried, outcomes, strict=True):
                if outcome is None:
                    images[candidate.key] = candidate.row
                    del waiting[candidate.key]
                elif outcome == DUPLICATE:
                    existing.add(candidate.key)
                elif outcome == REFUSED:
                    refused.append(candidate)
            if refused:
                self._settle(refused, waiting, existing, images, deadline)
        return images

    def read_rows(self, keys: Iterable[tuple[Board, str]], deadline: Deadline) -> dict[RowKey, Row]:
        """The rows that exist of these (board, player)."""
        wanted = {(board_shard(board, player), player): RowKey(board.name, player) for board, player in keys}
        items = self._dynamo.get(self._names.scores, [_score_key(*key) for key in wanted], deadline)
        return {wanted[item["board_shard"]["S"], item["player_id"]["S"]]: _row(item) for item in items}

    def query_shard(self, board: Board, shard: int, now_at: int) -> Iterator[list[Row]]:
        """All rows of one shard of a board, page by page, those past their time left out.

        Rows written while the query runs may or may not be among them. A page that takes too long is asked for
        again, smaller: reading twice does no harm.
        """
        request = self._shard_request(board, shard, PAGE_ROWS)
        tries = 0
        while True:
            try:
                reply = self._query(request)
            except StoreUnavailable:
                tries += 1
                if tries >= _PAGE_TRIES:
                    raise
                request["Limit"] = max(request["Limit"] // 4, _LEAST_PAGE_ROWS)
                continue
            tries = 0
            # DynamoDB deletes expired items days late: whoever reads compares the time.
            yield [_row(item) for item in reply["Items"] if not _is_expired(item, now_at)]
            if "LastEvaluatedKey" not in reply:
                return
            request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def _shard_request(self, board: Board, shard: int, limit: int) -> Item:
        return {
            "TableName": self._names.scores,
            "KeyConditionExpression": "board_shard = :board_shard",
            "ExpressionAttributeValues": {":board_shard": {"S": shard_key(board.name, shard)}},
            "ConsistentRead": True,
            "Limit": limit,
        }

    def _query(self, request: Item) -> Item:
        reply: Item = self._dynamo.call(
            "query a shard", lambda: self._dynamo.client.query(**request), Deadline.after(_QUERY_MS)
        )
        return reply

    def sample_rows(self, board: Board, count: int, now_at: int) -> Iterator[list[Row]]:
        """About `count` rows of a board, none twice, from a random place of each shard. A round trip a shard or two."""
        each = max(1, -(-count // board.shards))
        for shard in range(board.shards):
            start = {"board_shard": {"S": shard_key(board.name, shard)}, "player_id": {"S": secrets.token_hex(8)}}
            behind = self._query_some(board, shard, each, now_at, start)
            missing = each - len(behind)
            ahead = self._query_some(board, shard, missing, now_at, None) if missing > 0 else []
            known = {row.player_id for row in behind}
            yield behind + [row for row in ahead if row.player_id not in known]

    def _query_some(self, board: Board, shard: int, limit: int, now_at: int, start: Item | None) -> list[Row]:
        request = self._shard_request(board, shard, limit)
        if start is not None:
            request["ExclusiveStartKey"] = start
        return [_row(item) for item in self._query(request)["Items"] if not _is_expired(item, now_at)]

    def _statement(self, candidate: Candidate, *, exists: bool) -> Statement:
        board, row = candidate.board, candidate.row
        values = [_number(row.score), _number(row.packed), _number(row.achieved_at), {"S": row.match_id}]
        key = [{"S": board_shard(board, row.player_id)}, {"S": row.player_id}]
        expires = [] if board.rows_expire_at is None else [_number(board.rows_expire_at // SECOND_MS)]
        if exists:
            text = f'UPDATE "{self._names.scores}" SET score = ? SET packed = ? SET achieved_at = ? SET match_id = ?'  # noqa: S608 - a table's name, ours
            text += " SET expires_at = ?" if expires else ""
            text += " WHERE board_shard = ? AND player_id = ? AND packed < ? AND rev IS MISSING"
            return Statement(text, [*values, *expires, *key, values[1]])
        text = (
            f"INSERT INTO \"{self._names.scores}\" VALUE {{'board_shard': ?, 'player_id': ?, 'score': ?, 'packed': ?, "
        )
        text += "'achieved_at': ?, 'match_id': ?" + (", 'expires_at': ?}" if expires else "}")
        return Statement(text, [*key, *values, *expires])

    def _settle(
        self,
        refused: Sequence[Candidate],
        waiting: dict[RowKey, Candidate],
        existing: set[RowKey],
        images: dict[RowKey, Row],
        deadline: Deadline,
    ) -> None:
        """Decide what an UPDATE refused by reading the row; between equal packed values, by the full condition."""
        rows = self.read_rows([(one.board, one.row.player_id) for one in refused], deadline)
        for candidate in refused:
            row = rows.get(candidate.key)
            if row is None:
                existing.discard(candidate.key)
                continue
            if candidate.row.beats(row):
                row = self._write_if_beats(candidate, deadline)
                if row is None:
                    continue
            images[candidate.key] = row
            del waiting[candidate.key]

    def _write_if_beats(self, candidate: Candidate, deadline: Deadline) -> Row | None:
        """One native update under the whole rule; None where another writer came between: read again."""
        board, row = candidate.board, candidate.row
        values = {
            ":score": _number(row.score),
            ":packed": _number(row.packed),
            ":achieved_at": _number(row.achieved_at),
            ":match_id": {"S": row.match_id},
        }
        update = "SET score = :score, packed = :packed, achieved_at = :achieved_at, match_id = :match_id"
        if board.rows_expire_at is not None:
            values[":expires_at"] = _number(board.rows_expire_at // SECOND_MS)
            update += ", expires_at = :expires_at"
        try:
            self._dynamo.call(
                "update a row",
                lambda: self._dynamo.client.update_item(
                    TableName=self._names.scores,
                    Key=_score_key(board_shard(board, row.player_id), row.player_id),
                    UpdateExpression=update,
                    ConditionExpression=BEATS,
                    ExpressionAttributeValues=values,
                ),
                deadline,
            )
        except ClientError:
            return None
        return row

    # ------------------------------------------------------------------ receipts

    def read_receipts(self, keys: Iterable[ReceiptKey], deadline: Deadline) -> dict[ReceiptKey, Receipt]:
        """The receipts that exist under these keys, also those past their time: they still tell a repeat."""
        wanted = [{"match_id": {"S": key.match_id}, "part": {"S": key.part}} for key in keys]
        items = self._dynamo.get(self._names.matches, wanted, deadline)
        return {receipt.key: receipt for receipt in map(_receipt, items)}

    def insert_receipts(self, receipts: Sequence[Receipt], deadline: Deadline) -> dict[ReceiptKey, Receipt]:
        """Insert the receipts that aren't there; answer those that were, as they are, to compare with."""
        text = (
            f"INSERT INTO \"{self._names.matches}\" VALUE {{'match_id': ?, 'part': ?, 'results': ?, 'ended_at': ?, "
            "'time_given': ?, 'applied_at': ?, 'expires_at': ?}"
        )
        outcomes = self._dynamo.execute([Statement(text, _receipt_values(one)) for one in receipts], deadline)
        there = [one.key for one, outcome in zip(receipts, outcomes, strict=True) if outcome == DUPLICATE]
        return self.read_receipts(there, deadline) if there else {}

    def find_receipts(self, match_id: str, leaderboard: str, now_at: int, deadline: Deadline) -> list[Receipt]:
        """All receipts of a match on a leaderboard, whole or player by player, that are not past their time."""
        found: list[Receipt] = []
        request: Item = {
            "TableName": self._names.matches,
            "KeyConditionExpression": "match_id = :match_id AND begins_with(part, :part)",
            "ExpressionAttributeValues": {":match_id": {"S": match_id}, ":part": {"S": f"{leaderboard}#"}},
            "ConsistentRead": True,
        }
        while True:
            reply = self._dynamo.call("find receipts", lambda: self._dynamo.client.query(**request), deadline)
            found += [_receipt(item) for item in reply["Items"] if not _is_expired(item, now_at)]
            if "LastEvaluatedKey" not in reply:
                return found
            request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    # ------------------------------------------------------------------ health

    def check(self) -> None:
        """Raises StoreUnavailable unless the tables are there and active. Three round trips."""
        for table in (self._names.scores, self._names.matches, self._names.leaderboards):
            with store_errors(f"describe {table}"):
                status = self._dynamo.client.describe_table(TableName=table)["Table"].get("TableStatus")
            if status not in ("ACTIVE", "UPDATING"):
                raise StoreUnavailable(f"the table {table} is {status}")


def _score_key(shard: str, player_id: str) -> Item:
    return {"board_shard": {"S": shard}, "player_id": {"S": player_id}}


def _number(value: int) -> Item:
    return {"N": str(value)}


def _row(item: Mapping[str, Mapping[str, str]]) -> Row:
    return Row(
        item["player_id"]["S"],
        int(item["score"]["N"]),
        int(item["packed"]["N"]),
        int(item["achieved_at"]["N"]),
        item["match_id"]["S"],
    )


def _is_expired(item: Mapping[str, Mapping[str, str]], now_at: int) -> bool:
    return "expires_at" in item and int(item["expires_at"]["N"]) * SECOND_MS <= now_at


def _receipt_values(receipt: Receipt) -> list[Item]:
    return [
        {"S": receipt.key.match_id},
        {"S": receipt.key.part},
        {"M": {player: _number(score) for player, score in receipt.results.items()}},
        _number(receipt.ended_at),
        {"BOOL": receipt.time_given},
        _number(receipt.applied_at),
        _number(receipt.expires_at // SECOND_MS),
    ]


def _receipt(item: Item) -> Receipt:
    return Receipt(
        ReceiptKey(item["match_id"]["S"], item["part"]["S"]),
        {player: int(score["N"]) for player, score in item["results"]["M"].items()},
        int(item["ended_at"]["N"]),
        item["time_given"]["BOOL"],
        int(item["applied_at"]["N"]),
    )
