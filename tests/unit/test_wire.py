from __future__ import annotations

import math
from typing import Any

import pytest

from schemas.errors import MalformedJson
from schemas.wire import decode_json, encode_json


@pytest.mark.parametrize(
    "raw",
    [
        b"", b" ", b"NaN", b"Infinity", b"-Infinity", b'{"score":NaN}', b"[Infinity]", b"007", b"-", b"+1", b"1.",
        b".5", b"0x10", b"1_000", b"[1,]", b'{"a":1,}', b"{'a':1}", b"{a:1}", b"// no\n1", b"1 2", b"{}{}",
        b"\xff", b'"\xff"',
        b"\xef\xbb\xbf{}", '{"a":1}'.encode("utf-16"), b"\x00", b'"\x01"', b'"a\nb"', b'"\\x"', b'"\\ud8"', b'"',
        b"[", b"nul",
        b"True", "\uff11".encode(),
        pytest.param(b"[" * 100_000, id="opened and never closed"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="deeper than any value"),
        pytest.param(b'{"a":' * 5_000, id="objects never closed"),
    ],
)  # fmt: skip
def test_what_is_not_json_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedJson, match="not JSON"):
        decode_json(raw)


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"10", 10),
        (b" \t\r\n10\n", 10),
        (b"-0", 0),
        (b"9007199254740991", 2**53 - 1),
        (b"-9007199254740991", -(2**53 - 1)),
        (b"9007199254740992", 2**53),
        (b"9007199254740993", 2**53 + 1),
        (b"9223372036854775808", 2**63),
        (b"true", True),
        (b"null", None),
        (b'"\\ud83e\\udd8a"', "🦊"),
        ('"é"'.encode(), "é"),
        (b'{"a":[1,"2",{}]}', {"a": [1, "2", {}]}),
    ],
)
def test_json_is_decoded_to_the_very_value(raw: bytes, value: Any) -> None:
    decoded = decode_json(raw)
    assert decoded == value
    assert type(decoded) is type(value)


@pytest.mark.parametrize(
    "raw",
    [
        b"10.0",
        b"1e3",
        b"1E3",
        b"-0.0",
        b"1e400",
        b"-1e400",
        b"9" * 40,
        pytest.param(b"9" * 100_000, id="100,000 nines"),
    ],
)
def test_what_is_no_safe_integer_never_becomes_one(raw: bytes) -> None:
    assert type(decode_json(raw)) is float


def test_a_number_beyond_doubles_is_json_but_infinite() -> None:
    assert decode_json(b'{"score":1e400}') == {"score": math.inf}


def test_a_lone_surrogate_is_json_and_left_to_the_models() -> None:
    assert decode_json(b'"a\\ud800"') == "a\ud800"


def test_values_are_encoded_compactly_in_utf8() -> None:
    assert encode_json({"player_id": "é🦊", "score": 2**53 - 1, "next": None}) == (
        '{"player_id":"é🦊","score":9007199254740991,"next":null}'.encode()
    )
