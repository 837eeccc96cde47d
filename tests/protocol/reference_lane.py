"""A lane and its scripts as pure functions: what the model searches, and what the Lua must do, key by key.

Every script takes a lane and returns its answer and the lane as it is then. `off` names rules that are left
out: the model shows that each of them is needed. Packed values and offsets are ints, times too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")
Pairs = tuple[tuple[K, V], ...]
Off = frozenset[str]
Answer = tuple[str | int, ...]
Ids = tuple[str, str, str]  # log, truth, topology
Range = tuple[int, int, int, int | None]  # partition, first, next, as_of
Mending = tuple[str, str]  # board, token
Entries = tuple[tuple[str, int | None, tuple[tuple[str, int], ...]], ...]  # board, expires_at, (player, packed)...

ALL_RULES: Off = frozenset()
OK: Answer = ("OK",)
FENCED: Answer = ("FENCED",)
AGAIN: Answer = ("AGAIN",)
LOST: Answer = ("LOST",)
MARK = ""  # the member that counts the steps of a mending; no player has this id


class Meta(NamedTuple):
    """The meta hash. `boards` and `torn` count what the lane must have kept."""

    state: str
    epoch: str
    log_id: str
    truth_id: str
    topology: str
    partitions: int
    seq: int = 0
    boards: int = 0
    torn: int = 0
    as_of: int | None = None
    progress: int = 0


class Lane(NamedTuple):
    """All keys of a lane. `zsets`: board to (entries, expires_at)."""

    meta: Meta | None = None
    applied: Pairs[int, int] = ()
    as_of: Pairs[int, int] = ()
    boards: frozenset[str] = frozenset()
    expelled: frozenset[tuple[str, str]] = frozenset()
    torn: Pairs[str, str] = ()
    zsets: Pairs[str, tuple[Pairs[str, int], int | None]] = ()


def find(pairs: Pairs[K, V], key: K) -> V | None:
    """What the pairs hold for the key."""
    return next((value for known, value in pairs if known == key), None)


def put(pairs: Pairs[K, V], key: K, value: V) -> Pairs[K, V]:
    """The pairs with this one, in canonical order."""
    return tuple(sorted(((key, value), *(pair for pair in pairs if pair[0] != key)), key=lambda pair: pair[0]))  # type: ignore[arg-type, return-value]


def drop(pairs: Pairs[K, V], key: K) -> Pairs[K, V]:
    """The pairs without the key's."""
    return tuple(pair for pair in pairs if pair[0] != key)


def score(lane: Lane, board: str, player: str) -> int | None:
    """What a board holds for a player."""
    found = find(lane.zsets, board)
    return None if found is None else find(found[0], player)


def is_ready(lane: Lane, ids: Ids, off: Off = ALL_RULES) -> bool:
    """True where the lane can prove that it is whole, and belongs to these ids."""
    meta = lane.meta
    if meta is None or not is_kept(lane, off):
        return False
    own = (meta.log_id, meta.truth_id, meta.topology)
    compared = ("log id", "truth id", "topology")
    return meta.state == "ready" and all(
        mine == theirs or rule in off for mine, theirs, rule in zip(own, ids, compared, strict=True)
    )


def is_kept(lane: Lane, off: Off = ALL_RULES) -> bool:
    """True where no key that a READY lane must have was deleted by hand."""
    meta = lane.meta
    if meta is None:
        return False
    kept = bool(lane.applied) and meta.boards == len(lane.boards) and meta.torn == len(lane.torn)
    return kept or "kept keys" in off


def is_epoch(lane: Lane, epoch: str) -> bool:
    """True where the lane is READY under this epoch."""
    return lane.meta is not None and (lane.meta.state, lane.meta.epoch) == ("ready", epoch)


# ---------------------------------------------------------------- parts of scripts


def tear_board(lane: Lane, board: str, token: str) -> Lane:
    """Note a board as torn: not served from here on."""
    meta = meta_of(lane)
    more = 0 if find(lane.torn, board) is not None else 1
    return lane._replace(torn=put(lane.torn, board, token), meta=meta._replace(torn=meta.torn + more))


