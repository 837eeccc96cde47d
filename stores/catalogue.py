"""The table of leaderboards: definitions, the topology, the leases of rebuilds. And the making of all tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from botocore.exceptions import ClientError

from schemas.errors import InvalidDefinition, StoreUnavailable
from schemas.keys import Names
from schemas.leaderboards import STORED, Definition, Leaderboard, Retention
from schemas.rows import Topology
from stores.deadline import Deadline
from stores.dynamodb import Dynamo, Item, store_errors

MAX_CHANGES = 100  # of one transaction: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
_TOPOLOGY = "#topology"
_LEASE = "#lease:"
_LOG = "#log"
_CALL_MS = 10_000
_TABLE_WAIT_S = 0.2


class Catalogue:
    """Definitions, topology and leases. All reads are strongly consistent. Raises StoreUnavailable."""

    def __init__(self, dynamo: Dynamo, names: Names, sleep: Callable[[float], None]) -> None:
        self._dynamo = dynamo
        self._names = names
        self._sleep = sleep

    # ------------------------------------------------------------------ tables

    def create_tables(self) -> None:
        """Create the three tables where they are absent, on demand, and wait until they are active. Safe to repeat."""
        layouts = {
            self._names.scores: ("board_shard", "player_id"),
            self._names.matches: ("match_id", "part"),
            self._names.leaderboards: ("leaderboard", None),
        }
        for table, (partition_key, sort_key) in layouts.items():
            self._create_table(table, partition_key, sort_key)
        for table in layouts:
            self._await_table(table)
        for table in (self._names.scores, self._names.matches):
            self._expire_by(table)

    def _create_table(self, table: str, partition_key: str, sort_key: str | None) -> None:
        keys: list[Any] = [{"AttributeName": partition_key, "KeyType": "HASH"}]
        if sort_key is not None:
            keys.append({"AttributeName": sort_key, "KeyType": "RANGE"})
        attributes: list[Any] = [{"AttributeName": key["AttributeName"], "AttributeType": "S"} for key in keys]
        try:
            with store_errors(f"create {table}"):
                self._dynamo.client.create_table(
                    TableName=table, KeySchema=keys, AttributeDefinitions=attributes, BillingMode="PAY_PER_REQUEST"
                )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ResourceInUseException":
                raise

    def _await_table(self, table: str) -> None:
        deadline = Deadline.after(60_000)
        while True:
            with store_errors(f"describe {table}"):
                if self._dynamo.client.describe_table(TableName=table)["Table"].get("TableStatus") == "ACTIVE":
                    return
            deadline.check()
            self._sleep(_TABLE_WAIT_S)

    def _expire_by(self, table: str) -> None:
        client = self._dynamo.client
        with store_errors(f"set the expiry of {table}"):
            status = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"].get("TimeToLiveStatus")
            if status not in ("ENABLED", "ENABLING"):
                client.update_time_to_live(
                    TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires_at"}
                )

    # ------------------------------------------------------------------ topology

    def read_topology(self) -> Topology | None:
        """How boards are laid out over lanes, and the truth's id; None before `standings init`."""
        item = self._get(_TOPOLOGY)
        if item is None:
            return None
        return Topology(
            int(item["lanes"]["N"]), int(item["mapping"]["N"]), item["truth_id"]["S"], int(item["lanes_before"]["N"])
        )

    def create_topology(self, lanes: int) -> Topology:
        """The topology, made with this number of lanes and a new truth id where there was none."""
        self._put_topology(Topology(lanes, 1, str(uuid4()), 0), None)
        found = self.read_topology()
        if found is None:
            raise StoreUnavailable("DynamoDB does not show the topology that was just written")
        return found

    def change_topology(self, before: Topology, lanes: int, *, new_truth: bool) -> Topology:
        """Another layout (the mapping counts up) or another truth id, as the successor of `before`.

        Raises InvalidDefinition when somebody else changed it meanwhile.
        """
        moved = lanes != before.lanes
        after = Topology(
            lanes,
            before.mapping + 1 if moved else before.mapping,
            str(uuid4()) if new_truth else before.truth_id,
            max(before.lanes, before.lanes_before) if moved else before.lanes_before,
        )
        if not self._put_topology(after, before):
            raise InvalidDefinition("the layout was changed by somebody else meanwhile: look, and run this again")
        return after

    def _put_topology(self, topology: Topology, before: Topology | None) -> bool:
        request: Item = {
            "TableName": self._names.leaderboards,
            "Item": {
                "leaderboard": {"S": _TOPOLOGY},
                "lanes": {"N": str(topology.lanes)},
                "mapping": {"N": str(topology.mapping)},
                "truth_id": {"S": topology.truth_id},
                "lanes_before": {"N": str(topology.lanes_before)},
            },
        }
        if before is None:
            request["ConditionExpression"] = "attribute_not_exists(leaderboard)"
        else:
            request["ConditionExpression"] = "mapping = :mapping AND truth_id = :truth_id"
            request["ExpressionAttributeValues"] = {
                ":mapping": {"N": str(before.mapping)},
                ":truth_id": {"S": before.truth_id},
            }
        return self._put_if("write the topology", request)

    def note_log(self, log_id: str, now_at: int) -> int:
        """Since when (epoch ms) this log is known to be the log; 0 where it is the first that ever was.

        The first to see another log writes down when: until then updaters may have worked on an older one.
        """
        while True:
            item = self._get(_LOG)
            if item is not None and item["log_id"]["S"] == log_id:
                return int(item["since_at"]["N"])
            request: Item = {
                "TableName": self._names.leaderboards,
                "Item": {
                    "leaderboard": {"S": _LOG},
                    "log_id": {"S": log_id},
                    "since_at": {"N": "0" if item is None else str(now_at)},
                },
                "ConditionExpression": "attribute_not_exists(leaderboard)" if item is None else "log_id = :before",
            }
            if item is not None:
                request["ExpressionAttributeValues"] = {":before": item["log_id"]}
            self._put_if("note the log", request)

    def _put_if(self, what: str, request: Item) -> bool:
        """A conditional put; False where its condition does not hold."""
        try:
            with store_errors(what):
                self._dynamo.client.put_item(**request)
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            return False
        return True

    # ------------------------------------------------------------------ definitions

    def read_leaderboards(self) -> dict[str, Leaderboard]:
        """All leaderboards by name. One scan of a small table."""
        found: dict[str, Leaderboard] = {}
        request: Item = {"TableName": self._names.leaderboards, "ConsistentRead": True}
        while True:
            reply = self._dynamo.call(
                "read the leaderboards", lambda: self._dynamo.client.scan(**request), Deadline.after(_CALL_MS)
            )
            for item in reply["Items"]:
                if not item["leaderboard"]["S"].startswith("#"):
                    leaderboard = _leaderboard(item)
                    found[leaderboard.name] = leaderboard
            if "LastEvaluatedKey" not in reply:
                return dict(sorted(found.items()))
            request["ExclusiveStartKey"] = reply["LastEvaluatedKey"]

    def write_leaderboards(self, changed: Sequence[Leaderboard]) -> None:
        """Write all of these or none, each as the successor of the version before it.

        Raises InvalidDefinition for more than 100 at once, and when somebody else changed one meanwhile.
        """
        if len(changed) > MAX_CHANGES:
            raise InvalidDefinition(
                f"{len(changed)} leaderboards change at once; at most {MAX_CHANGES} can, split the file"
            )
        if not changed:
            return
        items: list[Any] = [{"Put": self._put(leaderboard)} for leaderboard in changed]
        try:
            self._dynamo.call(
                "write the leaderboards",
                lambda: self._dynamo.client.transact_write_items(TransactItems=items),
                Deadline.after(_CALL_MS),
            )
        except ClientError as error:
            raise InvalidDefinition(
                "a leaderboard was changed by somebody else meanwhile: look, and apply again"
            ) from error

    def _put(self, leaderboard: Leaderboard) -> Item:
        item: Item = {
            "leaderboard": {"S": leaderboard.name},
            "definition": {"S": leaderboard.definition.model_dump_json(round_trip=True)},
            "retentions": {"S": json.dumps({k: [asdict(one) for one in v] for k, v in leaderboard.retentions.items()})},
            "version": {"N": str(leaderboard.version)},
            "shards": {"N": str(leaderboard.definition.shards)},
        }
        put: Item = {"TableName": self._names.leaderboards, "Item": item}
        if leaderboard.version == 1:
            put["ConditionExpression"] = "attribute_not_exists(leaderboard)"
        else:
            put["ConditionExpression"] = "version = :before"
            put["ExpressionAttributeValues"] = {":before": {"N": str(leaderboard.version - 1)}}
        return put

    # ------------------------------------------------------------------ leases

    def take_lease(self, name: str, owner: str, now_at: int, until_at: int) -> bool:
        """Take or prolong a lease until then; False while somebody else holds it.

        For liveness only: clocks may differ, so two may believe that they hold it. Epochs keep that harmless.
        """
        item: Item = {
            "leaderboard": {"S": _LEASE + name},
            "owner": {"S": owner},
            "until_at": {"N": str(until_at)},
        }
        try:
            with store_errors("take a lease"):
                self._dynamo.client.put_item(
                    TableName=self._names.leaderboards,
                    Item=item,
                    ConditionExpression="attribute_not_exists(leaderboard) OR #owner = :owner OR until_at < :now",
                    ExpressionAttributeNames={"#owner": "owner"},
                    ExpressionAttributeValues={":owner": {"S": owner}, ":now": {"N": str(now_at)}},
                )
        except ClientError:
            return False
        return True

    def release_lease(self, name: str, owner: str) -> None:
        """Give a lease back; nothing happens where it is somebody else's."""
        try:
            with store_errors("release a lease"):
                self._dynamo.client.delete_item(
                    TableName=self._names.leaderboards,
                    Key={"leaderboard": {"S": _LEASE + name}},
                    ConditionExpression="#owner = :owner",
                    ExpressionAttributeNames={"#owner": "owner"},
                    ExpressionAttributeValues={":owner": {"S": owner}},
                )
        except ClientError:
            return

    def _get(self, key: str) -> Item | None:
        reply = self._dynamo.call(
            f"read {key}",
            lambda: self._dynamo.client.get_item(
                TableName=self._names.leaderboards, Key={"leaderboard": {"S": key}}, ConsistentRead=True
            ),
            Deadline.after(_CALL_MS),
        )
        found: Item | None = reply.get("Item")
        return found


def _leaderboard(item: Item) -> Leaderboard:
    stored = json.loads(item["retentions"]["S"])
    return Leaderboard(
        item["leaderboard"]["S"],
        Definition.model_validate_json(item["definition"]["S"], context=STORED),
        int(item["version"]["N"]),
        {kind: tuple(Retention(**one) for one in kept) for kind, kept in stored.items()},
    )
