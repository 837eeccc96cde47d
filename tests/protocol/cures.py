"""The steps of the keeper and of operators: rebuilds, mendings, expulsions, more partitions."""

from __future__ import annotations

from tests.protocol import reference_lane as scripts
from tests.protocol.reference_lane import Answer, Entries, Lane, find, is_kept, score
from tests.protocol.updaters import Model, Steps, committed_in, is_drained, join, left_of, spend, with_lane
from tests.protocol.world import Cure, Offsets, World, ids_of, is_whole, lane_of


def with_cure(world: World, old: Cure | None, new: Cure | None) -> World:
    """The world where a cure has begun, moved on, or ended."""
    cures = [one for one in world.cures if one is not old]
    return world._replace(cures=tuple(sorted([*cures, *([new] if new else [])])))


def why_rebuild(model: Model, world: World, number: int) -> str:
    """Why the keeper would rebuild a lane; '' where it wouldn't."""
    lane = world.lanes[number]
    meta = lane.meta
    if meta is None or meta.state != "ready" or not is_kept(lane, model.off):
        return "lost"
    if (meta.log_id, meta.truth_id, meta.topology) != ids_of(world.log, world.layout):
        return "other ids"
    if meta.partitions < len(world.ends):
        return "partitions"
    behind = any((find(lane.applied, at) or 0) < start for at, start in enumerate(world.starts))
    if behind and "behind start" not in model.off:
        return "behind the log's start"
    return ""


def begin_cures(model: Model, world: World, *, fair: bool = False) -> Steps:
    """Cures that may begin now; those that nobody needs are left out."""
    if len(world.cures) >= model.scope.cures:
        return
    for number in range(world.layout):
        if why_rebuild(model, world, number):
            if (fair or left_of(world, "rebuild")) and (is_drained(world) or "wait for older log" in model.off):
                yield _begin_rebuild(model, world if fair else spend(world, "rebuild"), number)
            continue
        if fair or left_of(world, "mend"):
            yield from _begin_mending(model, world if fair else spend(world, "mend"), number)
        yield from _begin_expulsions(model, world, number, fair=fair)
    for number in range(world.layout, len(world.lanes)):
        meta = world.lanes[number].meta
        if meta is not None and fair:
            _, lane = scripts.retire(world.lanes[number], meta.epoch, _boards(model, world.lanes[number]))
            yield f"lane {number} is retired", with_lane(world, number, lane)
    if left_of(world, "grow") and not fair and not any(one.kind == "grow" for one in world.cures):
        cure = Cure("grow", 0, "tell")
        yield "an operator adds a partition", with_cure(spend(world, "grow"), None, cure)


def _begin_rebuild(model: Model, world: World, number: int) -> tuple[str, World]:
    meta = world.lanes[number].meta
    seen = ("", "") if meta is None else (meta.state, meta.epoch)
    epoch = f"e{world.fresh}" if "fresh epoch" not in model.off else f"e{int(seen[1][1:] or 0) + 1}"
    offsets = _starting_offsets(model, world, world.log) if "S first" not in model.off else ()
    cure = Cure("rebuild", number, "begin", epoch, world.log, world.layout, offsets, len(world.ends), seen)
    if "partitions after S" in model.off:
        cure = cure._replace(at="S", offsets=())
    label = f"a rebuild {epoch} of lane {number} ({why_rebuild(model, world, number)}) reads S={offsets}"
    return label, with_cure(world._replace(fresh=world.fresh + 1), None, cure)


def _starting_offsets(model: Model, world: World, log: int) -> tuple[Offsets, ...]:
    found = []
    for partition, start in enumerate(world.starts):
        known = committed_in(model, world, log, partition)
        if known[0] < 0 and "none is start" in model.off:
            known = (world.ends[partition], None)
        is_there = known[0] >= start or "S at least start" in model.off
        found.append((max(known[0], 0), known[1]) if is_there else (start, None))
    return tuple(found)


