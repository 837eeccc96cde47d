"""init and apply: the tables, topics and layout of a deployment, and its leaderboards."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from schemas.errors import InvalidDefinition, StandingsError, StoreUnavailable
from schemas.events import faults_of
from schemas.ids import check_leaderboard_id
from schemas.leaderboards import Definition, Leaderboard, define, refused_changes
from schemas.settings import Settings
from stores.catalogue import Catalogue
from stores.clock import now_ms
from stores.connections import connect_redis
from stores.dynamodb import Dynamo, connect_dynamodb
from stores.kafka_admin import KafkaLogAdmin
from stores.lanes import Lanes
from stores.log import LogAdmin, LogDescription
from stores.registry import SEEN_WITHIN_S

DEFAULT_LANES = 4
DEFAULT_PARTITIONS = 8
_MOST_FILE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Planned:
    """What applying a file would do to one leaderboard: create, change or keep it."""

    action: str
    leaderboard: Leaderboard
    notes: tuple[str, ...] = ()


@contextmanager
def open_catalogue(settings: Settings) -> Iterator[Catalogue]:
    """The catalogue of a deployment, closed at the end."""
    dynamo = Dynamo(connect_dynamodb(settings))
    try:
        yield Catalogue(dynamo, settings.names, time.sleep)
    finally:
        dynamo.close()


def init(
    settings: Settings,
    lanes: int | None,
    partitions: int | None,
    replication: int,
    first_partitions: int = DEFAULT_PARTITIONS,
    *,
    new_truth: bool = False,
) -> list[str]:
    """Create what is absent: tables, layout, topics, partitions. Safe to repeat; what there is, a line each.

    `lanes`: None leaves a layout as it is; another number moves every board, and the keeper rebuilds all lanes.
    `partitions`: how many there shall be at least; None leaves a topic as it is, and makes a new one with
    `first_partitions`. `replication` -1 is the brokers' default. `new_truth`: the tables were restored to an
    earlier point: the log is replayed from its start, under a new truth id. Stop the updaters first.
    """
    admin = KafkaLogAdmin(settings)
    try:
        with open_catalogue(settings) as catalogue:
            catalogue.create_tables()
            topology = catalogue.read_topology()
            log = _create_topic(settings, admin, partitions, replication, first_partitions)
            if topology is None:
                topology = catalogue.create_topology(lanes or DEFAULT_LANES)
            if new_truth:
                # Offsets first: a truth that is new while the old offsets stand would miss what lies before them.
                admin.rewind_group(log.log_id, admin.log_starts(log.partitions))
            if new_truth or (lanes is not None and lanes != topology.lanes):
                topology = catalogue.change_topology(topology, lanes or topology.lanes, new_truth=new_truth)
        if partitions is not None and partitions > log.partitions:
            _add_partitions(settings, admin, topology.lanes, partitions)
    finally:
        admin.close()
    return [
        f"tables are there; {topology.lanes} lanes, mapping {topology.mapping}, truth {topology.truth_id}",
        f"topic {settings.names.events}: id {log.log_id}, {max(partitions or 0, log.partitions)} partitions",
    ]


def _create_topic(
    settings: Settings, admin: LogAdmin, partitions: int | None, replication: int, first_partitions: int
) -> LogDescription:
    """The topic of events, made where it is absent (with that of dead letters)."""
    log = admin.describe()
    if log is None:
        admin.create_topics(partitions or first_partitions, replication)
        log = admin.describe()
    if log is None:
        raise StoreUnavailable(
            f"Kafka does not show the topic {settings.names.events} that was just made: run this again"
        )
    if partitions is not None and partitions < log.partitions:
        raise StandingsError(f"the topic has {log.partitions} partitions: Kafka can't take any away")
    return log


def _add_partitions(settings: Settings, admin: LogAdmin, lanes: int, partitions: int) -> None:
    """The lanes first: a partition that a lane doesn't know of would be left out of its as_of.

    And once more afterwards, for lanes that were lost at first and are being rebuilt. Kafka is asked before anything:
    a lane that waits for a partition which never comes would not know up to when it is complete.
    """
    admin.add_partitions(partitions, only_ask=True)
    scripts = Lanes(connect_redis(settings), settings.names)
    _tell_lanes(scripts, lanes, partitions)
    admin.add_partitions(partitions)
    _tell_lanes(scripts, lanes, partitions)


def _tell_lanes(scripts: Lanes, lanes: int, partitions: int) -> None:
    for lane in range(lanes):
        meta = scripts.read_meta(lane)
        if meta.stored_state and not scripts.add_partitions(lane, meta.epoch, partitions):
            raise StandingsError(f"lane {lane} is being rebuilt: run this again")


def add_main(settings: Settings) -> None:
    """Create the leaderboard `main`, with all windows, where there is none."""
    with open_catalogue(settings) as catalogue:
        if "main" not in catalogue.read_leaderboards():
            definition = Definition(order="higher", min=0, max=2_097_151, windows=("all", "daily", "weekly", "monthly"))
            catalogue.write_leaderboards([define("main", definition, now_ms())])


def read_definitions(file: Path) -> dict[str, Definition]:
    """The definitions of a leaderboards.toml. Raises InvalidDefinition that lists every fault with its place."""
    try:
        with file.open("rb") as source:
            raw = source.read(_MOST_FILE_BYTES + 1)
        if len(raw) > _MOST_FILE_BYTES:
            raise InvalidDefinition(f"{file} has more than {_MOST_FILE_BYTES} bytes: split it")
        parsed = tomllib.loads(raw.decode("utf-8-sig"))
    except OSError as error:
        raise InvalidDefinition(f"{file} can't be read: {error.strerror}") from error
    # Beside tomllib's own errors: what Python says of numbers and depths without end.
    except (ValueError, RecursionError) as error:
        raise InvalidDefinition(f"{file} is not TOML: {error}") from error
    faults = [f"{name}: unknown; a file holds [leaderboards.NAME] tables" for name in parsed if name != "leaderboards"]
    tables: Any = parsed.get("leaderboards", {})
    if not isinstance(tables, dict) or not tables:
        faults.append("there is no [leaderboards.NAME] table in it")
        tables = {}
    found = {}
    for name, fields in tables.items():
        try:
            found[check_leaderboard_id(name)] = Definition.model_validate(fields)
        except ValidationError as error:
            faults += [
                f"leaderboards.{name}{fault.place.replace('/', '.')}: {fault.detail}" for fault in faults_of(error)
            ]
        except ValueError as error:
            faults.append(f"leaderboards.{name}: {error}")
    if faults:
        raise InvalidDefinition(f"{file}: " + "; ".join(faults))
    return found


def plan(definitions: Mapping[str, Definition], existing: Mapping[str, Leaderboard], now_at: int) -> list[Planned]:
    """What applying these would do, leaderboard by leaderboard. Raises InvalidDefinition for what can't change."""
    planned, faults = [], []
    for name, definition in definitions.items():
        notes = ("its end is in the past: only earlier results are taken",) if definition.end_at <= now_at else ()
        before = existing.get(name)
        if before is None:
            planned.append(Planned("create", define(name, definition, now_at), notes))
        elif before.definition == definition:
            planned.append(Planned("keep", before, notes))
        elif refused := refused_changes(before.definition, definition):
            faults.append(
                f"{name}: {', '.join(refused)} can't change once results may be there; use another leaderboard"
            )
        else:
            fields = [field for field in Definition.model_fields if _differs(field, before.definition, definition)]
            planned.append(Planned("change", define(name, definition, now_at, before), (", ".join(fields), *notes)))
    if faults:
        raise InvalidDefinition("; ".join(faults))
    return planned


def _differs(field: str, before: Definition, after: Definition) -> bool:
    return bool(getattr(before, field) != getattr(after, field))


def apply(settings: Settings, definitions: Mapping[str, Definition], *, dry_run: bool) -> Sequence[Planned]:
    """Create or update these leaderboards, all or none; returns once every role has reread them."""
    with open_catalogue(settings) as catalogue:
        planned = plan(definitions, catalogue.read_leaderboards(), now_ms())
        changed = [one.leaderboard for one in planned if one.action != "keep"]
        if changed and not dry_run:
            catalogue.write_leaderboards(changed)
            time.sleep(SEEN_WITHIN_S)
    return planned
