"""Blocking calls to stores, made from a loop: a bounded number of threads, and a bound on the time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from schemas.errors import StoreUnavailable

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A pool of threads for one kind of blocking calls."""

    def __init__(self, name: str, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._name = name

    async def run(self, timeout_s: float, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function answers. StoreUnavailable when it takes longer, waiting for a thread included.

        A call that is late goes on in its thread until it ends; nobody hears what came of it.
        """
        call = self._pool.submit(function, *args, **kwargs)
        waiting = asyncio.wrap_future(call)
        done, _ = await asyncio.wait({waiting}, timeout=timeout_s)
        if not done:
            waiting.cancel()  # and with it the call, if no thread has taken it yet
            raise StoreUnavailable(f"{self._name} did not answer within {timeout_s:g} s")
        return waiting.result()

    def close(self) -> None:
        """Begins no more calls; those under way end by their own time-outs."""
        self._pool.shutdown(wait=False, cancel_futures=True)
