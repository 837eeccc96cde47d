"""The recovery protocol, searched: every interleaving of its steps with every fault that a scope allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol.checks import fault_at_end, fault_in
from tests.protocol.cures import begin_cures, cure_steps
from tests.protocol.reference_lane import ALL_RULES, Lane, Meta, Off, drop
from tests.protocol.updaters import (
    NONE,
    Model,
    Steps,
    committed_in,
    join,
    left_of,
    spend,
    updater_faults,
    updater_steps,
    with_lane,
)
from tests.protocol.world import FAULTS, Scope, World, ids_of

_MOST_FAIR_STEPS = 300


class Found(NamedTuple):
    """What a search found. `trace`: the steps to a state where something is wrong, and what is; empty: nothing is."""

    states: int
    trace: tuple[str, ...]
    exhausted: bool

    def __str__(self) -> str:
        return "\n".join([f"{self.states} states", *self.trace])


def search(scope: Scope, off: Off = ALL_RULES, *, to_end: bool = True, limit: int = 1_000_000) -> Found:
    """Walk breadth first, so that a counterexample is a shortest one.

    `to_end`: from every state also run to a quiet end. `limit`: give up after so many states.
    """
    model = Model(scope, off)
    first = first_world(model)
    origin: dict[World, tuple[World | None, str]] = {first: (None, "")}
    healed: set[World] = set()
    waiting = deque([first])
    while waiting:
        world = waiting.popleft()
        wrong = fault_in(world, scope, off)
        if wrong:
            return Found(len(origin), (*_trace(origin, world), wrong), exhausted=False)
        ending = _run_to_end(model, world, healed) if to_end else ()
        if ending:
            return Found(len(origin), (*_trace(origin, world), *ending), exhausted=False)
        for label, after in steps(model, world):
            if after not in origin:
                origin[after] = (world, label)
                waiting.append(after)
        if len(origin) > limit:
            return Found(len(origin), (), exhausted=False)
    return Found(len(origin), (), exhausted=True)


def first_world(model: Model) -> World:
    """Nothing was accepted yet; the lanes are READY for it, or lost, or of another truth."""
    scope = model.scope
    partitions = scope.partitions or len(scope.logs[0])
    lanes = []
    for number in range(max(scope.layouts)):
        ready = number < scope.layouts[0] and not scope.lost_at_first
        lanes.append(_ready_lane(scope, partitions, number) if ready else Lane())
    logs = 1 if "group by log" in model.off else len(scope.logs)
    world = World(
        log=0, ends=(0,) * partitions, starts=(0,) * partitions, accepted=(), truth=(0,) * len(scope.rows),
        written=frozenset(), receipts=frozenset(), committed=((NONE,) * len(scope.logs[0]),) * logs, lanes=tuple(lanes),
        kept=((),) * len(lanes), updaters=(), zombies=(), cures=(), layout=scope.layouts[0], fresh=2,
        budget=tuple(scope.budget.get(fault, 0) for fault in FAULTS),
    )  # fmt: skip
    return world._replace(updaters=tuple(join(model, world, at) for at in range(partitions)))


def _ready_lane(scope: Scope, partitions: int, number: int) -> Lane:
    log_id, truth_id, topology = ids_of(0, scope.layouts[0])
    meta = Meta("ready", "e1", log_id, "another truth" if scope.foreign_truth else truth_id, topology, partitions)
    lane = Lane(meta, applied=tuple((at, 0) for at in range(partitions)))
    if scope.foreign is None or number != 0:
        return lane
    board, player = scope.rows[scope.foreign[0]]
    zsets = ((board, (((player, scope.foreign[1]),), None)),)
    return lane._replace(meta=meta._replace(boards=1), boards=frozenset({board}), zsets=zsets)


def steps(model: Model, world: World) -> Steps:
    """Everything that may happen next."""
    yield from _accept(model, world)
    for updater in (*world.updaters, *dict.fromkeys(world.zombies)):
        yield from updater_steps(model, world, updater)
    yield from updater_faults(model, world)
    for cure in world.cures:
        yield from cure_steps(model, world, cure)
    yield from begin_cures(model, world)
    for number in range(len(world.lanes)):
        yield from _lane_faults(model, world, number)
    yield from _log_faults(model, world)


def _accept(model: Model, world: World) -> Steps:
    for partition, end in enumerate(world.ends):
        events = model.scope.logs[world.log][partition]
        if end < len(events):
            ends = (*world.ends[:partition], end + 1, *world.ends[partition + 1 :])
            accepted = (*world.accepted, (world.log, partition, end))
            yield f"{events[end]} is accepted in {partition}", world._replace(ends=ends, accepted=accepted)


def _lane_faults(model: Model, world: World, number: int) -> Steps:
    lane = world.lanes[number]
    yield from _rollbacks(model, world, number)
    if lane.meta is None:
        return
    if left_of(world, "loss"):
        yield f"lane {number} is lost", with_lane(spend(world, "loss"), number, Lane())
    if left_of(world, "delete"):
        for label, less in _deletions(lane):
            yield f"somebody deletes {label} of lane {number}", with_lane(spend(world, "delete"), number, less)


def _rollbacks(model: Model, world: World, number: int) -> Steps:
    """A lane is remembered at any moment, and later put back: so comes any earlier state, of a discarded branch too."""
    lane, kept = world.lanes[number], world.kept[number]
    if left_of(world, "keep") and lane not in kept:
        remembered = (*world.kept[:number], (*kept, lane), *world.kept[number + 1 :])
        yield f"lane {number} is saved", spend(world, "keep")._replace(kept=remembered)
    if not left_of(world, "rollback"):
        return
    for old in kept:
        if old == lane:
            continue
        back = old
        if "as_of in lane" in model.off and old.meta and lane.meta:
            back = old._replace(meta=old.meta._replace(as_of=lane.meta.as_of))
        label = f"lane {number} is rolled back to {old.meta and old.meta[:2]} {old.applied} {old.zsets}"
        yield label, with_lane(spend(world, "rollback"), number, back)


def _deletions(lane: Lane) -> Iterator[tuple[str, Lane]]:
    for board, _ in lane.zsets:
        yield board, lane._replace(zsets=drop(lane.zsets, board))
    yield "meta", lane._replace(meta=None)
    if lane.applied:
        yield "applied", lane._replace(applied=())
    if lane.as_of:
        yield "as_of", lane._replace(as_of=())
    if lane.boards:
        yield "boards", lane._replace(boards=frozenset())
    if lane.torn:
        yield "torn", lane._replace(torn=())


def _log_faults(model: Model, world: World) -> Steps:
    scope = model.scope
    if left_of(world, "retention"):
        for partition, start in enumerate(world.starts):
            if start < min(committed_in(model, world, world.log, partition)[0], world.ends[partition]):
                starts = (*world.starts[:partition], start + 1, *world.starts[partition + 1 :])
                yield f"the log drops {start} of {partition}", spend(world, "retention")._replace(starts=starts)
    if left_of(world, "new log") and world.log + 1 < len(scope.logs):
        empty = (0,) * len(world.ends)
        yield "the log is made anew", spend(world, "new log")._replace(log=world.log + 1, ends=empty, starts=empty)
    after = scope.layouts.index(world.layout) + 1
    if left_of(world, "new layout") and after < len(scope.layouts):
        yield (
            f"{scope.layouts[after]} lanes from now on",
            spend(world, "new layout")._replace(layout=scope.layouts[after]),
        )


def next_fair(model: Model, world: World) -> tuple[str, World] | None:
    """What happens next where nothing fails and nothing more is accepted; None at the end of all."""
    for updater in (*world.updaters, *world.zombies):
        if updater.at != "idle":
            return next(updater_steps(model, world, updater, fair=True))
    for cure in world.cures:
        return next(cure_steps(model, world, cure, fair=True))
    for step in begin_cures(model, world, fair=True):
        return step
    for updater in world.updaters:
        for step in updater_steps(model, world, updater, fair=True):
            return step
    return None


def _run_to_end(model: Model, world: World, healed: set[World]) -> tuple[str, ...]:
    """Run fairly to the end: what was wrong on the way or there, with the way; all that went well is remembered."""
    path = [world]
    labels = ["-- from here on nothing fails:"]
    while path[-1] not in healed:
        step = next_fair(model, path[-1])
        if step is None:
            wrong = fault_at_end(path[-1], model.scope)
            if wrong:
                return (*labels, wrong)
            break
        labels.append(step[0])
        path.append(step[1])
        if len(path) > _MOST_FAIR_STEPS:
            return (*labels[:1], *labels[-40:], "end: it goes round for ever")
    healed.update(path)
    return ()


def _trace(origin: dict[World, tuple[World | None, str]], world: World) -> list[str]:
    labels: list[str] = []
    at: World | None = world
    while at is not None:
        at, label = origin[at]
        labels.append(label)
    return labels[-2::-1]