def merge(lane: Lane, entries: Entries, now_s: int = 0, off: Off = ALL_RULES) -> Iterator[Lane]:
    """The lane after each board of the entries."""
    for board, expires_at, images in entries:
        found = find(lane.zsets, board)
        if board not in lane.boards:
            meta = meta_of(lane)
            lane = lane._replace(boards=lane.boards | {board}, meta=meta._replace(boards=meta.boards + 1))
        elif found is None and "torn by merge" not in off:
            lane = tear_board(lane, board, "")
        scores, expiry = found or ((), None)
        for player, packed in images:
            known = find(scores, player)
            if known is None or known < packed:
                scores = put(scores, player, packed)
        lane = set_board(lane, board, scores, expires_at if expires_at is not None else expiry, now_s)
        yield lane


def set_board(lane: Lane, board: str, scores: Pairs[str, int], expires_at: int | None, now_s: int = 0) -> Lane:
    """Write a board's key: gone where it is empty or its time is over."""
    if not scores or (expires_at is not None and expires_at <= now_s):
        return lane._replace(zsets=drop(lane.zsets, board))
    return lane._replace(zsets=put(lane.zsets, board, (scores, expires_at)))


def merged(lane: Lane, entries: Entries, now_s: int, off: Off = ALL_RULES) -> Lane:
    """The lane after all boards of the entries."""
    return [lane, *merge(lane, entries, now_s, off)][-1]


def forget_if_empty(lane: Lane, board: str) -> Lane:
    """A board without entries has no key, and the lane no longer names it."""
    if find(lane.zsets, board) is not None or board not in lane.boards:
        return lane
    meta = meta_of(lane)
    return lane._replace(boards=lane.boards - {board}, meta=meta._replace(boards=meta.boards - 1))


def end_tear(lane: Lane, board: str) -> Lane:
    """The board is no longer torn."""
    if find(lane.torn, board) is None:
        return lane
    meta = meta_of(lane)
    return lane._replace(torn=drop(lane.torn, board), meta=meta._replace(torn=meta.torn - 1))


def note_as_of(lane: Lane) -> Lane:
    """meta.as_of: the minimum over all partitions, None while one was never heard."""
    meta = meta_of(lane)
    heard = [at for _, at in lane.as_of]
    return lane._replace(meta=meta._replace(as_of=min(heard) if heard and len(heard) >= meta.partitions else None))


def meta_of(lane: Lane) -> Meta:
    """The meta of a lane that has one."""
    assert lane.meta is not None
    return lane.meta


# ---------------------------------------------------------------- the scripts


def project(
    lane: Lane, ids: Ids, partitions: int, ranges: Sequence[Range], entries: Entries, now_s: int = 0
) -> tuple[Answer, Lane]:
    """Whole ranges with all row images that they touch; `partitions`: how many the log has."""
    answer, steps = project_in_steps(lane, ids, partitions, ranges, entries, now_s)
    return answer, steps[-1]


def project_in_steps(
    lane: Lane,
    ids: Ids,
    partitions: int,
    ranges: Sequence[Range],
    entries: Entries,
    now_s: int = 0,
    off: Off = ALL_RULES,
) -> tuple[Answer, list[Lane]]:
    """The same, with the lane after each step: what a script that dies half way leaves behind."""
    if not is_ready(lane, ids, off):
        return LOST, [lane]
    behind: Answer = ("BEHIND",)
    for partition, first, _, _ in ranges:
        at = find(lane.applied, partition)
        if at is None:
            at = first if "missing is 0" in off else 0
        if at < first and "contiguity" not in off:
            behind += (partition, at)
    if len(behind) > 1:
        return behind, [lane]
    if "entries first" in off:
        moved = _move(lane, ranges, partitions)
        return ("APPLIED",), [lane, moved, merged(moved, entries, now_s, off)]
    steps = [lane, *merge(lane, entries, now_s, off)]
    return ("APPLIED",), [*steps, _move(steps[-1], ranges, partitions)]


