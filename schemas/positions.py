"""Opaque tokens that travel through a client and come back: positions in the log, cursors in a board.

They are not secrets. A checksum over what they belong to makes a damaged, a foreign and a made-up
token an error instead of a wrong answer.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from dataclasses import dataclass
from uuid import UUID

from schemas.ids import check_id
from schemas.packing import MAX_SAFE_INTEGER

_POSITION = struct.Struct(">16sIQ")
_PACKED = struct.Struct(">Q")
_DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class Position:
    """Where an event stands in the log: reached once applied[partition] > offset in a lane of that log."""

    log_id: str
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last entry of a page: the next page begins behind it, wherever it has moved."""

    packed: int
    player_id: str


def encode_position(position: Position) -> str:
    """The token of a position."""
    body = _POSITION.pack(UUID(position.log_id).bytes, position.partition, position.offset)
    return _seal(body, b"position")


def decode_position(token: str) -> Position:
    """The position of a token; ValueError for one that Standings never gave."""
    body = _unseal(token, b"position")
    if len(body) != _POSITION.size:
        raise ValueError("this is not a position that a submission gave")
    log_id, partition, offset = _POSITION.unpack(body)
    return Position(str(UUID(bytes=log_id)), partition, offset)


def encode_cursor(cursor: Cursor, board: str, ties: str) -> str:
    """The token of a cursor; it is good for this board and these ties alone."""
    body = _PACKED.pack(cursor.packed) + cursor.player_id.encode("utf-8")
    return _seal(body, f"cursor {board} {ties}".encode())


def decode_cursor(token: str, board: str, ties: str) -> Cursor:
    """The cursor of a token; ValueError when it was not given for this board with these ties."""
    body = _unseal(token, f"cursor {board} {ties}".encode())
    packed = int.from_bytes(body[: _PACKED.size], "big")
    # The checksum is no secret: a token that somebody sealed for themselves ends here.
    if packed > MAX_SAFE_INTEGER:
        raise ValueError("this is not a cursor that a page gave")
    return Cursor(packed, check_id(body[_PACKED.size :].decode("utf-8")))


def _seal(body: bytes, purpose: bytes) -> str:
    return base64.urlsafe_b64encode(_digest(body, purpose) + body).rstrip(b"=").decode("ascii")


def _unseal(token: str, purpose: bytes) -> bytes:
    refusal = "take the token as it was given: this one is damaged, or belongs elsewhere"
    if len(token) > 512 or not token.isascii():
        raise ValueError(refusal)
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except ValueError:
        raise ValueError(refusal) from None
    digest, body = raw[:_DIGEST_BYTES], raw[_DIGEST_BYTES:]
    if digest != _digest(body, purpose) or _seal(body, purpose) != token:
        raise ValueError(refusal)
    return body


def _digest(body: bytes, purpose: bytes) -> bytes:
    framed = len(purpose).to_bytes(2, "big") + purpose + body
    return hashlib.blake2b(framed, digest_size=_DIGEST_BYTES, person=b"standings").digest()
