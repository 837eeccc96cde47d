"""The steps of updaters: each is one atomic thing that a store does, and anything may happen between two of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.protocol.reference_lane import Entries, Lane, Off, prefilter, project_in_steps, score
from tests.protocol.world import FAULTS, Offsets, Scope, Updater, World, ids_of, lane_of

Steps = Iterator[tuple[str, World]]
NONE: Offsets = (-1, None)


class Model(NamedTuple):
    """A scope under the protocol, or under one that leaves rules out."""

    scope: Scope
    off: Off


def with_lane(world: World, number: int, lane: Lane) -> World:
    """The world with this lane."""
    return world._replace(lanes=(*world.lanes[:number], lane, *world.lanes[number + 1 :]))


def with_updater(world: World, old: Updater, new: Updater | None) -> World:
    """The world where an owner or a zombie has moved on; a zombie may be gone."""
    if old.zombie:
        left = list(world.zombies)
        left.remove(old)
        return world._replace(zombies=tuple(sorted([*left, *([new] if new else [])], key=repr)))
    assert new is not None
    return world._replace(updaters=tuple(new if one is old else one for one in world.updaters))


def left_of(world: World, fault: str) -> int:
    """How often this fault may still happen."""
    return world.budget[FAULTS.index(fault)]


def spend(world: World, fault: str) -> World:
    """The world in which it happened once more."""
    at = FAULTS.index(fault)
    return world._replace(budget=(*world.budget[:at], world.budget[at] - 1, *world.budget[at + 1 :]))


def committed_in(model: Model, world: World, log: int, partition: int) -> Offsets:
    """What the group of this log has committed."""
    return world.committed[0 if "group by log" in model.off else log][partition]


def start_of(model: Model, world: World, partition: int) -> int:
    """Where an owner begins: behind what was committed, else at the log's start."""
    offset = committed_in(model, world, world.log, partition)[0]
    if offset < 0 and "none is start" in model.off:
        return world.ends[partition]
    return offset if world.starts[partition] <= offset <= world.ends[partition] else world.starts[partition]


def join(model: Model, world: World, partition: int) -> Updater:
    """A new owner of a partition."""
    return Updater(partition, world.log, world.layout, start_of(model, world, partition))


def name_of(updater: Updater) -> str:
    """How the trace calls it."""
    return f"{'zombie' if updater.zombie else 'updater'} {updater.partition}"


def can_write_truth(updater: Updater) -> bool:
    """True in the midst of recording."""
    return updater.at in ("prefilter", "write", "receipts")


STAGES = ("prefilter", "write", "receipts", "reread", "project", "commit")
STAGES_OFF = {
    "receipts last": ("prefilter", "receipts", "write", "reread", "project", "commit"),
    "commit last": ("prefilter", "write", "commit", "receipts", "reread", "project"),
    "record first": ("prefilter", "project", "write", "receipts", "reread", "commit"),
}


def move_on(model: Model, updater: Updater) -> Updater:
    """The updater at its next stage with anything to do."""
    stages = next((STAGES_OFF[rule] for rule in STAGES_OFF if rule in model.off), STAGES)
    empty = {
        "prefilter": not model.scope.prefilter or not updater.todo,
        "write": not updater.todo,
        "receipts": not updater.names,
        "reread": not updater.repeats,
    }
    for stage in stages[stages.index(updater.at) + 1 if updater.at in stages else 0 :]:
        if not empty.get(stage, False):
            return updater._replace(at=stage, lane=0)
    position = updater.after if updater.seek < 0 else min(updater.seek, updater.after)
    return Updater(updater.partition, updater.log, updater.layout, position, zombie=updater.zombie)


def updater_steps(model: Model, world: World, updater: Updater, *, fair: bool = False) -> Steps:
    """What an updater may do next; `fair`: without faults."""
    if updater.at == "idle":
        yield from _idle(model, world, updater, fair=fair)
    elif updater.at == "prefilter":
        yield _prefilter(model, world, updater)
    elif updater.at == "write":
        yield _write(model, world, updater)
    elif updater.at == "receipts":
        name, *names = updater.names
        then = updater._replace(names=tuple(names))
        then = then if names else move_on(model, then)
        written = world._replace(receipts=world.receipts | {name})
        yield f"{name_of(updater)} writes the receipt of {name}", with_updater(written, updater, then)
    elif updater.at == "reread":
        row, *rows = updater.repeats
        then = updater._replace(repeats=tuple(rows), images=(*updater.images, (row, world.truth[row])))
        then = then if rows else move_on(model, then)
        yield f"{name_of(updater)} reads row {row} of a repeat", with_updater(world, updater, then)
    elif updater.at == "project":
        yield from _project(model, world, updater, fair=fair)
    else:
        yield from _commit(model, world, updater, fair=fair)


