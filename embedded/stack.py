"""A running stack as others find it: stack.json in its data folder, and a registry per user."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from embedded.files import is_locked, write_private

_LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Stack:
    """Where the parts of a running stack listen and who they are; `data` is its folder."""

    api: str
    submit_key: str = field(repr=False)
    redis: str
    kafka: str
    dynamodb: str
    pids: Mapping[str, int]
    data: str
    prefix: str

    @property
    def file(self) -> Path:
        return Path(self.data) / "stack.json"

    def write(self) -> None:
        """Write stack.json (mode 600) atomically, and the entry of the registry that leads to it."""
        write_private(self.file, json.dumps(asdict(self), indent=2) + "\n")
        entry = _locate_entry(self.api)
        if entry is not None:
            entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(entry, json.dumps({"api": self.api, "stack": str(self.file)}) + "\n")

    def remove(self) -> None:
        """Remove stack.json and, if it is still this stack's, the entry of the registry."""
        self.file.unlink(missing_ok=True)
        entry = _locate_entry(self.api)
        if entry is not None and _read_json(entry).get("stack") == str(self.file):
            entry.unlink(missing_ok=True)


def find_stack(data: Path | None, url: str | None) -> Stack | None:
    """Find a running stack by its data folder, or else by the URL that its api serves.

    What a killed stack left behind is no stack: its folder must be held by a live supervisor.
    None when there is none, also for a URL that is not on this machine.
    """
    if data is not None:
        stack = _load(data.expanduser().resolve() / "stack.json")
        if stack is not None:
            return stack
    entry = _locate_entry(url) if url else None
    if entry is None:
        return None
    named = _read_json(entry).get("stack")
    stack = _load(Path(named)) if isinstance(named, str) else None
    return stack if stack is not None and _locate_entry(stack.api) == entry else None


def _load(file: Path) -> Stack | None:
    if not is_locked(file.parent):
        return None
    try:
        return Stack(**_read_json(file))
    except TypeError:  # no file, or not one of ours
        return None


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _locate_entry(url: str) -> Path | None:
    """Return the registry's file for a URL of this machine, None for any other."""
    try:
        parts = urlsplit(url)
        port = parts.port or 80
    except ValueError:
        return None
    if parts.scheme != "http" or parts.hostname not in _LOCAL_HOSTS:
        return None
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "standings" / "stacks" / f"{port}.json"
