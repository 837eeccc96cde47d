"""The truth's rows as one stream, fed by parallel strongly consistent queries, flat in memory whatever the size."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from schemas.leaderboards import Board
from schemas.rows import Row
from stores.scorebook import Scorebook

CHUNK_ROWS = 500
_CHUNKS_AHEAD = 32

Chunk = tuple[Board, list[Row]]


@dataclass(frozen=True, slots=True)
class Filling:
    """How far a lane or a board is being filled: rows so far, and how many of its shards were read to their end."""

    lane: int
    rows: int
    shards_done: int
    shards: int


Progress = Callable[[Filling], None]


class RowStream:
    """Every row of these boards, in chunks of one board, in no order. Read it once, to its end or not.

    Closing the iterator early ends the queries. What a query raises is raised to whoever reads.
    """

    def __init__(self, scorebook: Scorebook, boards: Sequence[Board], now_at: int) -> None:
        self._scorebook = scorebook
        self._boards = boards
        self._now_at = now_at
        self._chunks: queue.Queue[Chunk | BaseException | None] = queue.Queue(_CHUNKS_AHEAD)
        self._ended = threading.Event()
        self.shards = sum(board.shards for board in boards)
        self.shards_done = 0

    def __iter__(self) -> Iterator[Chunk]:
        feeder = threading.Thread(target=self._query_all, name="rows", daemon=True)
        feeder.start()
        try:
            while (item := self._chunks.get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield item
        finally:
            self._ended.set()
            feeder.join()

    def _query_all(self) -> None:
        with ThreadPoolExecutor(self._scorebook.parallel_queries, thread_name_prefix="rows") as pool:
            for board in self._boards:
                for shard in range(board.shards):
                    pool.submit(self._query, board, shard)
        self._put(None)

    def _query(self, board: Board, shard: int) -> None:
        try:
            for page in self._scorebook.query_shard(board, shard, self._now_at):
                if self._ended.is_set():
                    return
                for first in range(0, len(page), CHUNK_ROWS):
                    self._put((board, page[first : first + CHUNK_ROWS]))
            self.shards_done += 1
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever reads the stream
            self._put(error)

    def _put(self, item: Chunk | BaseException | None) -> None:
        """Wait for room in the queue, unless nobody reads any more."""
        while not self._ended.is_set():
            try:
                self._chunks.put(item, timeout=0.1)
            except queue.Full:
                continue
            return
