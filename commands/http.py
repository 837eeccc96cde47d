"""The commands' client: how patient it is, and what it says where nobody answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from client import Client, Retries, Unreachable
from schemas.errors import StandingsError

# Who forgot to start the service need not wait long to hear it; one that is busy is given time.
_RETRIES = Retries(deadline_s=20.0, connect_deadline_s=1.0)


@contextmanager
def open_client(url: str, key: str, retries: Retries = _RETRIES) -> Iterator[Client]:
    """A client for one command. Raises StandingsError, which says what to do, where nobody answers."""
    try:
        with Client(url, key, retries=retries) as client:
            yield client
    except Unreachable as error:
        raise StandingsError(f"{error}: is it running? STANDINGS_URL or --data tell where") from None
