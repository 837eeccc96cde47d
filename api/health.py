"""Health: whether the process is up, and whether all that it needs is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from api.calls import Call
from api.logwatch import LogWatch
from api.metrics import Metrics
from api.replies import UNSTORED, Reply, json_reply
from api.threads import Threads
from schemas.errors import StandingsError, StoreUnavailable
from schemas.problems import Problem
from schemas.settings import Role
from schemas.times import format_time_or_none
from stores.boards import BoardReader, LaneReport
from stores.lanes import Lanes
from stores.registry import Registry
from stores.scorebook import Scorebook

_WITHIN_S = 4.0
_FINE = "ok"


class Health:
    """GET /livez, /readyz, /metrics."""

    def __init__(
        self,
        serves: frozenset[Role],
        registry: Registry,
        reader: BoardReader,
        scorebook: Scorebook,
        lanes: Lanes,
        log: LogWatch,
        threads: Threads,
    ) -> None:
        self._serves = serves
        self._registry = registry
        self._reader = reader
        self._scorebook = scorebook
        self._lanes = lanes
        self._log = log
        self._threads = threads
        self._looking: asyncio.Task[dict[str, Any]] | None = None

    async def livez(self, call: Call) -> Reply:
        """The process is up, whatever the stores do."""
        del call
        return json_reply({"status": "alive"})

    async def readyz(self, call: Call) -> Reply:
        """Each store and each lane. 503 where something is wrong that what is served here needs.

        Reads need Redis with all lanes, and the definitions; submitting needs the log and the
        definitions. All who ask while a look is under way share it.
        """
        del call
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())
        found = await asyncio.shield(self._looking)
        stores, lanes = found["stores"], found["lanes"]
        needed = {"dynamodb"} | ({"redis"} if "read" in self._serves else set())
        needed |= {"kafka"} if "submit" in self._serves else set()
        wrong = [f"{name}: {said}" for name, said in stores.items() if name in needed and said != _FINE]
        if wrong:
            raise Problem("store-unavailable", "; ".join(wrong), headers={"Retry-After": "1"}, more=found)
        unready = [f"lane {one['lane']} is {one['state']}" for one in lanes if one["state"] != "ready"]
        if unready and "read" in self._serves:
            raise Problem("board-not-ready", "; ".join(unready), headers={"Retry-After": "2"}, more=found)
        return json_reply({"status": "ready", **found})

    async def _look(self) -> dict[str, Any]:
        redis, dynamodb, lanes = await asyncio.gather(
            self._judge(self._check_redis), self._judge(self._check_scorebook), self._report_lanes()
        )
        stores = {"redis": redis, "kafka": self._log.trouble or _FINE, "dynamodb": dynamodb}
        return {"stores": stores, "lanes": lanes}

    async def _judge(self, check: Callable[[], None]) -> str:
        try:
            await self._threads.run(_WITHIN_S, check)
        except StandingsError as error:
            return str(error)
        return _FINE

    def _check_redis(self) -> None:
        policy = self._lanes.eviction_policy()
        if policy not in ("noeviction", ""):
            raise StoreUnavailable(f"maxmemory-policy is {policy}, which loses entries in silence: set noeviction")

    def _check_scorebook(self) -> None:
        self._scorebook.check()
        if not self._registry.was_read:
            raise StoreUnavailable("the definitions of leaderboards were not read yet")
        if self._registry.topology is None:
            raise StoreUnavailable("there is no topology: run `standings init`")

    async def _report_lanes(self) -> list[dict[str, Any]]:
        topology = self._registry.topology
        lanes = range(0 if topology is None else topology.lanes)
        found = await asyncio.gather(*(self._reader.report(lane) for lane in lanes), return_exceptions=True)
        return [_show(lane, report) for lane, report in zip(lanes, found, strict=True)]


class Exposition:
    """GET /metrics."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def show(self, call: Call) -> Reply:
        """All counts of this process in Prometheus' text format."""
        del call
        headers = [(b"content-type", self._metrics.content_type.encode("ascii")), UNSTORED]
        return Reply(200, self._metrics.render(), headers)


def _show(lane: int, report: LaneReport | BaseException) -> dict[str, Any]:
    if isinstance(report, LaneReport):
        return {
            "lane": lane,
            "state": report.state,
            "as_of": format_time_or_none(report.as_of),
            "progress": report.progress,
        }
    if isinstance(report, StoreUnavailable):
        return {"lane": lane, "state": "out of reach", "as_of": None, "progress": None}
    raise report
