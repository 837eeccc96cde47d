"""Query parameters, parsed strictly: what is unknown, repeated, empty or out of bounds is a fault, never ignored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote_to_bytes

from schemas.errors import Fault
from schemas.friends import distinct_friends
from schemas.ids import check_id
from schemas.packing import MAX_SAFE_INTEGER
from schemas.positions import Cursor, Position, decode_cursor, decode_position
from schemas.problems import Problem
from stores.boards import Ties

MAX_WAIT_S = 5.0
WAITING = ("after", "wait")
# A batch of bad lines would be answered with many times its size.
MAX_FAULTS = 50
_INTEGER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_SECONDS = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?", re.ASCII)


class Parameters:
    """The parameters of one call. Each method answers a value, and notes a fault where there is none; then `check`."""

    def __init__(self, query_string: bytes, known: Sequence[str], repeatable: Sequence[str] = ()) -> None:
        self.faults: list[Fault] = []
        self._values: dict[str, list[str]] = {}
        for piece in query_string.split(b"&") if query_string else ():
            if piece:
                self._take(piece, known)
        for name, values in self._values.items():
            if len(values) > 1 and name not in repeatable:
                self._note(name, "is given more than once")

    def check(self) -> None:
        """Raises the problem that lists every fault that was found."""
        if self.faults:
            raise invalid_request((), self.faults)

    def integer(self, name: str, least: int, most: int, default: int) -> int:
        """A plain decimal integer within bounds, both included."""
        text = self._single(name)
        if text is None:
            return default
        if _INTEGER.fullmatch(text) is None or not least <= int(text) <= most:
            bounds = f"from {least}" if most == MAX_SAFE_INTEGER else f"from {least} to {most}"
            self._note(name, f"must be a plain integer {bounds}")
            return default
        return int(text)

    def seconds(self, name: str) -> float | None:
        """How long to wait: above 0, at most 5, with or without decimals; None where it was not given."""
        text = self._single(name)
        if text is None:
            return None
        if _SECONDS.fullmatch(text) is None or not 0 < float(text) <= MAX_WAIT_S:
            self._note(name, "must be a number of seconds above 0, at most 5, such as 1 or 0.5")
            return None
        return float(text)

    def ties(self) -> Ties:
        """How equal scores are ranked."""
        text = self._single("ties")
        if text not in (None, "unique", "shared"):
            self._note("ties", "must be unique or shared")
        return "shared" if text == "shared" else "unique"

    def position(self, name: str) -> Position | None:
        """A position that a submission gave."""
        text = self._single(name)
        try:
            return None if text is None else decode_position(text)
        except ValueError as error:
            self._note(name, str(error))
            return None

    def start(self, board: str, ties: Ties) -> int | Cursor:
        """Where a page begins: `from_rank` as a 0-based index, or behind the cursor's entry."""
        index = self.integer("from_rank", 1, MAX_SAFE_INTEGER, 1) - 1
        text = self._single("cursor")
        if text is None:
            return index
        if "from_rank" in self._values:
            self._note("from_rank", "can't stand beside a cursor, which says where the page begins")
        try:
            return decode_cursor(text, board, ties)
        except ValueError as error:
            self._note("cursor", str(error))
            return index

    def single_id(self, name: str) -> str:
        """Exactly one id."""
        if name not in self._values:
            self._note(name, "is required")
            return ""
        values = self._values[name]
        return self._id(name, values[0]) if values else ""

    def ids(self, name: str) -> list[str]:
        """1 to 500 different ids, in the order asked."""
        if name not in self._values:
            self._note(name, "is required: 1 to 500 of them")
            return []
        found = [self._id(name, text) for text in self._values[name]]
        try:
            return distinct_friends(found)
        except ValueError as error:
            self._note(name, str(error))
            return []

    def path_id(self, name: str, text: str | None) -> str:
        """An id that stands in the path; None: it was not UTF-8."""
        if text is None:
            self._note(name, "must be percent-encoded UTF-8")
            return ""
        return self._id(name, text)

    def _id(self, name: str, text: str) -> str:
        try:
            return check_id(text)
        except ValueError as error:
            self._note(name, str(error))
            return ""

    def _single(self, name: str) -> str | None:
        values = self._values.get(name)
        if not values:
            return None
        if values[0] == "":
            self._note(name, "is empty: leave it out, or give it a value")
            return None
        return values[0]

    def _take(self, piece: bytes, known: Sequence[str]) -> None:
        raw_name, _, raw_value = piece.partition(b"=")
        name = _decode(raw_name).decode("utf-8", "replace")
        if name not in known:
            hint = f"it takes {', '.join(known)}" if known else "it takes none"
            self._note(name, f"is not a parameter of this call: {hint}")
            return
        values = self._values.setdefault(name, [])
        try:
            values.append(_decode(raw_value).decode("utf-8"))
        except UnicodeDecodeError:
            self._note(name, "must be percent-encoded UTF-8")

    def _note(self, name: str, detail: str) -> None:
        fault = Fault(name, detail)
        if fault not in self.faults:
            self.faults.append(fault)


def invalid_request(pointers: Sequence[Fault], parameters: Sequence[Fault] = ()) -> Problem:
    """The problem that lists these faults of the body and of the parameters: the first 50, and how many there are."""
    faults = [*pointers, *parameters]
    first = f"{faults[0].place} {faults[0].detail}".strip()
    detail = first if len(faults) == 1 else f"{first}; and {len(faults) - 1} more, see errors"
    if len(faults) > MAX_FAULTS:
        detail += f" for the first {MAX_FAULTS}"
    listed = pointers[:MAX_FAULTS]
    return Problem("invalid-request", detail, listed, parameters[: MAX_FAULTS - len(listed)])


def _decode(raw: bytes) -> bytes:
    return unquote_to_bytes(raw.replace(b"+", b" "))
