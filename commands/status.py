"""status: stores, lanes, lag and versions of a deployment, as far as they can be reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from commands.administer import open_catalogue
from schemas.errors import StandingsError, StoreUnavailable
from schemas.rows import Topology
from schemas.settings import Settings
from schemas.times import format_time_or_none
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.dynamodb import Dynamo, connect_dynamodb
from stores.kafka_admin import KafkaLogAdmin, count_lag
from stores.lanes import LaneMeta, Lanes, LaneState, topology_ids
from stores.log import LogDescription
from stores.scorebook import Scorebook

# An idle updater moves as_of every second: where it is older, there is none, or it has much to catch up with.
_LATE_MS = 60_000
_PACKAGES = ("standings", "redis", "boto3", "kafka-python", "granian", "pydantic")


@dataclass(frozen=True, slots=True)
class Part:
    """A store or a lane: whether it is well, and what there is to say."""

    part: str
    ok: bool
    state: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Status:
    """Everything that `standings status` shows."""

    parts: list[Part]
    versions: dict[str, str]

    @property
    def ok(self) -> bool:
        """True where every part is well."""
        return all(part.ok for part in self.parts)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {"ok": self.ok, "parts": [asdict(part) for part in self.parts], "versions": self.versions}


def read_status(settings: Settings) -> Status:
    """Ask every store; what can't be reached is a part that is not well, not an error."""
    parts: list[Part] = []
    admin = KafkaLogAdmin(settings)
    dynamo = Dynamo(connect_dynamodb(settings))
    try:
        parts.append(_ask("scorebook", lambda: _scorebook(Scorebook(dynamo, settings.names))))
        log: LogDescription | None = None
        try:
            log = admin.describe()
        except StoreUnavailable as error:
            parts.append(Part("log", False, "unreachable", str(error)))
        else:
            parts.append(_ask("log", lambda: _log(admin, log)))
        parts += _lanes(settings, log)
    finally:
        dynamo.close()
        admin.close()
    return Status(parts, _versions())


def _ask(part: str, look: Callable[[], Part]) -> Part:
    try:
        return look()
    except StandingsError as error:
        return Part(part, False, "unreachable", str(error))


def _scorebook(scorebook: Scorebook) -> Part:
    scorebook.check()
    return Part("scorebook", True, "ready")


def _log(admin: KafkaLogAdmin, log: LogDescription | None) -> Part:
    if log is None:
        return Part("log", False, "missing", "there is no topic: run `standings init`")
    lag = count_lag(admin, log)
    return Part("log", True, "ready", f"id {log.log_id}, {log.partitions} partitions, {lag} events not recorded yet")


def _lanes(settings: Settings, log: LogDescription | None) -> list[Part]:
    try:
        with open_catalogue(settings) as catalogue:
            topology = catalogue.read_topology()
    except StandingsError as error:
        return [Part("lanes", False, "unknown", str(error))]
    if topology is None:
        return [Part("lanes", False, "missing", "there is no layout: run `standings init`")]
    client = connect_redis(settings)
    lanes = Lanes(client, settings.names)
    try:
        return [
            _ask(name_lane(lane), lambda lane=lane: describe_lane(lane, lanes.read_meta(lane), topology, log, now_ms()))  # type: ignore[misc]
            for lane in range(topology.lanes)
        ]
    finally:
        client.close()


def name_lane(lane: int) -> str:
    """What the lane is called among the parts."""
    return f"lane {lane}"


def describe_lane(lane: int, meta: LaneMeta, topology: Topology, log: LogDescription | None, now_at: int) -> Part:
    """A lane is well where it is ready, of this log, truth and layout, and where an updater brings it on."""
    name = name_lane(lane)
    if meta.state is LaneState.REBUILDING:
        return Part(name, False, str(meta.state), f"{meta.progress or 0} rows so far")
    detail = f"{len(meta.boards)} boards, as of {format_time_or_none(meta.as_of) or 'unknown'}"
    if meta.state is not LaneState.READY:
        return Part(name, False, str(meta.state), detail)
    if meta.ids != topology_ids(meta.ids.log_id if log is None else log.log_id, topology):
        return Part(name, False, "foreign", detail)
    if meta.as_of is None:
        return Part(name, False, "unconfirmed", f"{detail}: an updater has still to confirm that it is complete")
    if meta.as_of < now_at - _LATE_MS:
        return Part(name, False, "late", f"{detail}: the updaters are away, or far behind")
    return Part(name, True, str(meta.state), detail)


def _versions() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
