"""One lane twice, on a real server and as the reference has it: every call goes to both, and every key is compared."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

import redis
from hypothesis import event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.protocol import reference_lane as reference
from tests.protocol.lane_on_valkey import Dump, LaneOnValkey, board_args
from tests.protocol.reference_lane import MARK, Answer, Entries, Ids, Lane, Range, find, score

Args = Sequence[str | int | None]
Images = tuple[tuple[str, int], ...]
NOW_S, PAST_S, FUTURE_S = 1_700_000_000, 1, 4_102_444_800
MOST = 2**53 - 1

BOARDS = ("main:all", "main:daily:2026-10-24", "x{y}:all")
PLAYERS = ("ann", "a:b", "{3}", "007", "7", " ", "%s", "ß🎯", "boards", "x" * 128)
IDS: tuple[Ids, ...] = (
    ("log", "truth", "1/1"),
    ("log 2", "truth", "1/1"),
    ("log", "truth 2", "1/1"),
    ("log", "truth", "2/2"),
)
EPOCHS = ("e1", "e2", "")
TOKENS = ("t1", "t2")

boards = st.sampled_from(BOARDS)
players = st.sampled_from(PLAYERS)
epochs = st.sampled_from((None, None, None, None, None, *EPOCHS))  # None: the lane's own
tokens = st.sampled_from((None, None, None, *TOKENS))  # None: what the board is torn by
ids = st.sampled_from((IDS[0],) * 6 + IDS)
packed = st.sampled_from((0, 1, 2, 7, 2**52 + 1, MOST - 1, MOST)) | st.integers(0, MOST)
truths = st.none() | packed
expiries = st.sampled_from((None, None, FUTURE_S, PAST_S))
nearby = st.sampled_from((0, 0, 0, 0, 1, -1, 2))
times = st.none() | st.integers(0, 2_000_000_000_000)
offsets = st.sampled_from((0, 1, 2, 3, 10, 2**40, MOST))
images = st.dictionaries(players, packed, min_size=1, max_size=4).map(lambda found: tuple(found.items()))
entries_of_boards = st.dictionaries(boards, st.tuples(expiries, images), max_size=3).map(
    lambda found: tuple((board, *rest) for board, rest in found.items())
)
starts = st.lists(st.tuples(offsets, times), min_size=1, max_size=3)
moves = st.dictionaries(st.integers(0, 2), st.tuples(nearby, st.sampled_from((0, 1, 5)), times), min_size=1, max_size=3)


class ScriptsAgainstReference(RuleBasedStateMachine):
    """One lane, twice. Every call goes to both."""

    def __init__(self, client: redis.Redis) -> None:
        super().__init__()
        self.real = LaneOnValkey(client, f"protocol-{uuid4().hex[:8]}")
        self.lane = Lane()
        self.saved: list[tuple[Lane, Dump]] = []

    def teardown(self) -> None:
        self.real.restore({})

    @invariant()
    def every_key_is_the_same(self) -> None:
        assert self.real.read() == self.lane

    # ---------------------------------------------------------------- helpers

    def _own(self, epoch: str | None) -> str:
        return epoch if epoch is not None else self.lane.meta.epoch if self.lane.meta else "e1"

    def _seq(self) -> int:
        return self.lane.meta.seq if self.lane.meta else 0

    def _expect(self, name: str, expected: tuple[Answer, Lane], keys: Sequence[str], args: Args) -> None:
        answer, self.lane = expected
        event(f"{name}: {answer[0]}")
        found = self.real.run(name, keys, args)
        if answer[0] == "UNDECLARED":
            found = (found[0], *sorted(map(str, found[1:])))
        assert found == tuple(map(str, answer))

    def _head(self, names: str) -> list[str]:
        return [getattr(self.real.keys, name) for name in names.split()]

    def _keys_of(self, entries: Entries) -> list[str]:
        return [self.real.keys.board(board) for board, _, _ in entries]

    # ---------------------------------------------------------------- the life of a lane

    @initialize(starts=starts, images=images)
    def it_becomes_ready(self, starts: list[tuple[int, int | None]], images: Images) -> None:
        self.it_is_rebuilt("e1", [tuple((board, None, images) for board in BOARDS)], starts)

    @rule(epoch=st.sampled_from(EPOCHS), steps=st.lists(entries_of_boards, max_size=3), starts=starts)
    def it_is_rebuilt(self, epoch: str, steps: list[Entries], starts: list[tuple[int, int | None]]) -> None:
        self.begin(epoch, IDS[0], len(starts), None, set())
        for step, entries in enumerate(steps):
            self.fill(None, 0, step, entries)
        self.finish(None, 0, dict(enumerate(starts)))

    @rule(
        epoch=epochs, ids=ids, partitions=st.integers(1, 3), seen=st.none() | st.just(("ready", "e1")),
        undeclared=st.sets(boards, max_size=1),
    )  # fmt: skip
    def begin(
        self, epoch: str | None, ids: Ids, partitions: int, seen: tuple[str, str] | None, undeclared: set[str]
    ) -> None:
        own = self._own(epoch)
        at = seen or (("", "") if self.lane.meta is None else (self.lane.meta.state, self.lane.meta.epoch))
        declared = [board for board in BOARDS if board not in undeclared]
        self._expect(
            "begin", reference.begin(self.lane, own, ids, partitions, at, declared),
            [*self._head("meta applied as_of boards expelled torn"), *map(self.real.keys.board, declared)],
            [own, *ids, partitions, *at, *declared],
        )  # fmt: skip

    @rule(epoch=epochs, off=nearby, progress=st.integers(0, 9), entries=entries_of_boards)
    def fill(self, epoch: str | None, off: int, progress: int, entries: Entries) -> None:
        own, step = self._own(epoch), max(self._seq() + off, 0)
        self._expect(
            "fill", reference.fill(self.lane, own, step, progress, entries, NOW_S),
            [*self._head("meta boards torn"), *self._keys_of(entries)], [own, step, progress, *board_args(entries)],
        )  # fmt: skip

    @rule(epoch=epochs, off=nearby, found=st.dictionaries(st.integers(0, 2), st.tuples(offsets, times), min_size=1))
    def finish(self, epoch: str | None, off: int, found: dict[int, tuple[int, int | None]]) -> None:
        own, steps = self._own(epoch), max(self._seq() + off, 0)
        pairs = tuple(sorted(found.items()))
        args = [part for partition, (offset, as_of) in pairs for part in (partition, offset, as_of)]
        expected = reference.finish(self.lane, own, steps, pairs)
        self._expect("finish", expected, self._head("meta applied as_of"), [own, steps, *args])

    @rule(epoch=epochs, partitions=st.integers(1, 4))
    def add_partitions(self, epoch: str | None, partitions: int) -> None:
        own = self._own(epoch)
        expected = reference.add_partitions(self.lane, own, partitions)
        self._expect("add_partitions", expected, self._head("meta as_of"), [own, partitions])

    @rule(epoch=epochs, undeclared=st.sets(boards, max_size=1), really=nearby)
    def retire(self, epoch: str | None, undeclared: set[str], really: int) -> None:
        own = self._own(epoch) if really == 2 else "another"
        declared = [board for board in BOARDS if board not in undeclared]
        self._expect(
            "retire", reference.retire(self.lane, own, declared),
            [*self._head("meta applied as_of boards expelled torn"), *map(self.real.keys.board, declared)],
            [own, *declared],
        )  # fmt: skip

    # ---------------------------------------------------------------- updaters

    @rule(ids=ids, partitions=st.integers(0, 4), moves=moves, entries=entries_of_boards)
    def project(
        self, ids: Ids, partitions: int, moves: dict[int, tuple[int, int, int | None]], entries: Entries
    ) -> None:
        ranges: list[Range] = []
        for partition, (off, count, as_of) in moves.items():
            first = max((find(self.lane.applied, partition) or 0) + off, 0)
            ranges.append((partition, min(first, MOST), min(first + count, MOST), as_of))
        args: list[str | int | None] = [part for one in ranges for part in one]
        self._expect(
            "project", reference.project(self.lane, ids, partitions, ranges, entries, NOW_S),
            [*self._head("meta applied as_of boards torn"), *self._keys_of(entries)],
            [*ids, partitions, len(ranges), *args, *board_args(entries)],
        )  # fmt: skip

    @rule(ids=ids, wanted=st.dictionaries(boards, st.lists(players, min_size=1, max_size=3), max_size=3))
    def prefilter(self, ids: Ids, wanted: dict[str, list[str]]) -> None:
        args: list[str | int] = []
        for asked in wanted.values():
            args += [len(asked), *asked]
        self._expect(
            "prefilter", (reference.prefilter(self.lane, ids, list(wanted.items())), self.lane),
            [*self._head("meta applied boards torn"), *map(self.real.keys.board, wanted)], [*ids, *args],
        )  # fmt: skip

    # ---------------------------------------------------------------- repairs

    @rule(epoch=epochs, entries=entries_of_boards)
    def repair(self, epoch: str | None, entries: Entries) -> None:
        own = self._own(epoch)
        expected = reference.repair(self.lane, own, entries, NOW_S)
        keys = [*self._head("meta boards torn"), *self._keys_of(entries)]
        self._expect("repair", expected, keys, [own, *board_args(entries)])

    def _on_board(self, board: str) -> list[str]:
        return [*self._head("meta boards torn"), self.real.keys.board(board)]

    @rule(epoch=epochs, board=boards, token=st.sampled_from(TOKENS), expires_at=expiries)
    def tear(self, epoch: str | None, board: str, token: str, expires_at: int | None) -> None:
        own = self._own(epoch)
        expected = reference.tear(self.lane, own, board, token, expires_at, NOW_S)
        self._expect("tear", expected, self._on_board(board), [own, board, token, expires_at])

    @precondition(lambda self: self.lane.torn)
    @rule(epoch=epochs, which=st.integers(0, 2), token=tokens, off=nearby, expires_at=expiries, images=images)
    def refill(
        self, epoch: str | None, which: int, token: str | None, off: int, expires_at: int | None,
        images: Images,
    ) -> None:  # fmt: skip
        board, own_token = self.lane.torn[which % len(self.lane.torn)]
        own, token = self._own(epoch), own_token if token is None else token
        step = max((score(self.lane, board, MARK) or 0) + off, 0)
        self._refill(own, (board, token), step, ((board, expires_at, images),))

    @precondition(lambda self: self.lane.torn)
    @rule(epoch=epochs, which=st.integers(0, 2), token=tokens, off=nearby)
    def mend(self, epoch: str | None, which: int, token: str | None, off: int) -> None:
        board, own_token = self.lane.torn[which % len(self.lane.torn)]
        own, token = self._own(epoch), own_token if token is None else token
        steps = max((score(self.lane, board, MARK) or 0) + off, 0)
        self._mend(own, (board, token), steps)

    @rule(epoch=epochs, board=boards, player=players, off=nearby, truth=truths, token=st.sampled_from(TOKENS))
    def expel(self, epoch: str | None, board: str, player: str, off: int, truth: int | None, token: str) -> None:
        own, seen = self._own(epoch), max((score(self.lane, board, player) or 0) + off, 0)
        keys = [*self._head("meta boards expelled torn"), self.real.keys.board(board)]
        expected = reference.expel(self.lane, own, (board, player), seen, truth, token)
        self._expect("expel", expected, keys, [own, board, player, seen, truth, token])

    @precondition(lambda self: self.lane.zsets)
    @rule(which=st.integers(0, 9), truth=truths, expires_at=expiries, images=images, data=st.data())
    def an_entry_is_expelled(
        self,
        which: int,
        truth: int | None,
        expires_at: int | None,
        images: Images,
        data: st.DataObject,
    ) -> None:
        board, (entries, _) = self.lane.zsets[which % len(self.lane.zsets)]
        self.expel(None, board, entries[which % len(entries)][0], 0, truth, "t1")
        self._maybe(data, board, images)
        if self.lane.expelled:
            self.settle(None, which, data.draw(tokens), expires_at, truth)

    @precondition(lambda self: self.lane.expelled)
    @rule(epoch=epochs, which=st.integers(0, 9), token=tokens | st.just(""), expires_at=expiries, truth=truths)
    def settle(
        self, epoch: str | None, which: int, token: str | None, expires_at: int | None, truth: int | None
    ) -> None:
        notes = sorted(self.lane.expelled)
        board, player = notes[which % len(notes)]
        own, token = self._own(epoch), (find(self.lane.torn, board) or "") if token is None else token
        entries: Entries = () if truth is None else ((board, expires_at, ((player, truth),)),)
        keys = [*self._head("meta boards torn expelled"), *self._keys_of(entries)]
        expected = reference.settle(self.lane, own, (board, player), token, entries, NOW_S)
        self._expect("settle", expected, keys, [own, board, player, token, *board_args(entries)])

    @rule(epoch=epochs, board=boards)
    def forget(self, epoch: str | None, board: str) -> None:
        own = self._own(epoch)
        self._expect("forget", reference.forget(self.lane, own, board), self._on_board(board), [own, board])

    @precondition(lambda self: self.lane.zsets)
    @rule(images=images, token=st.sampled_from(TOKENS), data=st.data())
    def a_deleted_board_is_mended(self, images: Images, token: str, data: st.DataObject) -> None:
        board = self.lane.zsets[-1][0]
        self.somebody_deletes_a_board(-1)
        self._maybe(data, board, images)
        self.tear(None, board, token, None)
        steps = data.draw(st.sampled_from(((), (0,), (0, 1), (0, 0, 1, 1))))
        mine = st.sampled_from((token, token, token, token, *TOKENS))
        for step in steps:
            self._maybe(data, board, images)
            self._refill(self._own(None), (board, data.draw(mine)), step, ((board, None, images[step:]),))
        self._maybe(data, board, images)
        self._mend(self._own(None), (board, data.draw(mine)), len(set(steps)))

    def _refill(self, epoch: str, mending: tuple[str, str], step: int, entries: Entries) -> None:
        args = [epoch, *mending, step, *board_args(entries)]
        expected = reference.refill(self.lane, epoch, mending, step, entries, NOW_S)
        self._expect("refill", expected, self._on_board(mending[0]), args)

    def _mend(self, epoch: str, mending: tuple[str, str], steps: int) -> None:
        expected = reference.mend(self.lane, epoch, mending, steps, NOW_S)
        self._expect("mend", expected, self._on_board(mending[0]), [epoch, *mending, steps])

    def _maybe(self, data: st.DataObject, board: str, images: Images) -> None:
        """What may come between two steps."""
        self.every_key_is_the_same()
        what = data.draw(st.sampled_from(("", "", "", "", "project", "delete", "save", "roll back")))
        if what == "project":
            self.project(IDS[0], 0, {0: (0, 0, None)}, ((board, None, images),))
        elif what == "delete" and find(self.lane.zsets, board) is not None:
            self.real.delete(self.real.keys.board(board))
            self.lane = self.lane._replace(zsets=reference.drop(self.lane.zsets, board))
        elif what == "save":
            self.the_lane_is_saved()
        elif what == "roll back" and self.saved:
            self.the_lane_is_rolled_back(-1)

    # ---------------------------------------------------------------- what Redis and people do

    @precondition(lambda self: self.lane.zsets)
    @rule(which=st.integers(0, 2))
    def somebody_deletes_a_board(self, which: int) -> None:
        board = self.lane.zsets[which % len(self.lane.zsets)][0]
        self.real.delete(self.real.keys.board(board))
        self.lane = self.lane._replace(zsets=reference.drop(self.lane.zsets, board))

    @rule(key=st.sampled_from(("applied", "as_of", "boards", "torn", "meta", "expelled")), really=nearby)
    def somebody_deletes_a_key(self, key: str, really: int) -> None:
        if really == 2:  # seldom: most of it makes the lane LOST, and then little happens
            self.real.delete(getattr(self.real.keys, key))
            self.lane = self.lane._replace(**{key: getattr(Lane(), key)})

    @precondition(lambda self: self.lane.torn)
    @rule(entries=entries_of_boards)
    def somebody_deletes_what_is_torn(self, entries: Entries) -> None:
        self.real.delete(self.real.keys.torn)
        self.lane = self.lane._replace(torn=())
        self.project(IDS[0], 0, {}, entries)

    @rule()
    def the_lane_is_saved(self) -> None:
        self.saved.append((self.lane, self.real.dump()))

    @precondition(lambda self: self.saved)
    @rule(which=st.integers(0, 9))
    def the_lane_is_rolled_back(self, which: int) -> None:
        self.lane, dump = self.saved[which % len(self.saved)]
        self.real.restore(dump)
