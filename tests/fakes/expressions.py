"""The little of DynamoDB's expressions and of PartiQL that Standings uses, parsed and evaluated.

A shape that is not known here is an AssertionError: whoever writes a new one teaches the fake first, and
looks up what DynamoDB does with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Item = dict[str, Any]

_TOKEN = re.compile(r"""\s*(\?|[:#][A-Za-z_]\w*|"[^"]*"|[A-Za-z_]\w*|<>|<=|>=|[=<>(),])""")
# Words of ours-to-be that DynamoDB reserves: they need a #name. From
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        "BEGIN COUNT DATA DATE DAY END HASH INDEX KEY LAST LIMIT LIST MAP MONTH NAME NAMES NEXT NUMBER OFFSET "
        "ORDER OWNER PARTITION POSITION RANGE RESULT ROLE SIZE START STATE STATUS TIME TIMESTAMP TOKEN TTL TYPE "
        "USER VALUE VALUES VIEW WINDOW YEAR ZONE",
    )
)


class Malformed(Exception):
    """DynamoDB would answer ValidationException."""


@dataclass(frozen=True)
class Compare:
    """`path operator value`."""

    path: str
    operator: str
    value: Item


@dataclass(frozen=True)
class Exists:
    """`attribute_exists(path)` and its three other spellings."""

    path: str
    wanted: bool


@dataclass(frozen=True)
class BeginsWith:
    """`begins_with(path, value)`."""

    path: str
    value: Item


@dataclass(frozen=True)
class Join:
    """All (`AND`) or any (`OR`) of the parts."""

    word: str
    parts: tuple[Node, ...]


Node = Compare | Exists | BeginsWith | Join


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The parts of which all must hold."""
    return node.parts if isinstance(node, Join) and node.word == "AND" else (node,)


def holds(node: Node, item: Mapping[str, Any]) -> bool:
    """Whether the item meets the condition; an absent item is an empty one."""
    match node:
        case Join("AND", parts):
            return all(holds(part, item) for part in parts)
        case Join(_, parts):
            return any(holds(part, item) for part in parts)
        case Exists(path, wanted):
            return (path in item) is wanted
        case BeginsWith(path, value):
            return path in item and item[path].get("S", "").startswith(value["S"])
        case Compare(path, operator, value):
            return path in item and _compares(item[path], operator, value)


def _compares(left: Item, operator: str, right: Item) -> bool:
    (left_type, one), (right_type, other) = *left.items(), *right.items()
    if left_type != right_type:
        return False
    if left_type == "N":
        one, other = int(one), int(other)
    elif left_type == "S":
        one, other = one.encode(), other.encode()
    elif left_type != "BOOL" or operator != "=":
        raise AssertionError(f"the fake can't compare {left_type} by {operator}")
    answers: dict[str, bool] = {
        "=": one == other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }
    return answers[operator]


class Parser:
    """Parses one condition. `names` and `values` are the expression's, `parameters` those of PartiQL's `?`."""

    def __init__(
        self, text: str, names: Mapping[str, str], values: Mapping[str, Item], parameters: Iterator[Item]
    ) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._text = text
        self._names = names
        self._values = values
        self._parameters = parameters
        self.used: set[str] = set()

    def parse(self) -> Node:
        """The whole condition."""
        node = self._any()
        if self._at != len(self._tokens):
            raise AssertionError(f"the fake doesn't know the rest of {self._text!r}")
        return node

    def _any(self) -> Node:
        return self._join("OR", self._all)

    def _all(self) -> Node:
        return self._join("AND", self._one)

    def _join(self, word: str, parse: Callable[[], Node]) -> Node:
        parts = [parse()]
        while self._peek().upper() == word:
            self._next()
            parts.append(parse())
        return parts[0] if len(parts) == 1 else Join(word, tuple(parts))

    def _one(self) -> Node:
        found = self._next()
        if found == "(":
            node = self._any()
            self._expect(")")
            return node
        if found in ("attribute_exists", "attribute_not_exists"):
            self._expect("(")
            path = self._path(self._next())
            self._expect(")")
            return Exists(path, found == "attribute_exists")
        if found == "begins_with":
            self._expect("(")
            path = self._path(self._next())
            self._expect(",")
            value = self._value(self._next())
            self._expect(")")
            return BeginsWith(path, value)
        path = self._path(found)
        operator = self._next()
        if operator.upper() == "IS":
            wanted = self._peek().upper() == "NOT"
            if wanted:
                self._next()
            self._expect("MISSING")
            return Exists(path, wanted)
        if operator not in ("=", "<", "<=", ">", ">="):
            raise AssertionError(f"the fake doesn't know {operator!r} in {self._text!r}")
        return Compare(path, operator, self._value(self._next()))

    def _path(self, found: str) -> str:
        if found.startswith("#"):
            self.used.add(found)
            return self._names[found]
        if found.startswith('"'):
            return found[1:-1]
        if not found.isidentifier():
            raise AssertionError(f"the fake expects an attribute, not {found!r}, in {self._text!r}")
        if found.upper() in _RESERVED:
            raise Malformed(f"Attribute name is a reserved keyword; reserved keyword: {found}")
        return found

    def _value(self, found: str) -> Item:
        if found == "?":
            return next(self._parameters)
        if not found.startswith(":"):
            raise AssertionError(f"the fake expects a value, not {found!r}, in {self._text!r}")
        self.used.add(found)
        if found not in self._values:
            raise Malformed(f"An expression attribute value used in expression is not defined: {found}")
        return self._values[found]

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        found = self._peek()
        self._at += 1
        return found

    def _expect(self, wanted: str) -> None:
        if self._next().upper() != wanted:
            raise AssertionError(f"the fake expects {wanted!r} in {self._text!r}")


@dataclass(frozen=True)
class Insert:
    """`INSERT INTO "table" VALUE {...}`."""

    table: str
    item: Item


@dataclass(frozen=True)
class Update:
    """`UPDATE "table" SET a = ? ... WHERE ...`."""

    table: str
    assigned: Item
    where: Node


@dataclass(frozen=True)
class Select:
    """Any read: known only to be refused beside a write."""


_INSERT = re.compile(r"""INSERT INTO "([^"]+)" VALUE \{((?:'[^']+': \?(?:, )?)+)\}""")
_UPDATE = re.compile(r"""UPDATE "([^"]+)"((?: SET [a-z_]+ = \?)+) WHERE (.+)""")


