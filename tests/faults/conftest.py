"""What holds for all tests against servers that come and go."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _forgive_sockets() -> Iterator[None]:
    """kafka-python leaves the socket of a refused connection to the garbage collector, which would complain later."""
    yield
    for thread in threading.enumerate():
        if thread.name == "producer-close":
            thread.join(10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