def _move(lane: Lane, ranges: Sequence[Range], partitions: int) -> Lane:
    applied, times = lane.applied, lane.as_of
    for partition, _, after, as_of in ranges:
        at = find(lane.applied, partition)
        if at is None or at < after:
            applied = put(applied, partition, after)
        if as_of is not None and (find(times, partition) or -1) < as_of:
            times = put(times, partition, as_of)
    meta = meta_of(lane)
    meta = meta._replace(partitions=max(meta.partitions, partitions))
    return note_as_of(lane._replace(meta=meta, applied=applied, as_of=times))


def prefilter(lane: Lane, ids: Ids, wanted: Sequence[tuple[str, Sequence[str]]], off: Off = ALL_RULES) -> Answer:
    """What the boards hold for these players, '' where nothing."""
    if not is_ready(lane, ids, off):
        return LOST
    scores = [score(lane, board, player) for board, players in wanted for player in players]
    return ("READY", *("" if one is None else one for one in scores))


def begin(
    lane: Lane, epoch: str, ids: Ids, partitions: int, seen: tuple[str, str], declared: Sequence[str]
) -> tuple[Answer, Lane]:
    """Empty the lane, and open it for a rebuild."""
    at = ("", "") if lane.meta is None else (lane.meta.state, lane.meta.epoch)
    if at not in (seen, ("rebuilding", epoch)):
        return FENCED, lane
    undeclared = lane.boards - set(declared)
    if undeclared:
        return ("UNDECLARED", *sorted(undeclared)), lane
    if lane.meta is not None and lane.meta.log_id == ids[0]:
        partitions = max(partitions, lane.meta.partitions)
    left = tuple(one for one in lane.zsets if one[0] not in declared)
    return OK, Lane(Meta("rebuilding", epoch, *ids, partitions), zsets=left)


def fill(
    lane: Lane, epoch: str, step: int, progress: int, entries: Entries, now_s: int = 0, off: Off = ALL_RULES
) -> tuple[Answer, Lane]:
    """The step-th chunk of a rebuild."""
    meta = lane.meta
    if meta is None or not _is_rebuilding(meta, epoch, off):
        return FENCED, lane
    if meta.seq not in (step, step + 1) and "seq" not in off:
        return FENCED, lane
    lane = merged(lane, entries, now_s, off)
    return OK, lane._replace(meta=meta_of(lane)._replace(seq=step + 1, progress=progress))


def finish(
    lane: Lane, epoch: str, steps: int, offsets: Pairs[int, tuple[int, int | None]], off: Off = ALL_RULES
) -> tuple[Answer, Lane]:
    """The lane is whole up to these offsets (partition to offset and as_of)."""
    meta = lane.meta
    if is_epoch(lane, epoch):
        return OK, lane
    if meta is None or not _is_rebuilding(meta, epoch, off) or (meta.seq != steps and "seq" not in off):
        return FENCED, lane
    applied, times = tuple((p, at) for p, (at, _) in offsets), tuple((p, t) for p, (_, t) in offsets if t is not None)
    if "finish sets" in off:
        applied = tuple((p, max(at, find(lane.applied, p) or 0)) for p, at in applied)
    lane = note_as_of(lane._replace(applied=applied, as_of=times))
    return OK, lane._replace(meta=meta_of(lane)._replace(state="ready"))


def _is_rebuilding(meta: Meta, epoch: str, off: Off) -> bool:
    return "fence" in off or (meta.state, meta.epoch) == ("rebuilding", epoch)


def add_partitions(lane: Lane, epoch: str, partitions: int) -> tuple[Answer, Lane]:
    """The log is about to have more partitions."""
    if lane.meta is None or lane.meta.epoch != epoch:
        return FENCED, lane
    if lane.meta.partitions < partitions:
        lane = note_as_of(lane._replace(meta=lane.meta._replace(partitions=partitions)))
    return OK, lane


def repair(lane: Lane, epoch: str, entries: Entries, now_s: int = 0, off: Off = ALL_RULES) -> tuple[Answer, Lane]:
    """Images that the truth has."""
    return (OK, merged(lane, entries, now_s, off)) if is_epoch(lane, epoch) else (FENCED, lane)


def tear(
    lane: Lane, epoch: str, board: str, token: str, expires_at: int | None = None, now_s: int = 0
) -> tuple[Answer, Lane]:
    """Begin to mend a board that lost its key."""
    if not is_epoch(lane, epoch):
        return FENCED, lane
    if find(lane.torn, board) is None and (board not in lane.boards or find(lane.zsets, board) is not None):
        return ("WHOLE",), lane
    return ("TORN",), set_board(tear_board(lane, board, token), board, ((MARK, 0),), expires_at, now_s)


