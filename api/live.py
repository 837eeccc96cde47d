"""Live: a board's top list as server-sent events. All subscribers of a board share one poll per process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from api.calls import Call, ClientGone
from api.lookups import Lookups
from api.parameters import Parameters
from api.replies import Stream
from api.toplists import encode_page
from schemas.errors import BoardNotReady, StoreUnavailable
from schemas.leaderboards import Board
from stores.boards import BoardReader, Page

POLL_S = 0.25
HEARTBEAT_S = 15.0
MOST_ENTRIES = 1_000
DEFAULT_ENTRIES = 10

log = structlog.get_logger("api")


@dataclass(eq=False, slots=True)
class Subscription:
    """One reader of a feed. It holds the newest event alone: who is slow skips what came between."""

    count: int
    tag: bytes
    event: bytes | None = None
    ended: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def offer(self, tag: bytes, body: bytes) -> None:
        """Take this list where it differs from the last one."""
        if tag != self.tag:
            self.tag = tag
            self.event = to_event(body)
            self.changed.set()

    def end(self) -> None:
        """No more will come."""
        self.ended = True
        self.changed.set()


class _Feed:
    """The one poll of a board, for as long as somebody listens."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.subscriptions: set[Subscription] = set()
        self.task: asyncio.Task[None] | None = None


class Feeds:
    """The feeds of one process. A board costs one read of Redis every POLL_S, however many listen."""

    def __init__(self, reader: BoardReader, now_at: Callable[[], int], poll_s: float = POLL_S) -> None:
        self._reader = reader
        self._now_at = now_at
        self._poll_s = poll_s
        self._feeds: dict[str, _Feed] = {}
        self._ended = False

    @property
    def subscribers(self) -> int:
        """How many listen now."""
        return sum(len(feed.subscriptions) for feed in self._feeds.values())

    def subscribe(self, board: Board, subscription: Subscription) -> None:
        """Offer the board's top list to the subscription from now on."""
        if self._ended:
            subscription.end()
            return
        feed = self._feeds.get(board.name)
        if feed is None:
            feed = self._feeds[board.name] = _Feed(board)
            feed.task = asyncio.get_running_loop().create_task(self._poll(feed))
        feed.subscriptions.add(subscription)

    def unsubscribe(self, board: Board, subscription: Subscription) -> None:
        """Offer it no more; the last one who leaves ends the poll."""
        feed = self._feeds.get(board.name)
        if feed is None:
            return
        feed.subscriptions.discard(subscription)
        if not feed.subscriptions:
            self._end(feed)

    def close(self) -> None:
        """End all streams, so that a stopping server need not wait for them."""
        self._ended = True
        for feed in list(self._feeds.values()):
            self._end(feed)

    def _end(self, feed: _Feed) -> None:
        self._feeds.pop(feed.board.name, None)
        if feed.task is not None:
            feed.task.cancel()
        for subscription in feed.subscriptions:
            subscription.end()

    async def _poll(self, feed: _Feed) -> None:
        while True:
            await asyncio.sleep(self._poll_s)
            if feed.board.is_expired(self._now_at()):
                self._end(feed)
                return
            try:
                most = max(one.count for one in feed.subscriptions)
                page = await self._reader.top(feed.board, most, "unique", 0)
                for subscription in feed.subscriptions:
                    subscription.offer(*encode_page(feed.board, _first(page, subscription.count), "unique"))
            except (BoardNotReady, StoreUnavailable):
                continue  # nothing is sent rather than something incomplete; the stream goes on when it is whole again
            except Exception:
                log.exception("a feed met a defect", board=feed.board.name)


class Live:
    """GET /v1/boards/{board}/live."""

    def __init__(self, lookups: Lookups, reader: BoardReader, feeds: Feeds) -> None:
        self._lookups = lookups
        self._reader = reader
        self._feeds = feeds

    async def stream(self, call: Call) -> Stream:
        """The top list at once, then on every change, at most 4 a second. Last-Event-ID is not needed and not read."""
        board = self._lookups.board(call.part("board"))
        parameters = Parameters(call.query_string, ("n",))
        count = parameters.integer("n", 1, MOST_ENTRIES, DEFAULT_ENTRIES)
        parameters.check()
        page = await self._reader.top(board, count, "unique", 0)
        tag, body = encode_page(board, page, "unique")
        subscription = Subscription(count, tag, to_event(body))

        async def run(send: Callable[[bytes], Awaitable[None]]) -> None:
            self._feeds.subscribe(board, subscription)
            gone = asyncio.create_task(_gone(call))
            try:
                await _pass_on(subscription, gone, send)
            finally:
                self._feeds.unsubscribe(board, subscription)
                gone.cancel()

        return Stream(run)


async def _pass_on(
    subscription: Subscription, gone: asyncio.Task[None], send: Callable[[bytes], Awaitable[None]]
) -> None:
    """Send the newest event whenever there is one, and a comment where there was none for long."""
    while not gone.done():
        if subscription.event is not None:
            event, subscription.event = subscription.event, None
            await send(event)
            continue
        if subscription.ended:
            return
        subscription.changed.clear()
        waiting = asyncio.create_task(subscription.changed.wait())
        done, _ = await asyncio.wait({waiting, gone}, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if not done:
            await send(b": still here\n\n")


async def _gone(call: Call) -> None:
    """Returns once the client has gone away."""
    try:
        while True:
            await call.discard_body()
            await call.next_message()
    except ClientGone:
        return


def to_event(body: bytes) -> bytes:
    """The event `top` with a body that has no line breaks, as JSON from our encoder has none."""
    return b"event: top\ndata: " + body + b"\n\n"


def _first(page: Page, count: int) -> Page:
    """The first entries of a page as a page of their own, made once for each count."""
    if len(page.entries) <= count:
        return page
    cut = page.cuts.get(count)
    if cut is None:
        cut = page.cuts[count] = Page(page.as_of, page.size, page.first, page.entries[:count])
    return cut
