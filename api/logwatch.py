"""Which log the topic is, asked again and again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from api.threads import Threads
from schemas.errors import StoreUnavailable
from schemas.problems import Problem
from stores.log import LogAdmin

_ANSWER_WITHIN_S = 12.0
# One failed question is a broker that was restarted; after so long nothing would be acknowledged either.
_GIVE_UP_AFTER_S = 3.0
_CONFIRM_WITHIN_S = 3.0


class LogWatch:
    """Keeps the topic's id, which every position bears. A log that was made anew has another one."""

    def __init__(self, admin: LogAdmin, threads: Threads, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._admin = admin
        self._threads = threads
        self._clock_s = clock_s
        self._log_id: str | None = None
        self._failing_since_s: float | None = None
        self.trouble: str | None = "the log was not asked yet"
        self._looking = asyncio.Lock()
        self._next_look: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Ask which log the topic is, and note the answer, or what is wrong."""
        began_s = self._clock_s()
        try:
            found = await self._threads.run(_ANSWER_WITHIN_S, self._admin.describe)
        except StoreUnavailable as error:
            self._failing_since_s = self._failing_since_s if self._failing_since_s is not None else began_s
            self.trouble = str(error)
            return
        self._failing_since_s = None
        self._log_id = None if found is None else found.log_id
        self.trouble = "there is no topic: run `standings init`" if found is None else None

    def require_log(self) -> str:
        """The id of the log as last seen. Raises the problem where there is none, or it is out of reach for seconds."""
        failing_s = 0.0 if self._failing_since_s is None else self._clock_s() - self._failing_since_s
        if self._log_id is None or failing_s >= _GIVE_UP_AFTER_S:
            raise refused(self.trouble or "the log is out of reach")
        return self._log_id

    async def confirm(self, log_id: str) -> None:
        """Raises the problem unless the topic, asked after this call began, is the same log still.

        What was acknowledged before is in that log then: a topic that was made anew has another id. All who
        ask while a question is under way share the next one.
        """
        if self._next_look is None:
            self._next_look = asyncio.get_running_loop().create_task(self._look_next())
        done, _ = await asyncio.wait({self._next_look}, timeout=_CONFIRM_WITHIN_S)
        if not done:
            raise uncertain("the log did not say in time whether it is the same still")
        if self.trouble is not None:
            raise uncertain(self.trouble)
        self.check_still(log_id)

    async def _look_next(self) -> None:
        async with self._looking:
            self._next_look = None  # whoever comes from here on needs another
            await self.look()

    def check_still(self, log_id: str) -> None:
        """Raises the problem where the topic was made anew since: what it acknowledged may be gone with the old one."""
        if self._log_id != log_id:
            raise uncertain("the log was made anew meanwhile")


def refused(why: str) -> Problem:
    """The problem of a log that certainly took nothing."""
    return Problem(
        "store-unavailable",
        f"nothing was accepted: {why}",
        headers={"Retry-After": "1"},
        more={"accepted": False},
    )


def uncertain(why: str) -> Problem:
    """The problem of a log that may or may not have taken it."""
    return Problem(
        "store-unavailable",
        f"the outcome is unknown, and a retry is safe: {why}",
        headers={"Retry-After": "1"},
        more={"accepted": None},
    )