def refill(
    lane: Lane, epoch: str, mending: Mending, step: int, entries: Entries, now_s: int = 0, off: Off = ALL_RULES
) -> tuple[Answer, Lane]:
    """The step-th chunk of the mending that this token began."""
    if not is_epoch(lane, epoch):
        return FENCED, lane
    if not _is_mending(lane, mending, (step, step + 1), off):
        return AGAIN, lane
    board = mending[0]
    lane = merged(lane, entries, now_s, off)
    found = find(lane.zsets, board)
    return OK, lane if found is None else set_board(lane, board, put(found[0], MARK, step + 1), found[1], now_s)


def mend(
    lane: Lane, epoch: str, mending: Mending, steps: int, now_s: int = 0, off: Off = ALL_RULES
) -> tuple[Answer, Lane]:
    """All rows are back: serve the board again."""
    if not is_epoch(lane, epoch):
        return FENCED, lane
    if not _is_mending(lane, mending, (steps,), off):
        return AGAIN, lane
    board = mending[0]
    found = find(lane.zsets, board)
    if found is not None:
        lane = set_board(lane, board, drop(found[0], MARK), found[1], now_s)
    return OK, forget_if_empty(end_tear(lane, board), board)


def _is_mending(lane: Lane, mending: Mending, steps: Sequence[int], off: Off) -> bool:
    board, token = mending
    mark = score(lane, board, MARK)
    ours = find(lane.torn, board) == token or "mend token" in off
    there = mark is not None or "mend mark" in off
    return ours and there and (mark is None or mark in steps or "mend steps" in off)


def expel(
    lane: Lane,
    epoch: str,
    entry: tuple[str, str],
    seen: int | None,
    packed: int | None,
    token: str,
    off: Off = ALL_RULES,
) -> tuple[Answer, Lane]:
    """Take out, or lower, what the truth does not back; the board is torn until it is settled."""
    if not is_epoch(lane, epoch):
        return FENCED, lane
    board, player = entry
    found = find(lane.zsets, board)
    known = score(lane, board, player)
    if found is None or known is None or (known != seen and "seen" not in off):
        return ("CHANGED",), lane
    if "torn by expel" not in off:
        if find(lane.torn, board) is not None:
            return ("CHANGED",), lane
        lane = tear_board(lane, board, token)
    scores = drop(found[0], player) if packed is None else put(found[0], player, packed)
    lane = set_board(lane._replace(expelled=lane.expelled | {entry}), board, scores, found[1])
    return OK, forget_if_empty(lane, board)


def settle(
    lane: Lane, epoch: str, entry: tuple[str, str], token: str, entries: Entries, now_s: int = 0, off: Off = ALL_RULES
) -> tuple[Answer, Lane]:
    """The row as read after the expel: the note is done with, and the board whole if this expulsion tore it."""
    if not is_epoch(lane, epoch):
        return FENCED, lane
    lane = merged(lane, entries, now_s, off)._replace(expelled=lane.expelled - {entry})
    ours = token and (find(lane.torn, entry[0]) == token or "settle token" in off)
    return OK, end_tear(lane, entry[0]) if ours else lane


def forget(lane: Lane, epoch: str, board: str) -> tuple[Answer, Lane]:
    """A board's time is over."""
    if not is_epoch(lane, epoch):
        return FENCED, lane
    if find(lane.zsets, board) is not None:
        return ("THERE",), lane
    return OK, end_tear(forget_if_empty(lane, board), board)


def retire(lane: Lane, epoch: str, declared: Sequence[str]) -> tuple[Answer, Lane]:
    """Remove the lane."""
    if ("" if lane.meta is None else lane.meta.epoch) != epoch:
        return FENCED, lane
    undeclared = lane.boards - set(declared)
    if undeclared:
        return ("UNDECLARED", *sorted(undeclared)), lane
    return OK, Lane(zsets=tuple(one for one in lane.zsets if one[0] not in declared))
