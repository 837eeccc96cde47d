"""Live: one poll for all who listen to a board, the newest list alone for who is slow, nothing left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from api.live import Feeds, Subscription
from schemas.errors import BoardNotReady
from schemas.leaderboards import Board, Definition, define
from stores.boards import Entry, Page

NOW = 1_796_000_000_000
POLL_S = 0.02


def a_board(name: str = "game") -> Board:
    leaderboard = define(name, Definition(order="higher", min=0, max=1_000, windows=("all", "daily")), NOW)
    return leaderboard.boards_at(NOW)[1]


class CountingReader:
    """Answers a page whose first entry is `leader`; counts how often it was asked."""

    def __init__(self) -> None:
        self.leader = "zed"
        self.asked: list[int] = []
        self.ready = True

    async def top(self, _board: Board, count: int, _ties: str, _start: int) -> Page:
        self.asked.append(count)
        if not self.ready:
            raise BoardNotReady(0, "rebuilding")
        players = [self.leader, *(f"p{n}" for n in range(count - 1))]
        return Page(NOW, 5_000, 0, [Entry(rank, player, 10_000 - rank) for rank, player in enumerate(players, 1)])


def feeds_over(reader: CountingReader, now_at: Callable[[], int] = lambda: NOW) -> Feeds:
    return Feeds(reader, now_at, POLL_S)  # type: ignore[arg-type]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():  # noqa: ASYNC110 - what is waited for is in the code under test, which has no event for it
            await asyncio.sleep(POLL_S)


async def event_of(subscription: Subscription) -> bytes:
    async with asyncio.timeout(5):
        while subscription.event is None:
            subscription.changed.clear()
            await subscription.changed.wait()
    event, subscription.event = subscription.event, None
    return event


def test_two_thousand_subscribers_of_a_board_cost_one_poll() -> None:
    async def run() -> None:
        reader = CountingReader()
        feeds, board = feeds_over(reader), a_board()
        subscriptions = [Subscription(10 if n % 2 else 3, b"") for n in range(2_000)]
        for one in subscriptions:
            feeds.subscribe(board, one)
        assert feeds.subscribers == 2_000
        events = [await event_of(one) for one in subscriptions]
        # All got a list, of their own length, from a few polls of the longest.
        assert len(reader.asked) < 20
        assert set(reader.asked) == {10}
        assert (events[0].count(b'"rank"'), events[1].count(b'"rank"')) == (3, 10)
        feeds.close()

    asyncio.run(run())


def test_a_list_that_did_not_change_is_not_sent_again_and_a_change_is() -> None:
    async def run() -> None:
        reader = CountingReader()
        feeds, board, one = feeds_over(reader), a_board(), Subscription(3, b"")
        feeds.subscribe(board, one)
        assert b'"zed"' in await event_of(one)
        before = len(reader.asked)
        await until(lambda: len(reader.asked) >= before + 5)
        assert one.event is None
        reader.leader = "amy"
        assert b'"amy"' in await event_of(one)
        feeds.close()

    asyncio.run(run())


def test_who_is_slow_finds_the_newest_list_alone() -> None:
    async def run() -> None:
        reader = CountingReader()
        feeds, board, slow = feeds_over(reader), a_board(), Subscription(1, b"")
        feeds.subscribe(board, slow)
        for leader in ("a", "b", "c"):
            reader.leader = leader
            target = len(reader.asked) + 2
            await until(lambda target=target: len(reader.asked) >= target)  # type: ignore[misc]
        event = await event_of(slow)
        assert b'"c"' in event
        assert event.count(b"event: top") == 1
        assert slow.event is None
        feeds.close()

    asyncio.run(run())


def test_the_last_one_who_leaves_ends_the_poll() -> None:
    async def run() -> None:
        reader = CountingReader()
        feeds, board = feeds_over(reader), a_board()
        pair = [Subscription(1, b""), Subscription(1, b"")]
        for one in pair:
            feeds.subscribe(board, one)
        await event_of(pair[0])
        for one in pair:
            feeds.unsubscribe(board, one)
        asked = len(reader.asked)
        await asyncio.sleep(5 * POLL_S)
        assert len(reader.asked) == asked
        assert feeds.subscribers == 0
        assert len(asyncio.all_tasks()) == 1  # this one

    asyncio.run(run())


def test_while_the_board_is_not_ready_nothing_is_sent_and_then_it_goes_on() -> None:
    async def run() -> None:
        reader = CountingReader()
        feeds, board, one = feeds_over(reader), a_board(), Subscription(1, b"")
        reader.ready = False
        feeds.subscribe(board, one)
        await until(lambda: len(reader.asked) >= 5)
        assert one.event is None
        reader.ready = True
        assert b'"zed"' in await event_of(one)
        feeds.close()

    asyncio.run(run())


@pytest.mark.parametrize("why", ["the board expires", "the server stops"])
def test_streams_end_when(why: str) -> None:
    async def run() -> None:
        board = a_board()
        now = [NOW]
        feeds, one = feeds_over(CountingReader(), lambda: now[0]), Subscription(1, b"")
        feeds.subscribe(board, one)
        await event_of(one)
        if why == "the board expires":
            now[0] = board.expires_at or 0
        else:
            feeds.close()
        await until(lambda: one.ended)
        assert feeds.subscribers == 0
        late = Subscription(1, b"")
        feeds.subscribe(board, late)
        assert late.ended == (why == "the server stops")
        feeds.close()

    asyncio.run(run())