def _begin_mending(model: Model, world: World, number: int) -> Steps:
    lane = world.lanes[number]
    for board in _boards(model, lane):
        if lane_of(board, world.layout) == number and not is_whole(lane, board):
            token = f"t{world.fresh}" if "fresh token" not in model.off else "t"
            cure = Cure("mend", number, "tear", _epoch(lane), world.log, world.layout, board=board, token=token)
            label = f"the mending {token} of {board} begins"
            yield label, with_cure(world._replace(fresh=world.fresh + 1), None, cure)


def _begin_expulsions(model: Model, world: World, number: int, *, fair: bool) -> Steps:
    lane = world.lanes[number]
    for row, (board, player) in enumerate(model.scope.rows):
        if lane_of(board, world.layout) != number:
            continue
        seen = score(lane, board, player) or 0
        token = f"t{world.fresh}" if "fresh token" not in model.off else "t"
        cure = Cure("expel", number, "read", _epoch(lane), board=board, row=row, score=seen, token=token)
        if seen > world.truth[row] and (fair or left_of(world, "expel")):
            after = (world if fair else spend(world, "expel"))._replace(fresh=world.fresh + 1)
            yield f"an expulsion sees {player}={seen} on {board}", with_cure(after, None, cure)
        if (board, player) in lane.expelled and fair and "settle" not in model.off:
            yield f"the keeper finds the note of {player}", with_cure(world, None, cure._replace(at="reread", token=""))


def _boards(model: Model, lane: Lane) -> list[str]:
    return sorted({board for board, _ in model.scope.rows} | lane.boards)


def _epoch(lane: Lane) -> str:
    return "" if lane.meta is None else lane.meta.epoch


def cure_steps(model: Model, world: World, cure: Cure, *, fair: bool = False) -> Steps:
    """What a cure does next; `fair`: without faults."""
    if not fair and left_of(world, "crash") and cure.kind != "grow":
        yield f"{_name(cure)} crashes", with_cure(spend(world, "crash"), cure, None)
    if cure.kind == "grow":
        yield _grow(model, world, cure)
    elif cure.at in ("scan", "read", "reread", "S"):
        yield _read(model, world, cure)
    else:
        answer, lane = _call(model, world, cure)
        label = f"{_name(cure)} {cure.at} {cure.steps}: {answer[0]}"
        then = _after(model, cure) if answer[0] in ("OK", "TORN") else None
        yield label, with_cure(with_lane(world, cure.lane, lane), cure, then)
        if not fair and left_of(world, "timeout") and lane != world.lanes[cure.lane]:
            late = with_lane(spend(world, "timeout"), cure.lane, lane)
            yield f"{label}, but it hears nothing, and sends it again", late


def _name(cure: Cure) -> str:
    return f"{cure.kind} {cure.epoch}{cure.token} of lane {cure.lane}"


def _rows(model: Model, cure: Cure) -> list[int]:
    """The rows that the cure walks, in order."""
    found = []
    for row, (board, _) in enumerate(model.scope.rows):
        mine = board == cure.board if cure.kind == "mend" else lane_of(board, cure.layout) == cure.lane
        if mine:
            found.append(row)
    return found


def _read(model: Model, world: World, cure: Cure) -> tuple[str, World]:
    """One strongly consistent read of a row, or of S where it is read too late."""
    if cure.at == "S":
        offsets = _starting_offsets(model, world, cure.log)[: cure.partitions]
        then = "begin" if "partitions after S" in model.off else "finish"
        return f"{_name(cure)} reads S={offsets}", with_cure(world, cure, cure._replace(at=then, offsets=offsets))
    image = world.truth[cure.row]
    label = f"{_name(cure)} reads row {cure.row}: {image}"
    if cure.kind == "expel":
        if cure.at == "read" and image >= cure.score:
            return label, with_cure(world, cure, None)
        then = {"read": "expel", "reread": "settle"}[cure.at]
        return label, with_cure(world, cure, cure._replace(image=image, at=then))
    if image:
        return label, with_cure(world, cure, cure._replace(image=image, at="fill"))
    return label, with_cure(world, cure, _next_row(model, cure))