def parse_partiql(text: str, parameters: Sequence[Item]) -> Insert | Update | Select:
    """One statement of PartiQL."""
    if text.startswith("SELECT "):
        return Select()
    if text.count("?") != len(parameters):
        raise Malformed("Number of parameters in request and statement don't match.")
    left = iter(parameters)
    if found := _INSERT.fullmatch(text):
        return Insert(found[1], {name: next(left) for name in re.findall(r"'([^']+)'", found[2])})
    if found := _UPDATE.fullmatch(text):
        names = re.findall(r"SET ([a-z_]+) =", found[2])
        if any(name.upper() in _RESERVED for name in names):
            raise Malformed("a reserved word is not quoted")
        assigned = {name: next(left) for name in names}
        return Update(found[1], assigned, Parser(found[3], {}, {}, left).parse())
    raise AssertionError(f"the fake doesn't know the statement {text!r}")


def parse_set(text: str, values: Mapping[str, Item]) -> tuple[Item, frozenset[str]]:
    """What `SET a = :a, b = :b` assigns, and which placeholders it uses."""
    head, _, rest = text.partition(" ")
    assert head == "SET", f"the fake doesn't know the update {text!r}"
    assigned: Item = {}
    used: set[str] = set()
    for part in rest.split(","):
        parser = Parser(part, {}, values, iter(()))
        node = parser.parse()
        assert isinstance(node, Compare), f"the fake doesn't know the assignment {part!r}"
        assert node.operator == "="
        assigned[node.path] = node.value
        used |= parser.used
    return assigned, frozenset(used)


def _tokens(text: str) -> list[str]:
    tokens = []
    at = 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        assert found is not None, f"the fake can't read {text[at:]!r}"
        tokens.append(found[1])
        at = found.end()
    return tokens
