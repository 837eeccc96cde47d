"""One rebuild of one lane, from the scorebook: S, begin, fill, finish. Fenced or failed, it is over: the next starts afresh.

Docs: docs/recovery.md. The order matters: S is read before the first row is, and the log is replayed from S.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from schemas.errors import StandingsError, StoreUnavailable
from schemas.leaderboards import Board, Leaderboard
from schemas.rows import Row, Topology
from stores.catalogue import Catalogue
from stores.lanes import Entries, LaneIds, LaneMeta, Lanes, topology_ids
from stores.log import Committed, LogAdmin, LogDescription
from stores.scorebook import Scorebook

CHUNK_ROWS = 500
LEASE_MS = 15_000
_PARALLEL_QUERIES = 8
_CHUNKS_AHEAD = 16


class Fenced(StandingsError):
    """Another runner took the lane over: this one ends, and never goes on under its epoch."""


class LeaseHeld(StandingsError):
    """Another runner holds the lane's lease: look again later."""


@dataclass(frozen=True, slots=True)
class World:
    """What is authoritative: the log there is, the layout and truth there are, the leaderboards."""

    log: LogDescription
    topology: Topology
    leaderboards: Mapping[str, Leaderboard]

    @property
    def ids(self) -> LaneIds:
        """What every lane must carry."""
        return topology_ids(self.log.log_id, self.topology)

    def boards_of(self, lane: int, now_at: int) -> list[Board]:
        """The boards of a lane that may have entries now: by definitions and calendar, no registry is needed."""
        return [
            board
            for leaderboard in self.leaderboards.values()
            for board in leaderboard.existing_boards(now_at)
            if self.topology.lane_of(board.name) == lane
        ]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a finished rebuild did."""

    lane: int
    boards: int
    rows: int


class Runner:
    """Rebuilds lanes. Raises Fenced, LeaseHeld and StoreUnavailable; a lane is never left READY and incomplete."""

    def __init__(
        self,
        scorebook: Scorebook,
        catalogue: Catalogue,
        lanes: Lanes,
        admin: LogAdmin,
        now_at: Callable[[], int],
        progress: Callable[[int, int], None] = lambda lane, rows: None,
    ) -> None:
        self._scorebook = scorebook
        self._catalogue = catalogue
        self._lanes = lanes
        self._admin = admin
        self._now_at = now_at
        self._progress = progress
        self._owner = str(uuid4())

    def rebuild(self, lane: int, world: World) -> Rebuilt:
        """Bring the lane back. Memory is flat whatever the size; rows stream from parallel queries."""
        with self._lease(lane) as prolong:
            seen = self._lanes.read_meta(lane)
            epoch = str(uuid4())
            # Before the first row is read: what is committed later is replayed, not missed.
            offsets = self._starting_offsets(world.log)
            boards = world.boards_of(lane, self._now_at())
            self._begin(lane, epoch, world, seen, boards)
            steps, rows = self._fill(lane, epoch, boards, prolong)
            if not self._lanes.finish(lane, epoch, steps, offsets):
                raise Fenced(f"lane {lane} was taken over by another rebuild")
        return Rebuilt(lane, len(boards), rows)

    def _starting_offsets(self, log: LogDescription) -> dict[int, tuple[int, int | None]]:
        """S: what is committed, but nothing that the log has dropped; where nothing is, the log's start, never its end."""
        committed = self._admin.committed(log.log_id)
        offsets: dict[int, tuple[int, int | None]] = {}
        for partition, start in self._admin.log_starts(log.partitions).items():
            known = committed.get(partition, Committed(-1, None))
            offsets[partition] = (known.offset, known.as_of) if known.offset >= start else (start, None)
        return offsets

    def _begin(self, lane: int, epoch: str, world: World, seen: LaneMeta, boards: list[Board]) -> None:
        names = [board.name for board in boards]
        if not self._lanes.begin(lane, epoch, world.ids, world.log.partitions, seen, names):
            raise Fenced(f"lane {lane} was changed by another rebuild since it was looked at")

    def _fill(self, lane: int, epoch: str, boards: list[Board], prolong: Callable[[], None]) -> tuple[int, int]:
        steps = rows = 0
        for board, chunk in self._stream(boards):
            entries = Entries()
            for row in chunk:
                entries.add(board, row.player_id, row.packed)
            rows += len(chunk)
            if not self._lanes.fill(lane, epoch, steps, rows, entries):
                raise Fenced(f"lane {lane} was taken over by another rebuild")
            steps += 1
            prolong()
            self._progress(lane, rows)
        return steps, rows

    def _stream(self, boards: list[Board]) -> Iterator[tuple[Board, list[Row]]]:
        """Chunks of rows from parallel shard queries, at most so many ahead of who reads them."""
        chunks: queue.Queue[tuple[Board, list[Row]] | BaseException | None] = queue.Queue(_CHUNKS_AHEAD)
        ended = threading.Event()
        now_at = self._now_at()

        def put(item: tuple[Board, list[Row]] | BaseException | None) -> None:
            while not ended.is_set():
                try:
                    return chunks.put(item, timeout=0.1)
                except queue.Full:
                    continue

        def query(board: Board, shard: int) -> None:
            try:
                for page in self._scorebook.query_shard(board, shard, now_at):
                    for first in range(0, len(page), CHUNK_ROWS):
                        put((board, page[first : first + CHUNK_ROWS]))
                    if ended.is_set():
                        return
            except BaseException as error:  # it belongs to the reader of the stream
                put(error)

        def query_all() -> None:
            with ThreadPoolExecutor(_PARALLEL_QUERIES, thread_name_prefix="rebuild") as pool:
                for board in boards:
                    for shard in range(board.shards):
                        pool.submit(query, board, shard)
            put(None)

        feeder = threading.Thread(target=query_all, name="rebuild-feeder", daemon=True)
        feeder.start()
        try:
            while (item := chunks.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            ended.set()
            feeder.join()

    @contextmanager
    def _lease(self, lane: int) -> Iterator[Callable[[], None]]:
        """Hold the lane's lease: two runners would fence each other for ever. For liveness only."""
        name = f"lane-{lane}"
        taken_at = 0

        def prolong() -> None:
            nonlocal taken_at
            now_at = self._now_at()
            if now_at - taken_at < LEASE_MS // 3:
                return
            if not self._catalogue.take_lease(name, self._owner, now_at, now_at + LEASE_MS):
                raise LeaseHeld(f"another process is rebuilding lane {lane}")
            taken_at = now_at

        prolong()
        try:
            yield prolong
        finally:
            try:
                self._catalogue.release_lease(name, self._owner)
            except StoreUnavailable:
                pass  # it runs out by itself
