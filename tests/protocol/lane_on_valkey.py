"""A lane on a real server, written to by its scripts, and read key by key as the reference has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import redis

from schemas.keys import Names
from stores.connections import run_script
from tests.protocol.reference_lane import Answer, Entries, Lane, Meta

LANE = 3
Dump = dict[bytes, tuple[bytes, int]]


class LaneOnValkey:
    """The lane under one prefix."""

    def __init__(self, client: redis.Redis, prefix: str) -> None:
        self._client: Any = client
        self.keys = Names(prefix).lane(LANE)
        self._stem = self.keys.meta.removesuffix("meta")

    def run(self, name: str, keys: Sequence[str], args: Sequence[str | int | None]) -> Answer:
        """Run a script; its answer as text. None is sent as ''."""
        answer = run_script(self._client, name, keys, ["" if arg is None else arg for arg in args])
        return tuple(part.decode() for part in answer)

    def delete(self, key: str) -> None:
        """What somebody does by hand."""
        self._client.execute_command("DEL", key)

    def dump(self) -> Dump:
        """All keys, to be restored: what a server comes back with that lost its last writes."""
        return {
            key: (self._client.execute_command("DUMP", key), self._client.execute_command("PEXPIRETIME", key))
            for key in self._all()
        }

    def restore(self, dump: Dump) -> None:
        """The lane as it was dumped, and nothing else."""
        for key in self._all():
            self._client.execute_command("DEL", key)
        for key, (value, expires_at_ms) in dump.items():
            self._client.execute_command("RESTORE", key, max(expires_at_ms, 0), value, "ABSTTL")

    def read(self) -> Lane:
        """Every key there is under the lane's tag."""
        keys, found = self.keys, Lane()
        zsets = []
        for key in sorted(self._all()):
            name = key.decode()
            if name == keys.meta:
                found = found._replace(meta=_meta(self._hash(key)))
            elif name in (keys.applied, keys.as_of):
                numbers = tuple(sorted((int(one), int(at)) for one, at in self._hash(key).items()))
                found = found._replace(applied=numbers) if name == keys.applied else found._replace(as_of=numbers)
            elif name == keys.torn:
                found = found._replace(torn=tuple(sorted(self._hash(key).items())))
            elif name == keys.boards:
                found = found._replace(boards=frozenset(self._set(key)))
            elif name == keys.expelled:
                notes = (note.split("\n") for note in self._set(key))
                found = found._replace(expelled=frozenset((board, player) for board, player in notes))
            else:
                zsets.append((name.removeprefix(self._stem), self._zset(key)))
        return found._replace(zsets=tuple(sorted(zsets)))

    def _all(self) -> list[bytes]:
        # `{` is no wildcard of KEYS, and prefixes of tests hold none.
        return list(self._client.execute_command("KEYS", f"{self._stem}*"))

    def _hash(self, key: bytes) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self._client.execute_command("HGETALL", key).items()}

    def _set(self, key: bytes) -> list[str]:
        return [member.decode() for member in self._client.execute_command("SMEMBERS", key)]

    def _zset(self, key: bytes) -> tuple[tuple[tuple[str, int], ...], int | None]:
        flat = self._client.execute_command("ZRANGE", key, 0, -1, "WITHSCORES")
        pairs = zip(flat[::2], flat[1::2], strict=True)
        expires_at = self._client.execute_command("EXPIRETIME", key)
        entries = tuple(sorted((player.decode(), int(packed)) for player, packed in pairs))
        return entries, None if expires_at < 0 else expires_at


def board_args(entries: Entries) -> list[str | int | None]:
    """Entries as merge() takes them."""
    args: list[str | int | None] = []
    for board, expires_at, images in entries:
        args += [board, expires_at, json.dumps([text for player, packed in images for text in (str(packed), player)])]
    return args


def _meta(text: dict[str, str]) -> Meta:
    return Meta(
        text["state"], text["epoch"], text["log_id"], text["truth_id"], text["topology"], int(text["partitions"]),
        int(text["seq"]), int(text["boards"]), int(text["torn"]), int(text["as_of"]) if text["as_of"] else None,
        int(text["progress"]),
    )  # fmt: skip
