"""JSON on the wire: decoded strictly, without ever turning an integer into a double."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import orjson

from schemas.errors import MalformedJson

# Longer integers are out of every bound; int() refuses beyond 4,300 digits and is slow before that.
_LONGEST_INTEGER = 32


def decode_json(raw: bytes) -> Any:
    """The value of a JSON text. Raises MalformedJson for what is not JSON: NaN, Infinity, 007, bad UTF-8.

    What is JSON but no valid value anywhere here (1e400, a lone surrogate, an endless integer) is
    returned as something that the models then refuse with its place.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _decode_slowly(raw)


def encode_json(value: Any) -> bytes:
    """The value as compact UTF-8 JSON."""
    return orjson.dumps(value)


def _decode_slowly(raw: bytes) -> Any:
    """A second opinion: the standard library takes the JSON that the quick decoder refuses as values."""
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_refuse, parse_int=_integer)
    except (ValueError, RecursionError) as error:
        raise MalformedJson(f"the body is not JSON: {error}") from error


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= _LONGEST_INTEGER else float("inf")
