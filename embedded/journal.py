"""A journal of requests beside a snapshot, in generations, so that a kill at any moment loses nothing.

FOLDER/current              the number of the generation in use, replaced atomically
FOLDER/<n>/dynamodb.json    the state at the start of generation n (absent in the first)
FOLDER/<n>/journal.ndjson   every writing request since, in the order in which it was executed
"""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Record = dict[str, str]


class Journal:
    """The journal of the present generation; one writer (the folder is locked by the stack)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._current = folder / "current"
        self._sync_lock = threading.Lock()  # sync() runs in a thread, beside compact()
        folder.mkdir(parents=True, exist_ok=True)
        self._number = int(self._current.read_text()) if self._current.exists() else 0
        self._dirty = False
        self._file = self._open()
        self._remove_others()

    @property
    def generation(self) -> Path:
        """The folder of the present generation."""
        return self._folder / str(self._number)

    def read(self) -> Iterator[Record]:
        """Yield the records in order. A torn last one was never acknowledged: it is cut off."""
        whole_bytes = 0
        with self._path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                whole_bytes += len(line)
                yield json.loads(line)
        os.ftruncate(self._file, whole_bytes)

    def append(self, record: Record) -> None:
        """Hand a record to the kernel: from then on it survives the end of this process."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        written = os.write(self._file, line)
        if written != len(line):
            raise OSError(f"wrote {written} of {len(line)} bytes to {self._path}")
        self._dirty = True

    def sync(self) -> None:
        """Make what was appended survive a loss of power; cheap when nothing was."""
        with self._sync_lock:
            if self._dirty:
                self._dirty = False
                os.fsync(self._file)

    def is_empty(self) -> bool:
        return self._path.stat().st_size == 0

    def compact(self, save: Callable[[Path], None]) -> None:
        """Begin a generation with a snapshot, which `save` writes into the folder it is given.

        Killed in between, the old generation stays in use, whole.
        """
        number = self._number + 1
        following = self._folder / str(number)
        shutil.rmtree(following, ignore_errors=True)
        following.mkdir()
        save(following)
        staged = self._folder / "current.new"
        with staged.open("w") as file:
            file.write(str(number))
            file.flush()
            os.fsync(file.fileno())
        staged.replace(self._current)
        with self._sync_lock:
            os.close(self._file)
            self._number = number
            self._file = self._open()
        self._remove_others()

    @property
    def _path(self) -> Path:
        return self.generation / "journal.ndjson"

    def _open(self) -> int:
        self.generation.mkdir(exist_ok=True)
        return os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)

    def _remove_others(self) -> None:
        for path in self._folder.iterdir():
            if path.name.isdigit() and path != self.generation:
                shutil.rmtree(path)
