"""DynamoDB in memory, as the calls of boto3's client that stores/ makes.

It refuses what DynamoDB refuses, also where emulators are lenient: two statements on one item in a batch, reads
beside writes, too many statements or keys, a key twice in BatchGetItem, empty keys, reserved words, placeholders
that nothing uses. And it refuses, by AssertionError, what Standings must not ask: reads that aren't strongly
consistent, and any shape of statement or expression that it doesn't know.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from botocore.exceptions import ClientError

from tests.fakes.dynamo_faults import DynamoFaults, client_error
from tests.fakes.dynamo_table import Key, Table, check_condition, check_used, parse
from tests.fakes.expressions import (
    BeginsWith,
    Compare,
    Insert,
    Item,
    Malformed,
    Select,
    Update,
    conjuncts,
    holds,
    parse_partiql,
    parse_set,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MOST_STATEMENTS = 25
_MOST_KEYS = 100


class FakeDynamoDB:
    """A stand-in for boto3's client; safe to share between threads. Each item's write is atomic, a batch is not.

    Queries and scans answer at most `page_size` items a page. `faults` is where a test orders what goes wrong,
    `tables` where it looks.
    """

    def __init__(self, page_size: int = 1_000) -> None:
        self.page_size = page_size
        self.faults = DynamoFaults()
        self.tables: dict[str, Table] = {}
        self._lock = threading.RLock()

    def as_client(self) -> DynamoDBClient:
        """The fake itself, typed as what the stores take."""
        return cast("DynamoDBClient", self)

    # ------------------------------------------------------------------ tables

    def create_table(self, **request: Any) -> Item:
        def create() -> Item:
            name = request["TableName"]
            if name in self.tables:
                raise client_error("CreateTable", "ResourceInUseException", "Table already exists")
            names = {one["KeyType"]: one["AttributeName"] for one in request["KeySchema"]}
            assert all(one["AttributeType"] == "S" for one in request["AttributeDefinitions"])
            assert request["BillingMode"] == "PAY_PER_REQUEST"
            self.tables[name] = Table(tuple(names[kind] for kind in ("HASH", "RANGE") if kind in names))
            return {"TableDescription": {"TableName": name, "TableStatus": "CREATING"}}

        return self._call("CreateTable", request, create)

    def describe_table(self, **request: Any) -> Item:
        def describe() -> Item:
            self._table("DescribeTable", request)
            return {"Table": {"TableName": request["TableName"], "TableStatus": "ACTIVE"}}

        return self._call("DescribeTable", request, describe)

    def describe_time_to_live(self, **request: Any) -> Item:
        def describe() -> Item:
            by = self._table("DescribeTimeToLive", request).expires_by
            if by is None:
                return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
            return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": by}}

        return self._call("DescribeTimeToLive", request, describe)

    def update_time_to_live(self, **request: Any) -> Item:
        def update() -> Item:
            table = self._table("UpdateTimeToLive", request)
            if table.expires_by is not None:
                raise Malformed("TimeToLive is already enabled")
            assert request["TimeToLiveSpecification"]["Enabled"] is True
            table.expires_by = request["TimeToLiveSpecification"]["AttributeName"]
            return {"TimeToLiveSpecification": request["TimeToLiveSpecification"]}

        return self._call("UpdateTimeToLive", request, update)

    # ------------------------------------------------------------------ single items

    def get_item(self, **request: Any) -> Item:
        def get() -> Item:
            assert request.get("ConsistentRead") is True, "all reads are strongly consistent"
            table = self._table("GetItem", request)
            item = table.items.get(table.key_of(request["Key"], exact=True))
            return {} if item is None else {"Item": item}

        return self._call("GetItem", request, get)

    def put_item(self, **request: Any) -> Item:
        return self._call("PutItem", request, lambda: self._put("PutItem", request))

    def update_item(self, **request: Any) -> Item:
        def update() -> Item:
            table = self._table("UpdateItem", request)
            item = table.items.get(table.key_of(request["Key"], exact=True))
            assigned, used = parse_set(request["UpdateExpression"], request.get("ExpressionAttributeValues", {}))
            check_condition("UpdateItem", request, item, used)
            table.store({**(item or {}), **request["Key"], **assigned})
            return {}

        return self._call("UpdateItem", request, update)

    def delete_item(self, **request: Any) -> Item:
        def delete() -> Item:
            table = self._table("DeleteItem", request)
            key = table.key_of(request["Key"], exact=True)
            check_condition("DeleteItem", request, table.items.get(key))
            table.items.pop(key, None)
            return {}

        return self._call("DeleteItem", request, delete)

    def transact_write_items(self, **request: Any) -> Item:
        operation = "TransactWriteItems"

        def transact() -> Item:
            puts = [one["Put"] for one in request["TransactItems"]]
            if not 1 <= len(puts) <= _MOST_KEYS:
                raise Malformed("a transaction has 1 to 100 actions")
            targets = [(put["TableName"], self._table(operation, put).key_of(put["Item"])) for put in puts]
            if len(set(targets)) < len(targets):
                raise Malformed("Transaction request cannot include multiple operations on one item")
            before = copy.deepcopy(self.tables)
            reasons = [{"Code": "None" if self._try_put(operation, put) else "ConditionalCheckFailed"} for put in puts]
            if any(reason["Code"] != "None" for reason in reasons):
                self.tables = before
                code = "TransactionCanceledException"
                raise client_error(operation, code, f"Transaction cancelled: {reasons}", CancellationReasons=reasons)
            return {}

        return self._call(operation, request, transact)

    # ------------------------------------------------------------------ many items

    def batch_execute_statement(self, **request: Any) -> Item:
        operation = "BatchExecuteStatement"
        self.faults.enter(operation, request)
        with _validation(operation):
            writes = self._parse_batch(request)
            # Not under one lock: between two statements of a batch, others may write.
            responses = [self._execute(one) for one in writes]
        self.faults.leave(operation)
        return {"Responses": responses}

    def batch_get_item(self, **request: Any) -> Item:
        def get() -> Item:
            ((name, asked),) = request["RequestItems"].items()
            assert asked.get("ConsistentRead") is True, "all reads are strongly consistent"
            table = self._table("BatchGetItem", {"TableName": name})
            keys = table.keys_of(asked["Keys"], _MOST_KEYS)
            done = max(0, len(keys) - self.faults.unprocessed_keys())
            # The order of the answer is nobody's promise: here it is never that of the question.
            found = [table.items[key] for key in reversed(keys[:done]) if key in table.items]
            left = {name: {"Keys": asked["Keys"][done:], "ConsistentRead": True}} if done < len(keys) else {}
            return {"Responses": {name: found}, "UnprocessedKeys": left}

        return self._call("BatchGetItem", request, get)

    def query(self, **request: Any) -> Item:
        def query() -> Item:
            table = self._table("Query", request)
            where, used = parse(request, "KeyConditionExpression")
            check_used(request, used)
            first, *others = conjuncts(where)
            assert isinstance(first, Compare)
            assert (first.path, first.operator) == (table.key_names[0], "=")
            assert all(isinstance(one, BeginsWith) and one.path == table.key_names[1] for one in others)
            return table.page(request, where, self.page_size)

        return self._call("Query", request, query)

    def scan(self, **request: Any) -> Item:
        def scan() -> Item:
            assert set(request) <= {"TableName", "ConsistentRead", "ExclusiveStartKey"}
            return self._table("Scan", request).page(request, None, self.page_size)

        return self._call("Scan", request, scan)

    # ------------------------------------------------------------------ inside

    def _call(self, operation: str, request: Item, execute: Callable[[], Item]) -> Item:
        self.faults.enter(operation, request)
        with _validation(operation), self._lock:
            reply = copy.deepcopy(execute())
        self.faults.leave(operation)
        return reply

    def _table(self, operation: str, request: Item) -> Table:
        table = self.tables.get(request["TableName"])
        if table is None:
            raise client_error(operation, "ResourceNotFoundException", "Requested resource not found")
        return table

    def _put(self, operation: str, request: Item) -> Item:
        table = self._table(operation, request)
        check_condition(operation, request, table.items.get(table.key_of(request["Item"])))
        table.store(request["Item"])
        return {}

    def _try_put(self, operation: str, put: Item) -> bool:
        try:
            self._put(operation, put)
        except ClientError:
            return False
        return True

    def _parse_batch(self, request: Item) -> list[Insert | Update]:
        if not 1 <= len(request["Statements"]) <= _MOST_STATEMENTS:
            raise Malformed("a batch has 1 to 25 statements")
        parsed = [parse_partiql(one["Statement"], one["Parameters"]) for one in request["Statements"]]
        writes = [one for one in parsed if not isinstance(one, Select)]
        if 0 < len(writes) < len(parsed):
            raise Malformed("reads and writes in one batch")
        assert writes, "the fake doesn't read by PartiQL"
        targets = [(one.table, self._target(one)) for one in writes if one.table in self.tables]
        if len(set(targets)) < len(targets):
            raise Malformed("Provided list of item keys contains duplicates")
        return writes

    def _target(self, write: Insert | Update) -> Key:
        table = self.tables[write.table]
        return table.key_of(write.item) if isinstance(write, Insert) else table.split(write.where)[0]

    def _execute(self, write: Insert | Update) -> Item:
        code = self.faults.statement_code() or self._try_to_write(write)
        if code is None:
            return {"TableName": write.table}
        return {"TableName": write.table, "Error": {"Code": code, "Message": f"the answer was {code}"}}

    def _try_to_write(self, write: Insert | Update) -> str | None:
        with self._lock:
            table = self.tables.get(write.table)
            if table is None:
                return "ResourceNotFound"
            if isinstance(write, Insert):
                if table.key_of(write.item) in table.items:
                    return "DuplicateItem"
                table.store(write.item)
                return None
            key, conditions = table.split(write.where)
            item = table.items.get(key)
            # An UPDATE does not insert.
            if item is None or not all(holds(one, item) for one in conditions):
                return "ConditionalCheckFailed"
            table.store({**item, **write.assigned})
            return None


@contextmanager
def _validation(operation: str) -> Iterator[None]:
    try:
        yield
    except Malformed as malformed:
        raise client_error(operation, "ValidationException", str(malformed)) from None
