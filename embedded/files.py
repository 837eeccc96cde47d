"""Files of the data folder that only their owner may read, written whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from pathlib import Path

from embedded.errors import StackError

_STATE = ("redis", "dynamodb", "logs", "children.json", "stack.json")
_LOCK_PATIENCE_S = 0.5


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 600 atomically: a reader sees the old text or the new, never a part."""
    staged = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    handle = os.open(staged, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(text)
    staged.replace(path)


class DataFolder:
    """The folder of one stack, held by a lock for as long as this object is open."""

    def __init__(self, path: Path) -> None:
        """Create the folder (mode 700) and lock it; StackError if another stack holds it."""
        self.path = path.expanduser().resolve()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise StackError(
                f"the data folder {self.path} can't be used ({error.strerror}): choose another with --data"
            ) from error
        if not self._take():
            pid = os.pread(self._lock, 32, 0).decode().strip() or "unknown"
            os.close(self._lock)
            raise StackError(
                f"the data folder {self.path} is in use by another stack (pid {pid}): "
                "stop it or choose another folder with --data"
            )
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def _take(self) -> bool:
        """Try for half a second: `is_locked` of another process holds the lock for a moment."""
        give_up_at = time.monotonic() + _LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    return False
                time.sleep(0.05)
            else:
                return True

    def close(self) -> None:
        """Release the folder."""
        os.close(self._lock)

    def clear(self) -> None:
        """Remove the state of former runs, and nothing else that may be in the folder; the key stays."""
        for name in _STATE:
            path = self.path / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)

    def read_submit_key(self) -> str:
        """Return this folder's submit key, made at the first call."""
        path = self.path / "submit-key"
        if not path.exists():
            # a key that began with "-" would be an option to whoever passes it on
            write_private(path, f"sk_{secrets.token_urlsafe(32)}\n")
        return path.read_text().strip()


def hash_key(key: str) -> str:
    """Return the hex SHA-256 of a key, as STANDINGS_SUBMIT_KEYS wants it."""
    return hashlib.sha256(key.encode()).hexdigest()


def is_locked(folder: Path) -> bool:
    """Tell whether a stack holds this folder now; no pid that was reused can deceive it."""
    try:
        handle = os.open(folder / "lock", os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)
