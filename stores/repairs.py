"""Repairs in place: what may be done to a READY lane beside projecting, without taking it from its readers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from uuid import uuid4

from schemas.errors import StandingsError
from schemas.keys import Names
from schemas.leaderboards import Board
from schemas.rows import RowKey
from schemas.times import SECOND_MS
from stores.connections import AnyRedis, Arg, redis_errors, run_script
from stores.lanes import Entries, LaneMeta, read_packed

_SCAN_COUNT = 1_000


class Seen(NamedTuple):
    """An entry as Redis shows it. `packed` is None where the score is none that Standings ever wrote."""

    player_id: str
    text: str
    packed: int | None


class LaneMoved(StandingsError):
    """The lane is no longer READY under the epoch that the repair began with: look again, and begin anew."""


class LaneRepairs:
    """The scripts of repairs. Each raises LaneMoved where it is fenced, and StoreUnavailable; each may be run again."""

    def __init__(self, client: AnyRedis, names: Names) -> None:
        self._client: Any = client
        self._names = names

    def repair(self, lane: int, epoch: str, entries: Entries) -> None:
        """Merge row images that the truth has."""
        keys = self._names.lane(lane)
        board_keys, args = entries.keys_and_args(keys)
        self._run("repair", lane, [keys.meta, keys.boards, keys.torn, *board_keys], [epoch, *args])

    def tear(self, lane: int, epoch: str, board: Board) -> str | None:
        """Begin to mend a board that lost its key, and stop serving it; the token to refill, None where it is whole."""
        token = str(uuid4())
        answer = self._run_on_board("tear", lane, board.name, [epoch, board.name, token, _expiry(board)])
        return token if answer == b"TORN" else None

    def refill(self, lane: int, epoch: str, board: Board, token: str, step: int, entries: Entries) -> bool:
        """Merge the step-th chunk of the board's rows; False where it was torn anew or a step is missing."""
        _, args = entries.keys_and_args(self._names.lane(lane))
        return self._run_on_board("refill", lane, board.name, [epoch, board.name, token, step, *args]) == b"OK"

    def mend(self, lane: int, epoch: str, board: Board, token: str, steps: int) -> bool:
        """Serve the board again; False where it was torn anew or a step is missing: begin with tear."""
        return self._run_on_board("mend", lane, board.name, [epoch, board.name, token, steps]) == b"OK"

    def expel(self, lane: int, epoch: str, key: RowKey, seen: Seen, packed: int | None) -> str | None:
        """Take an entry out, or lower it to the truth's row. The board is not served until settle.

        The token for settle; None where the entry is no longer as it was seen, or the board has to be mended first.
        """
        keys = self._names.lane(lane)
        token = str(uuid4())
        args: list[Arg] = [epoch, *key, seen.text, "" if packed is None else packed, token]
        touched = [keys.meta, keys.boards, keys.expelled, keys.torn, keys.board(key.board)]
        answer = self._run("expel", lane, touched, args)
        return token if answer[0] == b"OK" else None

    def settle(self, lane: int, epoch: str, key: RowKey, entries: Entries, token: str = "") -> None:
        """Merge the row as it was read after the expel (no entries: there is none), and drop the note.

        With the expel's token the board is served again; without one it is left for tear and mend.
        """
        keys = self._names.lane(lane)
        board_keys, args = entries.keys_and_args(keys)
        head = [keys.meta, keys.boards, keys.torn, keys.expelled]
        self._run("settle", lane, [*head, *board_keys], [epoch, *key, token, *args])

    def forget(self, lane: int, epoch: str, board: str) -> bool:
        """No longer name a board whose time is over and whose key is gone; False where it has a key."""
        keys = self._names.lane(lane)
        answer = self._run("forget", lane, [keys.meta, keys.boards, keys.torn, keys.board(board)], [epoch, board])
        return answer[0] == b"OK"

    def retire(self, lane: int, seen: LaneMeta) -> None:
        """Remove a lane that the layout no longer has, as it was seen."""
        keys = self._names.lane(lane)
        head = [keys.meta, keys.applied, keys.as_of, keys.boards, keys.expelled, keys.torn]
        declared = set(seen.boards)
        while True:
            named = sorted(declared)
            answer = self._run("retire", lane, [*head, *(keys.board(board) for board in named)], [seen.epoch, *named])
            if answer[0] != b"UNDECLARED":
                return
            declared.update(board.decode("utf-8") for board in answer[1:])

    def missing_boards(self, lane: int, boards: Iterable[str]) -> list[str]:
        """Which of these boards have no key in the lane, or one that is no sorted set. One round trip."""
        keys = self._names.lane(lane)
        asked = list(boards)
        if not asked:
            return []
        with redis_errors("look for keys"):
            pipeline = self._client.pipeline(transaction=False)
            for board in asked:
                pipeline.execute_command("TYPE", keys.board(board))
            return [board for board, kind in zip(asked, pipeline.execute(), strict=True) if kind != b"zset"]

    def scan(self, lane: int, board: str) -> Iterator[list[Seen]]:
        """All entries of a board, in pages of no order; one that is there all the while comes at least once."""
        key = self._names.lane(lane).board(board)
        cursor: Any = 0
        while True:
            with redis_errors("scan a board"):
                cursor, flat = self._client.execute_command("ZSCAN", key, cursor, "COUNT", _SCAN_COUNT)
            yield _entries(flat)
            if int(cursor) == 0:
                return

    def sample(self, lane: int, board: str, count: int) -> list[Seen]:
        """Up to so many entries of a board, at random, none twice."""
        key = self._names.lane(lane).board(board)
        with redis_errors("sample a board"):
            flat = self._client.execute_command("ZRANDMEMBER", key, count, "WITHSCORES")
        return _entries(flat)

    def view(self, lane: int, board: str, player_ids: list[str]) -> tuple[str, dict[str, int]]:
        """The lane's epoch ('' unless READY) and the packed values of these players, of one moment."""
        keys = self._names.lane(lane)
        with redis_errors("read a board"):
            pipeline = self._client.pipeline(transaction=True)
            pipeline.execute_command("HMGET", keys.meta, "state", "epoch")
            pipeline.execute_command("ZMSCORE", keys.board(board), *player_ids)
            (state, epoch), scores = pipeline.execute()
        pairs = zip(player_ids, scores, strict=True)
        found = {player: read_packed(score) for player, score in pairs if score is not None}
        return (epoch.decode() if state == b"ready" else "", found)

    def _run_on_board(self, name: str, lane: int, board: str, args: list[Arg]) -> bytes:
        keys = self._names.lane(lane)
        return self._run(name, lane, [keys.meta, keys.boards, keys.torn, keys.board(board)], args)[0]

    def _run(self, name: str, lane: int, keys: list[str], args: list[Arg]) -> list[bytes]:
        answer = run_script(self._client, name, keys, args)
        if answer[0] == b"FENCED":
            raise LaneMoved(f"lane {lane} was begun anew")
        return answer


def _expiry(board: Board) -> str | int:
    return "" if board.expires_at is None else board.expires_at // SECOND_MS


def _entries(flat: list[bytes]) -> list[Seen]:
    """Pairs of a raw reply; the member '' is no player but the mark of a board that is being mended."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [
        Seen(player.decode("utf-8", "replace"), text.decode(), int(text) if text.isdigit() else None)
        for player, text in pairs
        if player
    ]