def _idle(model: Model, world: World, updater: Updater, *, fair: bool) -> Steps:
    who, at = name_of(updater), updater.partition
    if updater.log != world.log:
        joined = join(model, world, at)
        yield f"{who} joins the group of log {world.log} at {joined.position}", with_updater(world, updater, joined)
        return
    if updater.layout != world.layout:
        yield f"{who} reads the layout", with_updater(world, updater, updater._replace(layout=world.layout))
        if fair:
            return
    if updater.position < world.starts[at]:
        then = updater._replace(position=world.starts[at])
        yield f"{who} goes on at the log's start", with_updater(world, updater, then)
        return
    left = world.ends[at] - updater.position
    for count in range(1, min(left, model.scope.batch) + 1):
        yield _fetch(model, world, updater, count)
    if "heartbeat" not in model.off:
        yield from _heartbeat(model, world, updater)


def _fetch(model: Model, world: World, updater: Updater, count: int) -> tuple[str, World]:
    first, after = updater.position, updater.position + count
    events = model.scope.logs[updater.log][updater.partition][first:after]
    best: dict[int, int] = {}
    names, repeats = [], []
    for event in events:
        if event.name in world.receipts or event.name in names:
            repeats.append(event.row)
        else:
            names.append(event.name)
            best[event.row] = max(best.get(event.row, 0), event.value)
    as_of = world.accepted.index((updater.log, updater.partition, after - 1))
    then = updater._replace(
        at="fetched", first=first, after=after, as_of=as_of, partitions=len(world.ends),
        todo=tuple(sorted(best.items())), names=tuple(names),
        repeats=() if "repeats from row" in model.off else tuple(sorted(set(repeats))),
    )  # fmt: skip
    label = f"{name_of(updater)} fetches [{first}, {after}): {events}"
    return label, with_updater(world, updater, move_on(model, then))


def _heartbeat(model: Model, world: World, updater: Updater) -> Steps:
    """project(position, position), a lane at a time; as_of only where it is at the end of the log."""
    at, position = updater.partition, updater.position
    is_at_end = position == world.ends[at] or "as_of on evidence" in model.off
    as_of = len(world.accepted) if is_at_end else None
    for number in range(updater.layout):
        told = 0 if "partitions told" in model.off else len(world.ends)
        ids, nothing_new = ids_of(updater.log, updater.layout), [(at, position, position, as_of)]
        answer, lanes = project_in_steps(world.lanes[number], ids, told, nothing_new, (), 0, model.off)
        then = updater
        if answer[0] == "BEHIND" and "behind" not in model.off and int(answer[2]) >= world.starts[at]:
            then = updater._replace(position=int(answer[2]))
        if then is not updater or lanes[-1] != world.lanes[number]:
            label = f"{name_of(updater)} shows lane {number} [{position}, {position}) as_of {as_of}: {answer}"
            yield label, with_updater(with_lane(world, number, lanes[-1]), updater, then)


def _prefilter(model: Model, world: World, updater: Updater) -> tuple[str, World]:
    kept, images = [], list(updater.images)
    written = world.written
    for row, value in updater.todo:
        board, player = model.scope.rows[row]
        lane = world.lanes[lane_of(board, updater.layout)]
        answer = prefilter(lane, ids_of(updater.log, updater.layout), [(board, [player])], model.off)
        seen = answer[1] if answer[0] == "READY" else ""
        if "prefilter ids" in model.off:
            seen = score(lane, board, player) or 0
        if seen == "" or int(seen) <= value:
            kept.append((row, value))
            continue
        written |= _names(model, updater, row)
        if "dropped stay entries" not in model.off:
            images.append((row, value))
    then = updater._replace(todo=tuple(kept), images=tuple(images))
    label = f"{name_of(updater)} asks the view, and keeps {kept}"
    return label, with_updater(world._replace(written=written), updater, move_on(model, then))


def _write(model: Model, world: World, updater: Updater) -> tuple[str, World]:
    (row, value), *todo = updater.todo
    truth = max(world.truth[row], value)
    then = updater._replace(todo=tuple(todo), images=(*updater.images, (row, truth)))
    then = then if todo else move_on(model, then)
    written = world._replace(
        truth=(*world.truth[:row], truth, *world.truth[row + 1 :]), written=world.written | _names(model, updater, row)
    )
    return f"{name_of(updater)} writes row {row}: {value}, it is {truth}", with_updater(written, updater, then)


