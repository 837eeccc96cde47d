"""Was a reply right? Everything that was accepted before its as_of is in it, and nothing that never happened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.faults.load import Read
from tests.faults.reference import Reference, read_time

# What a read may be refused with: the service says that it can't answer now.
_HONEST = {503, 504}


def find_wrong_reads(reads: Sequence[Read], reference: Reference, floor_at: int) -> list[str]:
    """A line for each reply that is wrong. Everything acknowledged before the floor is in all of them."""
    found = []
    for read in reads:
        try:
            faults = list(_Reply(read, reference, floor_at).faults())
        except (LookupError, TypeError, ValueError) as error:
            faults = [f"can't be understood: {error!r}"]
        if faults:
            found.append(f"{read.kind} {read.board} {read.asked} sent at {read.sent_at}: {'; '.join(faults[:3])}")
    return found


class _Reply:
    def __init__(self, read: Read, reference: Reference, floor_at: int) -> None:
        self._read = read
        self._reference = reference
        self._histories = reference.histories.get(read.board, {})
        self._rows = reference.rows.get(read.board, {})
        self._as_of = None if read.as_of is None else read_time(read.as_of)
        self._complete_to = max(self._as_of or 0, floor_at)
        self._body: dict[str, Any] = json.loads(read.body)

    def faults(self) -> Iterator[str]:
        status = self._read.status
        if status in _HONEST:
            return
        if status == 404 and self._body["type"].endswith("/player-not-found"):
            asked = self._read.asked
            if self._must_have(asked["id"]) is not None:
                yield f"{asked['id']} is said to have no score as of {self._read.as_of}"
            if self._awaited() is not None:
                yield f"{asked['id']} is said to have no score after its position was applied"
            return
        if status != 200:
            yield f"answered {status}: {self._body}"
            return
        yield from self._check_as_of()
        if self._read.kind == "player":
            yield from self._check_entries([self._body], of_board=False)
        else:
            yield from self._check_entries(self._body["entries"], of_board=self._read.kind != "friends")
        if self._body.get("state") != "rebuilding":
            yield from self._check_size()
        yield from getattr(self, f"_check_{self._read.kind}")()

    # ------------------------------------------------------------------ what holds for all

    def _must_have(self, player_id: str) -> int | None:
        """The packed value that the player must have reached in this reply, at least."""
        history = self._histories.get(player_id)
        return None if history is None else history.best_before(self._complete_to)

    def _awaited(self) -> int | None:
        """The packed value of the result whose position the read waited for, where it belongs to this board."""
        key = (self._read.board, self._read.asked["id"], self._read.awaited or "")
        return self._reference.lines.get(key)

    def _packed(self, entry: dict[str, Any]) -> int:
        return self._reference.pack_shown(self._read.board, entry["score"], read_time(entry["achieved_at"]))

    def _check_as_of(self) -> Iterator[str]:
        if self._body["as_of"] != self._read.as_of:
            yield f"as_of is {self._body['as_of']} in the body and {self._read.as_of} in the header"
        if self._as_of is not None and self._as_of > self._read.answered_at:
            yield f"as_of {self._read.as_of} was still to come"

    def _check_entries(self, entries: list[dict[str, Any]], *, of_board: bool) -> Iterator[str]:
        """Each line happened, is as good as it has to be, and stands where it says."""
        for index, entry in enumerate(entries):
            player_id = entry["player_id"]
            possible = self._reference.possible.get((self._read.board, player_id), set())
            if (entry["score"], read_time(entry["achieved_at"])) not in possible:
                yield f"{entry} never happened"
                continue
            packed, least = self._packed(entry), self._must_have(player_id)
            if least is not None and packed < least:
                yield f"{entry} lacks what was accepted before {self._read.as_of}"
            if index and (self._packed(entries[index - 1]), entries[index - 1]["player_id"].encode()) < (
                packed,
                player_id.encode(),
            ):
                yield f"{entry} stands below a worse one"
            unique = self._read.asked.get("ties") != "shared"
            if of_board and index and unique and entry["rank"] != entries[index - 1]["rank"] + 1:
                yield f"{entry} has a rank that does not follow"
            if entry["rank"] is not None and unique:
                above = sum(1 for one in self._histories if (self._must_have(one) or -1) > packed)
                if entry["rank"] <= above:
                    yield f"{entry} is ranked above {above} who must be ahead"

    def _check_size(self) -> Iterator[str]:
        least = sum(1 for one in self._histories if self._must_have(one) is not None)
        if not least <= self._body["size"] <= len(self._rows):
            yield f"size {self._body['size']} is not from {least} to {len(self._rows)}"

    # ------------------------------------------------------------------ what each kind owes

    def _check_top(self) -> Iterator[str]:
        entries = self._body["entries"]
        if len(entries) != self._body["size"]:
            yield f"{len(entries)} entries of {self._body['size']}"
        if entries and entries[0]["rank"] != 1:
            yield f"begins with rank {entries[0]['rank']}"
        listed = {entry["player_id"] for entry in entries}
        for player_id in self._histories.keys() - listed:
            if self._must_have(player_id) is not None:
                yield f"{player_id} is missing as of {self._read.as_of}"

    def _check_player(self) -> Iterator[str]:
        rank, size = self._body["rank"], self._body["size"]
        if self._body["player_id"] != self._read.asked["id"]:
            yield f"is about {self._body['player_id']}"
        if rank is None and self._body.get("state") != "rebuilding":
            yield "has no rank"
        if rank is not None and not 1 <= rank <= size:
            yield f"rank {rank} of {size}"
        least = self._awaited()
        if least is not None and self._packed(self._body) < least:
            yield "lacks the score whose position it waited for"

    def _check_around(self) -> Iterator[str]:
        entries, reach = self._body["entries"], self._read.asked["k"]
        me = next((one for one in entries if one["player_id"] == self._read.asked["id"]), None)
        if me is None:
            yield "lacks the player"
            return
        first, last = max(1, me["rank"] - reach), min(self._body["size"], me["rank"] + reach)
        if [one["rank"] for one in entries] != list(range(first, last + 1)):
            yield f"shows ranks {entries[0]['rank']} to {entries[-1]['rank']}, not {first} to {last}"

    def _check_friends(self) -> Iterator[str]:
        entries, missing, asked = self._body["entries"], self._body["missing"], self._read.asked["id"]
        if sorted([*missing, *(one["player_id"] for one in entries)]) != sorted(asked):
            yield "does not tell of each friend once"
        if [one["friend_rank"] for one in entries] != list(range(1, len(entries) + 1)):
            yield "friends are not counted 1, 2, 3"
        for player_id in missing:
            if self._must_have(player_id) is not None:
                yield f"{player_id} is said to be missing as of {self._read.as_of}"
