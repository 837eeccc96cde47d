"""Positions and cursors: they come back whole, or are refused."""

from __future__ import annotations

import string
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import positions
from schemas.packing import MAX_SAFE_INTEGER
from schemas.positions import Cursor, Position, decode_cursor, decode_position, encode_cursor, encode_position

BOARD = "ranked:weekly:2026-W43"
PLAYERS = ("zed", "a/b", "007", "é", "🦊", "{x}", "x" * 128, "team|scorer", " ")
ALPHABET = string.ascii_letters + string.digits + "-_+/= .\n\x00é"

some_positions = st.builds(
    Position,
    log_id=st.uuids().map(str),
    partition=st.integers(0, 2**31 - 1),
    offset=st.integers(0, 2**63 - 1),
)
some_cursors = st.builds(Cursor, packed=st.integers(0, MAX_SAFE_INTEGER), player_id=st.sampled_from(PLAYERS))


@given(some_positions)
def test_a_position_comes_back_whole(position: Position) -> None:
    assert decode_position(encode_position(position)) == position


@given(some_cursors, st.sampled_from((BOARD, "main:all")), st.sampled_from(("unique", "shared")))
def test_a_cursor_comes_back_whole(cursor: Cursor, board: str, ties: str) -> None:
    assert decode_cursor(encode_cursor(cursor, board, ties), board, ties) == cursor


@given(some_cursors, some_positions)
def test_tokens_travel_in_a_url_as_they_are(cursor: Cursor, position: Position) -> None:
    safe = set(string.ascii_letters + string.digits + "-_")
    assert set(encode_cursor(cursor, BOARD, "unique")) <= safe
    assert set(encode_position(position)) <= safe


def damages_of(token: str) -> set[str]:
    """The token with any one character replaced, inserted or left out, and with its ends cut."""
    damaged = {token[:index] + other + token[index + 1 :] for index in range(len(token)) for other in ALPHABET}
    damaged |= {token[:index] + other + token[index:] for index in range(len(token) + 1) for other in ALPHABET}
    damaged |= {token[:index] + token[index + 1 :] for index in range(len(token))}
    damaged |= {token[:index] for index in range(len(token))} | {token[index:] for index in range(1, len(token))}
    return damaged - {token}


def test_a_position_with_any_one_character_changed_is_refused() -> None:
    token = encode_position(Position("0f6f2b1e-5e1b-4c56-9d3a-0d9c6a3f7a11", 3, 2**40 + 17))
    for damaged in damages_of(token):
        with pytest.raises(ValueError):  # noqa: PT011 - refused, however it is broken
            decode_position(damaged)


@pytest.mark.parametrize("player_id", ["a", "ab", "abc", "é🦊"])
def test_a_cursor_with_any_one_character_changed_is_refused(player_id: str) -> None:
    token = encode_cursor(Cursor(2**52 + 1, player_id), BOARD, "unique")
    for damaged in damages_of(token):
        with pytest.raises(ValueError):  # noqa: PT011 - refused, however it is broken
            decode_cursor(damaged, BOARD, "unique")


@given(some_cursors)
def test_a_cursor_is_good_for_its_own_board_and_ties_alone(cursor: Cursor) -> None:
    token = encode_cursor(cursor, BOARD, "unique")
    for board, ties in ((BOARD, "shared"), ("main:weekly:2026-W43", "unique"), ("ranked:weekly:2026-W44", "unique")):
        with pytest.raises(ValueError, match="belongs elsewhere"):
            decode_cursor(token, board, ties)


@given(some_cursors, some_positions)
def test_a_cursor_is_no_position_and_a_position_no_cursor(cursor: Cursor, position: Position) -> None:
    with pytest.raises(ValueError, match="belongs elsewhere"):
        decode_position(encode_cursor(cursor, BOARD, "unique"))
    with pytest.raises(ValueError, match="belongs elsewhere"):
        decode_cursor(encode_position(position), BOARD, "unique")


@given(st.text(max_size=600))
def test_an_invented_token_is_refused(token: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - refused, however it is broken
        decode_position(token)
    with pytest.raises(ValueError):  # noqa: PT011
        decode_cursor(token, BOARD, "unique")


@pytest.mark.parametrize(
    "body",
    [b"", b"\0" * 7, b"\0" * 8, b"\0" * 8 + b"\xff", b"\0" * 8 + b"\n", b"\xff" * 8 + b"a", b"\0" * 8 + b"x" * 129],
)
def test_a_token_that_somebody_sealed_for_themselves_is_refused(body: bytes) -> None:
    # The checksum has no secret, so a client can compute it. What is inside is checked as well.
    token = positions._seal(body, f"cursor {BOARD} unique".encode())
    with pytest.raises(ValueError):  # noqa: PT011 - refused, whatever is in it
        decode_cursor(token, BOARD, "unique")
    with pytest.raises(ValueError, match="not a position"):
        decode_position(positions._seal(body, b"position"))


def test_tokens_are_stable_across_versions() -> None:
    log_id = str(UUID(int=7))
    assert encode_position(Position(log_id, 1, 2)) == "w8EO87yRMxoAAAAAAAAAAAAAAAAAAAAHAAAAAQAAAAAAAAAC"
    assert encode_cursor(Cursor(5, "zed"), "main:all", "unique") == "O7qJraYhOz4AAAAAAAAABXplZA"
