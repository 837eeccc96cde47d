"""Pages as they are sent: one body and one tag for all who ask for the same page in the same turn."""

from __future__ import annotations

import hashlib

from api.entries import show_entry
from schemas.leaderboards import Board
from schemas.positions import Cursor, encode_cursor
from schemas.times import format_time_or_none
from schemas.wire import encode_json
from stores.boards import Page, Ties


def encode_page(board: Board, page: Page, ties: Ties) -> tuple[bytes, bytes]:
    """The page's tag and body. The tag is over what is listed: as_of moves on while that stays the same."""
    if "body" not in page.encoded:
        follows = None
        if page.entries and page.first + len(page.entries) < page.size:
            last = page.entries[-1]
            follows = encode_cursor(Cursor(last.packed, last.player_id), board.name, ties)
        listed = encode_json(
            {"size": page.size, "entries": [show_entry(board, entry) for entry in page.entries], "next": follows}
        )
        head = encode_json({"board": board.name, "as_of": format_time_or_none(page.as_of)})
        page.encoded["tag"] = b'W/"' + hashlib.blake2b(listed, digest_size=12).hexdigest().encode("ascii") + b'"'
        page.encoded["body"] = head[:-1] + b"," + listed[1:]
    return page.encoded["tag"], page.encoded["body"]
