"""A table of the DynamoDB in memory: items by key, and what DynamoDB demands of keys, values and conditions."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.fakes.dynamo_faults import client_error
from tests.fakes.expressions import Compare, Item, Malformed, Node, Parser, conjuncts, holds

Key = tuple[str, ...]
_MOST_KEY_BYTES = (2048, 1024)
_MOST_ITEM_BYTES = 400 * 1024
_MOST_DIGITS = 38


@dataclass
class Table:
    """Items by key. `key_names` are the partition key's and, where there is one, the sort key's."""

    key_names: tuple[str, ...]
    items: dict[Key, Item] = field(default_factory=dict)
    expires_by: str | None = None

    def key_of(self, attributes: Item, *, exact: bool = False) -> Key:
        """The key among these attributes (`exact`: which are all); Malformed where it is none."""
        if exact and set(attributes) != set(self.key_names):
            raise Malformed("The provided key element does not match the schema")
        key = []
        for name, most in zip(self.key_names, _MOST_KEY_BYTES, strict=False):
            text = attributes.get(name, {}).get("S")
            if not isinstance(text, str):
                raise Malformed(f"Missing the key {name} in the item")
            if not 1 <= len(text.encode()) <= most:
                raise Malformed(f"The AttributeValue for a key attribute cannot be empty or too long. Key: {name}")
            key.append(text)
        return tuple(key)

    def keys_of(self, attributes: Sequence[Item], most: int) -> list[Key]:
        """The keys of a batch: at least one, at most so many, none twice."""
        if not 1 <= len(attributes) <= most:
            raise Malformed(f"{len(attributes)} items requested, between 1 and {most} can be")
        keys = [self.key_of(one, exact=True) for one in attributes]
        if len(set(keys)) < len(keys):
            raise Malformed("Provided list of item keys contains duplicates")
        return keys

    def split(self, where: Node) -> tuple[Key, list[Node]]:
        """The key that a statement's WHERE names by equality, and what else it demands."""
        named: Item = {}
        others: list[Node] = []
        for part in conjuncts(where):
            if isinstance(part, Compare) and part.operator == "=" and part.path in self.key_names:
                named[part.path] = part.value
            else:
                others.append(part)
        if set(named) != set(self.key_names):
            raise Malformed("Where clause does not contain a mandatory equality on all key attributes")
        return self.key_of(named), others

    def store(self, item: Item) -> None:
        """Put the item in its place; Malformed where DynamoDB would not take it."""
        for value in item.values():
            _check_value(value)
        if len(repr(item).encode()) > _MOST_ITEM_BYTES:
            raise Malformed("Item size has exceeded the maximum allowed size")
        self.items[self.key_of(item)] = copy.deepcopy(item)

    def page(self, request: Item, where: Node | None, size: int) -> Item:
        """At most `size` items that meet the condition, behind the request's start, in DynamoDB's order."""
        assert request.get("ConsistentRead") is True, "all reads are strongly consistent"
        keys = sorted((key for key, item in self.items.items() if where is None or holds(where, item)), key=_place)
        if "ExclusiveStartKey" in request:
            # That item may have gone meanwhile: what stands behind its place comes next.
            after = _place(self.key_of(request["ExclusiveStartKey"], exact=True))
            keys = [key for key in keys if _place(key) > after]
        found = keys[:size]
        reply: Item = {"Items": [self.items[key] for key in found], "Count": len(found)}
        if len(found) == size:
            # So does DynamoDB where a limit is met exactly: there may be nothing behind.
            reply["LastEvaluatedKey"] = {name: {"S": at} for name, at in zip(self.key_names, found[-1], strict=True)}
        return reply


def check_condition(operation: str, request: Item, item: Item | None, used: frozenset[str] = frozenset()) -> None:
    """Raises what boto3 raises where the request's condition fails, or leaves a placeholder unused."""
    failed = False
    if "ConditionExpression" in request:
        condition, more = parse(request, "ConditionExpression")
        failed = not holds(condition, item or {})
        used |= more
    check_used(request, used)
    if failed:
        raise client_error(operation, "ConditionalCheckFailedException", "The conditional request failed")


def parse(request: Item, name: str) -> tuple[Node, frozenset[str]]:
    """The request's expression of this name, and the placeholders that it uses."""
    names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})
    parser = Parser(request[name], names, values, iter(()))
    return parser.parse(), frozenset(parser.used)


def check_used(request: Item, used: frozenset[str]) -> None:
    """Malformed where the request defines a placeholder that no expression of it uses."""
    defined = {*request.get("ExpressionAttributeNames", {}), *request.get("ExpressionAttributeValues", {})}
    if defined - used:
        raise Malformed(f"Value provided is unused in expressions: {sorted(defined - used)}")


def _check_value(value: Item) -> None:
    ((kind, content),) = value.items()
    match kind:
        case "S":
            assert isinstance(content, str)
        case "N":
            assert isinstance(content, str), "boto3 takes numbers as strings"
            if len(str(int(content)).lstrip("-")) > _MOST_DIGITS:
                raise Malformed("Attempting to store more than 38 significant digits in a Number")
        case "BOOL":
            assert isinstance(content, bool)
        case "M":
            for name, one in content.items():
                if not name:
                    raise Malformed("Empty attribute name")
                _check_value(one)
        case _:
            raise AssertionError(f"the fake doesn't know values of type {kind}")


def _place(key: Key) -> tuple[bytes, bytes]:
    """Partitions stand in the order of a hash, sort keys within them in that of their bytes."""
    return hashlib.md5(key[0].encode(), usedforsecurity=False).digest(), key[-1].encode()
