"""What must hold in every state, and once all is quiet."""

from __future__ import annotations

from typing import NamedTuple

from tests.protocol.reference_lane import MARK, Lane, Meta, Off, find, is_kept, meta_of, score
from tests.protocol.world import TRUTH, Event, Scope, World, ids_of, lane_of


class Place(NamedTuple):
    """A lane as seen under a layout. `shows_torn`: torn boards are served too."""

    number: int
    lane: Lane
    layout: int
    shows_torn: bool = False


def fault_in(world: World, scope: Scope, off: Off) -> str:
    """What is wrong in this state, '' for nothing."""
    return (
        _view_above_truth(world, scope)
        or _hole_below_applied(world, scope, off)
        or _wrong_read(world, scope, off)
        or _skipped(world, scope)
    )


def _view_above_truth(world: World, scope: Scope) -> str:
    for number, lane in enumerate(world.lanes):
        if lane.meta is not None and lane.meta.truth_id != TRUTH:
            continue
        for row, (board, player) in enumerate(scope.rows):
            seen = score(lane, board, player) or 0
            if seen > world.truth[row] and (row, seen) != scope.foreign:
                return f"I1: lane {number} shows {player}={seen} on {board}, the truth has {world.truth[row]}"
    return ""


def _serves(lane: Lane, off: Off) -> bool:
    meta = lane.meta
    return meta is not None and meta.state == "ready" and is_kept(lane, off) and meta.truth_id == TRUTH


def _hole_below_applied(world: World, scope: Scope, off: Off) -> str:
    for number, lane in enumerate(world.lanes):
        if not _serves(lane, off):
            continue
        meta = meta_of(lane)
        log, layout = int(meta.log_id[3:]), int(meta.topology.split()[0])
        for partition, applied in lane.applied:
            for offset in range(applied):
                event = scope.logs[log][partition][offset]
                if _lacks(world, scope, Place(number, lane, layout), log, event):
                    return f"I3: lane {number} has applied {partition}:{offset} and lacks {event}"
    return ""


def _wrong_read(world: World, scope: Scope, off: Off) -> str:
    """A reader may know any layout that there was. It compares truth and topology, and reads as_of with the board."""
    for layout in scope.layouts:
        for number, lane in enumerate(world.lanes[:layout]):
            if not _serves(lane, off):
                continue
            meta = meta_of(lane)
            if meta.as_of is None or (meta.topology != f"{layout} lanes" and "read topology" not in off):
                continue
            place = Place(number, lane, layout, "torn not served" in off)
            for log, partition, offset in world.accepted[: meta.as_of]:
                event = scope.logs[log][partition][offset]
                if _lacks(world, scope, place, log, event):
                    return f"read: lane {number} says as_of={meta.as_of}, lacks {event} of {log}:{partition}:{offset}"
    return ""


def _lacks(world: World, scope: Scope, place: Place, log: int, event: Event) -> bool:
    """True where the event belongs into the lane, and a reader of its board would miss it."""
    lane, (board, player) = place.lane, scope.rows[event.row]
    if lane_of(board, place.layout) != place.number:
        return False
    if log != world.log and event.name not in world.written:
        return False  # lost with its log
    refused = find(lane.torn, board) is not None and not place.shows_torn
    refused = refused or (board in lane.boards and find(lane.zsets, board) is None)
    return not refused and (score(lane, board, player) or 0) < event.value


def _skipped(world: World, scope: Scope) -> str:
    for log, partitions in enumerate(world.committed[: world.log + 1]):
        for partition, (offset, _) in enumerate(partitions):
            for event in scope.logs[log][partition][: max(offset, 0)]:
                if event.name not in world.receipts or world.truth[event.row] < event.value:
                    return f"lost: {offset} is committed in {log}:{partition}, and {event} is not recorded"
    return ""


def fault_at_end(world: World, scope: Scope) -> str:
    """What is wrong once nothing fails any more and every process has run to its end."""
    for partition, end in enumerate(world.ends):
        for event in scope.logs[world.log][partition][:end]:
            if event.name not in world.receipts or world.truth[event.row] < event.value:
                return f"end: {event} was accepted and is not recorded"
    for number, lane in enumerate(world.lanes):
        wrong = _unhealed(world, scope, number) if number < world.layout else lane != Lane() and "still there"
        if wrong:
            return f"end: lane {number} of {world.layout}: {wrong}"
    return ""


def _unhealed(world: World, scope: Scope, number: int) -> str:
    lane = world.lanes[number]
    meta: Meta | None = lane.meta
    if meta is None or meta.state != "ready" or not is_kept(lane) or lane.torn or lane.expelled:
        return f"{meta}, torn {lane.torn}, notes {set(lane.expelled)}"
    if (meta.log_id, meta.truth_id, meta.topology) != ids_of(world.log, world.layout):
        return f"it is of {meta.log_id}, {meta.truth_id}, {meta.topology}"
    for row, (board, player) in enumerate(scope.rows):
        if lane_of(board, world.layout) == number and (score(lane, board, player) or 0) != world.truth[row]:
            return f"{player} on {board} is {score(lane, board, player)}, the truth has {world.truth[row]}"
    if any(find(entries, MARK) is not None for _, (entries, _) in lane.zsets):
        return f"a mark is left: {lane.zsets}"
    return f"as_of={meta.as_of} of {len(world.accepted)}" if meta.as_of != len(world.accepted) else ""
