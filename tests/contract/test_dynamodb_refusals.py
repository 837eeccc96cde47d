"""What DynamoDB refuses must be refused in tests as well, or code that can't work passes them.

Where the emulator is more lenient, or stricter, it is declared. The rules are DynamoDB's:
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from tests.contract.dynamo_side import DynamoSide

pytestmark = pytest.mark.contract

Call = Callable[[DynamoSide], Any]


def key(player: str = "ann", shard: str = "main:all#0") -> dict[str, Any]:
    return {"board_shard": {"S": shard}, "player_id": {"S": player}}


def insert(side: DynamoSide, player: str, shard: str = "main:all#0") -> Any:
    text = f"INSERT INTO \"{side.names.scores}\" VALUE {{'board_shard': ?, 'player_id': ?}}"
    return {"Statement": text, "Parameters": [{"S": shard}, {"S": player}]}


def update(side: DynamoSide, player: str, where: str = "", *more: Any) -> Any:
    text = f'UPDATE "{side.names.scores}" SET score = ? WHERE board_shard = ? AND player_id = ?{where}'  # noqa: S608
    return {"Statement": text, "Parameters": [{"N": "1"}, *key(player).values(), *more]}


def select(side: DynamoSide, player: str) -> Any:
    text = f'SELECT * FROM "{side.names.scores}" WHERE board_shard = ? AND player_id = ?'  # noqa: S608
    return {"Statement": text, "Parameters": [*key(player).values()]}


def execute(*make: Callable[[DynamoSide], Any]) -> Call:
    return lambda side: side.client.batch_execute_statement(Statements=[one(side) for one in make])


def get(*keys: dict[str, Any]) -> Call:
    return lambda side: side.client.batch_get_item(
        RequestItems={side.names.scores: {"Keys": list(keys), "ConsistentRead": True}}
    )


def put(item: dict[str, Any], **more: Any) -> Call:
    return lambda side: side.client.put_item(TableName=side.names.scores, Item=item, **more)


def transact(*items: dict[str, Any]) -> Call:
    return lambda side: side.client.transact_write_items(
        TransactItems=[{"Put": {"TableName": side.names.scores, "Item": item}} for item in items]
    )


REFUSED: dict[str, Call] = {
    "two statements on one item": execute(lambda side: insert(side, "ann"), lambda side: update(side, "ann")),
    "the same statement twice": execute(lambda side: insert(side, "ann"), lambda side: insert(side, "ann")),
    "reads beside writes": execute(lambda side: insert(side, "ann"), lambda side: select(side, "bob")),
    "26 statements": execute(*[lambda side, n=n: insert(side, f"p{n}") for n in range(26)]),
    "no statement": execute(),
    "101 keys": get(*[key(f"p{n}") for n in range(101)]),
    "no key": get(),
    "a key twice": get(key(), key("bob"), key()),
    "a key that lacks a part": get({"player_id": {"S": "ann"}}),
    "an empty sort key": put(key("")),
    "an empty partition key": put(key("ann", "")),
    "an empty key in a batch": get(key("")),
    "a key of 1,025 bytes": put(key("é" * 512 + "x")),
    "a value that no expression uses": put(
        key(),
        ConditionExpression="attribute_not_exists(player_id)",
        ExpressionAttributeValues={":unused": {"N": "1"}},
    ),
    "a reserved word without a #name": put(
        key(), ConditionExpression="owner = :owner", ExpressionAttributeValues={":owner": {"S": "me"}}
    ),
    "a value that was not defined": put(key(), ConditionExpression="score = :score"),
    "two actions of a transaction on one item": transact(key(), key()),
    "101 actions in a transaction": transact(*[key(f"p{n}") for n in range(101)]),
}
LENIENT = {"two statements on one item", "the same statement twice", "reads beside writes"}


def pick(fixture: str, name: str) -> Any:
    lenient = fixture == "real_dynamo" and name in LENIENT
    reason = "the emulator lets it pass"
    marks = [pytest.mark.xfail(reason=reason, strict=True, raises=pytest.fail.Exception)] if lenient else []
    return pytest.param(fixture, REFUSED[name], marks=marks, id=f"{fixture.removesuffix('_dynamo')}: {name}")


@pytest.mark.parametrize(
    ("fixture", "call"), [pick(fixture, name) for fixture in ("fake_dynamo", "real_dynamo") for name in REFUSED]
)
def test_it_is_refused(request: pytest.FixtureRequest, fixture: str, call: Call) -> None:
    side: DynamoSide = request.getfixturevalue(fixture)
    with pytest.raises((ClientError, ParamValidationError), match=r"ValidationException|Parameter validation failed"):
        call(side)


def codes(reply: Any) -> list[str | None]:
    return [one.get("Error", {}).get("Code") for one in reply["Responses"]]


def test_each_statement_has_an_answer_of_its_own(dynamo_side: DynamoSide) -> None:
    call = execute(lambda side: insert(side, "ann"), lambda side: update(side, "bob"))
    assert codes(call(dynamo_side)) == [None, "ConditionalCheckFailed"]
    call = execute(lambda side: insert(side, "ann"), lambda side: insert(side, "bob"))
    assert codes(call(dynamo_side)) == ["DuplicateItem", None]


@pytest.mark.parametrize(
    ("where", "more", "holds"),
    [
        (" AND packed < ?", [{"N": "99999999999999999"}], True),
        (" AND packed < ?", [{"N": "0"}], False),
        (" AND rev IS MISSING", [], True),
        (" AND rev IS NOT MISSING", [], False),
        (" AND match_id = ?", [{"S": "m"}], True),
        (" AND absent < ?", [{"N": "9"}], False),
    ],
)
def test_an_update_holds_to_its_condition(dynamo_side: DynamoSide, where: str, more: Any, holds: bool) -> None:  # noqa: FBT001
    dynamo_side.client.put_item(
        TableName=dynamo_side.names.scores, Item=key() | {"packed": {"N": "5"}, "match_id": {"S": "m"}}
    )
    reply = execute(lambda side: update(side, "ann", where, *more))(dynamo_side)
    assert codes(reply) == [None if holds else "ConditionalCheckFailed"]


@pytest.mark.parametrize(
    "fixture",
    [
        "fake_dynamo",
        pytest.param(
            "real_dynamo",
            marks=pytest.mark.xfail(
                reason="the emulator refuses any OR in PartiQL", strict=True, raises=AssertionError
            ),
        ),
    ],
)
def test_an_update_may_have_alternatives(request: pytest.FixtureRequest, fixture: str) -> None:
    side: DynamoSide = request.getfixturevalue(fixture)
    side.client.put_item(TableName=side.names.scores, Item=key() | {"packed": {"N": "5"}})
    reply = execute(lambda side: update(side, "ann", " AND (packed < ? OR packed > ?)", {"N": "5"}, {"N": "4"}))(side)
    assert codes(reply) == [None]