def _names(model: Model, updater: Updater, row: int) -> set[str]:
    events = model.scope.logs[updater.log][updater.partition][updater.first : updater.after]
    return {event.name for event in events if event.row == row}


def entries_of(model: Model, updater: Updater, number: int) -> Entries:
    """The images that belong into a lane, by board."""
    images = updater.images + (updater.todo if "record first" in model.off else ())
    boards: dict[str, dict[str, int]] = {}
    for row, value in images:
        board, player = model.scope.rows[row]
        if lane_of(board, updater.layout) == number:
            players = boards.setdefault(board, {})
            players[player] = max(players.get(player, 0), value)
    return tuple((board, None, tuple(sorted(players.items()))) for board, players in sorted(boards.items()))


def _project(model: Model, world: World, updater: Updater, *, fair: bool) -> Steps:
    number, at = updater.lane, updater.partition
    entries = entries_of(model, updater, number)
    whole = [(at, updater.first, updater.after, updater.as_of)]
    if not entries and "every lane" in model.off:
        whole = []
    ids, told = ids_of(updater.log, updater.layout), 0 if "partitions told" in model.off else updater.partitions
    answer, lanes = project_in_steps(world.lanes[number], ids, told, whole, entries, 0, model.off)
    unheard = updater._replace(lane=number + 1)
    heard = unheard
    if answer[0] == "BEHIND" and "behind" not in model.off and int(answer[2]) >= world.starts[at]:
        heard = heard._replace(seek=int(answer[2]) if heard.seek < 0 else min(heard.seek, int(answer[2])))
    if unheard.lane == updater.layout:
        unheard, heard = move_on(model, unheard), move_on(model, heard)
    label = f"{name_of(updater)} projects [{updater.first}, {updater.after}) {entries} into lane {number}"
    yield f"{label}: {answer}", with_updater(with_lane(world, number, lanes[-1]), updater, heard)
    if fair:
        return
    if left_of(world, "timeout"):
        late = spend(world, "timeout")
        yield f"{label}: time-out, not executed", with_updater(late, updater, unheard)
        if lanes[-1] != world.lanes[number]:
            yield f"{label}: time-out, executed", with_updater(with_lane(late, number, lanes[-1]), updater, unheard)
    if left_of(world, "abort"):
        for lane in lanes[1:-1]:
            dead = with_lane(spend(world, "abort"), number, lane)
            yield f"{label}: dies half way", with_updater(dead, updater, unheard)


def _commit(model: Model, world: World, updater: Updater, *, fair: bool) -> Steps:
    log, at = (0 if "group by log" in model.off else updater.log), updater.partition
    known = world.committed[log][at]
    new = (updater.after, updater.as_of)
    if known[0] >= updater.after and not updater.zombie and "group by log" not in model.off:
        new = known  # a replay never commits backwards
    partitions = (*world.committed[log][:at], new, *world.committed[log][at + 1 :])
    done = world._replace(committed=(*world.committed[:log], partitions, *world.committed[log + 1 :]))
    then = None if updater.zombie else move_on(model, updater)
    yield f"{name_of(updater)} commits {new[0]}", with_updater(done, updater, then)
    if updater.zombie and not fair:
        yield f"{name_of(updater)} is refused its commit", with_updater(world, updater, None)


def updater_faults(model: Model, world: World) -> Steps:
    """Crashes and rebalances."""
    for updater in world.updaters:
        joined = join(model, world, updater.partition)
        if left_of(world, "crash") and updater != joined:
            yield f"updater {updater.partition} crashes", with_updater(spend(world, "crash"), updater, joined)
        if left_of(world, "zombie") and updater.at != "idle":
            haunted = spend(world, "zombie")
            haunted = haunted._replace(
                zombies=tuple(sorted([*haunted.zombies, updater._replace(zombie=True)], key=repr))
            )
            owners = tuple(joined if one is updater else one for one in world.updaters)
            yield f"updater {updater.partition} is a zombie now", haunted._replace(updaters=owners)
    for updater in world.zombies:
        yield f"zombie {updater.partition} dies", with_updater(world, updater, None)


def is_drained(world: World) -> bool:
    """True where no batch of an older log can write truth any more."""
    return not any(can_write_truth(one) and one.log != world.log for one in (*world.updaters, *world.zombies))