def _next_row(model: Model, cure: Cure, at: int | None = None) -> Cure:
    """The cure at the row behind this one, or at its end."""
    behind = [row for row in _rows(model, cure) if row > (cure.row if at is None else at)]
    if behind:
        return cure._replace(at="scan", row=behind[0], image=0)
    last = {"mend": "mend", "rebuild": "S" if "S first" in model.off else "finish"}[cure.kind]
    return cure._replace(at=last, row=0, image=0)


def _after(model: Model, cure: Cure) -> Cure | None:
    """The cure behind a step that went well."""
    if cure.at in ("begin", "tear"):
        return _next_row(model, cure._replace(steps=0), -1)
    if cure.at == "fill":
        return _next_row(model, cure._replace(steps=cure.steps + 1))
    if cure.at == "expel" and "settle" not in model.off:
        return cure._replace(at="reread", image=0)
    return None


def _call(model: Model, world: World, cure: Cure) -> tuple[Answer, Lane]:
    """The cure's next script."""
    board, player = model.scope.rows[cure.row]
    entries: Entries = ((board, None, ((player, cure.image),)),) if cure.image else ()
    call = {"rebuild": _call_of_rebuild, "mend": _call_of_mending, "expel": _call_of_expulsion}[cure.kind]
    return call(model, world.lanes[cure.lane], cure, entries)


def _call_of_rebuild(model: Model, lane: Lane, cure: Cure, entries: Entries) -> tuple[Answer, Lane]:
    if cure.at == "begin":
        ids, boards = ids_of(cure.log, cure.layout), _boards(model, lane)
        seen = cure.seen if "begin compares" not in model.off else _seen(lane)
        return scripts.begin(lane, cure.epoch, ids, cure.partitions, seen, boards)
    if cure.at == "fill":
        return scripts.fill(lane, cure.epoch, cure.steps, cure.steps + 1, entries, 0, model.off)
    return scripts.finish(lane, cure.epoch, cure.steps, tuple(enumerate(cure.offsets)), model.off)


def _call_of_mending(model: Model, lane: Lane, cure: Cure, entries: Entries) -> tuple[Answer, Lane]:
    mending = (cure.board, cure.token)
    if cure.at == "tear":
        return scripts.tear(lane, cure.epoch, *mending)
    if cure.at == "fill":
        return scripts.refill(lane, cure.epoch, mending, cure.steps, entries, 0, model.off)
    return scripts.mend(lane, cure.epoch, mending, cure.steps, 0, model.off)


def _call_of_expulsion(model: Model, lane: Lane, cure: Cure, entries: Entries) -> tuple[Answer, Lane]:
    entry = model.scope.rows[cure.row]
    if cure.at == "expel":
        return scripts.expel(lane, cure.epoch, entry, cure.score, cure.image or None, cure.token, model.off)
    return scripts.settle(lane, cure.epoch, entry, cure.token, entries, 0, model.off)


def _seen(lane: Lane) -> tuple[str, str]:
    return ("", "") if lane.meta is None else (lane.meta.state, lane.meta.epoch)


def _grow(model: Model, world: World, cure: Cure) -> tuple[str, World]:
    """The lanes are told first; then the log has one more partition, and somebody owns it."""
    if cure.lane < world.layout:
        lane = world.lanes[cure.lane]
        answer, lane = scripts.add_partitions(lane, _epoch(lane), len(world.ends) + 1)
        label = f"lane {cure.lane} is told of a partition: {answer[0]}"
        return label, with_cure(with_lane(world, cure.lane, lane), cure, cure._replace(lane=cure.lane + 1))
    grown = world._replace(ends=(*world.ends, 0), starts=(*world.starts, 0))
    grown = grown._replace(updaters=(*grown.updaters, join(model, grown, len(world.ends))))
    return "the log has one more partition", with_cure(grown, cure, None)
