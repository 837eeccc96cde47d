"""Boards as they are read: every read agrees with a plain sort, on any ids and any ties."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from schemas.leaderboards import Board
from schemas.positions import Cursor, Position
from stores.boards import BoardReader, Entry, Page, Ties
from stores.clock import now_ms
from stores.lanes import Range
from tests.contract.redis_side import ALL, IDS, LANE, MOST, RedisSide, entries, leaderboard, reading

pytestmark = pytest.mark.contract

NOW = now_ms()
GAME = leaderboard(min=-5, max=5, windows=["all"]).boards_at(NOW)[0]
# Bytewise order differs from that of code points in UTF-16, of locales, and of letters without case.
IDS_IN_ORDER = ["\U0001f3c6", "日本", "ｱ", "é", "e\u0327x", "zoë", "zoe", "Zoë", "a:b", "a", "A", "7", "007", "#"]


def packed(score: int, ago_ms: int = 0) -> int:
    return GAME.codec.pack(score, NOW - ago_ms)


def in_order(images: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """The whole rule: greater packed first, equal ones by their players' bytes, descending."""
    return sorted(images, key=lambda image: (image[1], image[0].encode()), reverse=True)


def ranked(images: Sequence[tuple[str, int]], ties: Ties, board: Board = GAME) -> list[Entry]:
    """The whole board, by the rule and without Redis."""
    found: list[Entry] = []
    for index, (player, value) in enumerate(in_order(images)):
        same = ties == "shared" and found and board.codec.score(found[-1].packed) == board.codec.score(value)
        found.append(Entry(found[-1].rank if same else index + 1, player, value))
    return found


def fill(side: RedisSide, images: Sequence[tuple[str, int]], board: Board = GAME) -> None:
    side.make_ready()
    side.project(*[(board, player, value) for player, value in images])


def some_board(seed: int) -> list[tuple[str, int]]:
    """Few scores and few instants, so that many are equal."""
    chosen = random.Random(seed)
    players = [f"{one}{n}" for one in IDS_IN_ORDER for n in range(3)]
    times = [(score, ago_ms) for score in (-5, 0, 5) for ago_ms in (0, 5_000, 9_000)]
    return [(player, packed(*chosen.choice(times))) for player in chosen.sample(players, chosen.randint(1, 40))]


# ---------------------------------------------------------------- pages


@pytest.mark.parametrize("ties", ["unique", "shared"])
@pytest.mark.parametrize("seed", range(6))
def test_every_page_is_a_piece_of_the_sorted_board(redis_side: RedisSide, seed: int, ties: Ties) -> None:
    images = some_board(seed)
    fill(redis_side, images)
    whole = ranked(images, ties)

    async def read(reader: BoardReader) -> None:
        for first in range(len(whole) + 2):
            for count in (1, 3, 100):
                page = await reader.top(GAME, count, ties, first)
                assert (page.size, page.first) == (len(whole), first)
                assert page.entries == whole[first : first + count]

    reading(redis_side, read)


@pytest.mark.parametrize("ties", ["unique", "shared"])
@pytest.mark.parametrize("seed", range(6))
def test_pages_behind_cursors_give_every_entry_once(redis_side: RedisSide, seed: int, ties: Ties) -> None:
    images = some_board(seed)
    fill(redis_side, images)

    async def read(reader: BoardReader) -> list[Entry]:
        page = await reader.top(GAME, 3, ties, 0)
        found = list(page.entries)
        while page.entries:
            page = await reader.top(GAME, 3, ties, Cursor(found[-1].packed, found[-1].player_id))
            assert page.first == len(found)
            found += page.entries
        return found

    assert reading(redis_side, read) == ranked(images, ties)


@pytest.mark.parametrize("cursor_player", [*IDS_IN_ORDER, "", "0", "b", "zz", "\U0010ffff", "é\u0301", "日"])
def test_a_page_begins_behind_the_cursors_place_whether_anybody_stands_there_or_not(
    redis_side: RedisSide, cursor_player: str
) -> None:
    images = [(player, packed(1)) for player in IDS_IN_ORDER] + [("above", packed(2)), ("below", packed(0))]
    fill(redis_side, images)
    cursor = Cursor(packed(1), cursor_player)

    async def read(reader: BoardReader) -> Page:
        return await reader.top(GAME, 100, "unique", cursor)

    behind = [one for one in in_order(images) if (one[1], one[0].encode()) < (cursor.packed, cursor_player.encode())]
    assert [(one.player_id, one.packed) for one in reading(redis_side, read).entries] == behind


def test_a_page_goes_on_behind_an_entry_that_has_moved_up_or_gone(redis_side: RedisSide) -> None:
    fill(redis_side, [(f"p{n}", packed(n)) for n in range(5)])
    cursor = Cursor(packed(2), "p2")

    async def read(reader: BoardReader) -> Page:
        return await reader.top(GAME, 2, "unique", cursor)

    assert [one.player_id for one in reading(redis_side, read).entries] == ["p1", "p0"]
    redis_side.project((GAME, "p2", packed(5)))
    moved = reading(redis_side, read)
    assert (moved.first, [one.player_id for one in moved.entries]) == (3, ["p1", "p0"])
    redis_side.ask("ZREM", redis_side.names.lane(LANE).board(GAME.name), "p2")
    gone = reading(redis_side, read)
    assert (gone.first, [one.player_id for one in gone.entries]) == (2, ["p1", "p0"])


def test_a_cursor_at_the_last_entry_gives_an_empty_page(redis_side: RedisSide) -> None:
    fill(redis_side, [("ann", packed(1))])

    async def read(reader: BoardReader) -> Page:
        return await reader.top(GAME, 9, "unique", Cursor(packed(1), "ann"))

    page = reading(redis_side, read)
    assert (page.size, page.first, page.entries) == (1, 1, [])


def test_packed_values_near_the_greatest_keep_all_digits_in_every_read(redis_side: RedisSide) -> None:
    images = [("ann", MOST), ("bob", MOST - 1), ("cid", MOST - 2)]
    fill(redis_side, images, ALL)

    async def read(reader: BoardReader) -> None:
        for ties in ("unique", "shared"):
            whole = ranked(images, ties, ALL)
            assert (await reader.top(ALL, 3, ties, 0)).entries == whole
            assert (await reader.top(ALL, 3, ties, Cursor(MOST - 1, "bob"))).entries == whole[2:]
            assert (await reader.around(ALL, "bob", 1, ties)).entries == whole
            assert (await reader.place(ALL, "bob", ties)).entries == [whole[1]]
            assert (await reader.places(ALL, ["cid", "ann"], ties)).entries == [whole[2], whole[0]]

    reading(redis_side, read)


# ---------------------------------------------------------------- players


@pytest.mark.parametrize("ties", ["unique", "shared"])
@pytest.mark.parametrize("seed", range(4))
def test_neighbours_and_places_agree_with_the_sorted_board(redis_side: RedisSide, seed: int, ties: Ties) -> None:
    images = some_board(seed)
    fill(redis_side, images)
    whole = ranked(images, ties)

    async def read(reader: BoardReader) -> None:
        for index, entry in enumerate(whole):
            for reach in (0, 2, 50):
                page = await reader.around(GAME, entry.player_id, reach, ties)
                first = max(0, index - reach)
                assert (page.size, page.first) == (len(whole), first)
                assert page.entries == whole[first : index + reach + 1]
            assert (await reader.place(GAME, entry.player_id, ties)).entries == [entry]
        asked = [whole[-1].player_id, "nobody", whole[0].player_id]
        places = await reader.places(GAME, asked, ties)
        assert (places.size, places.entries) == (len(whole), [whole[-1], None, whole[0]])

    reading(redis_side, read)


@pytest.mark.parametrize("ties", ["unique", "shared"])
def test_who_is_not_on_the_board_has_no_place_and_no_neighbours(redis_side: RedisSide, ties: Ties) -> None:
    fill(redis_side, [("ann", packed(1))])

    async def read(reader: BoardReader) -> None:
        page = await reader.around(GAME, "nobody", 3, ties)
        assert (page.size, page.entries) == (1, [])
        place = await reader.place(GAME, "nobody", ties)
        assert (place.size, place.entries) == (1, [None])

    reading(redis_side, read)


def test_a_board_that_nobody_has_played_on_is_empty(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (0, 700)})

    async def read(reader: BoardReader) -> None:
        assert (await reader.top(GAME, 3, "unique", 0)) == Page(700, 0, 0, [])
        assert (await reader.top(GAME, 3, "shared", Cursor(1, "ann"))).entries == []
        assert (await reader.around(GAME, "ann", 3, "shared")).entries == []
        assert (await reader.place(GAME, "ann", "unique")).entries == [None]
        assert (await reader.places(GAME, ["ann"], "shared")).entries == [None]
        assert (await reader.size(GAME)).size == 0

    reading(redis_side, read)


def test_replies_say_up_to_when_they_are_complete(redis_side: RedisSide) -> None:
    redis_side.make_ready()
    redis_side.project((GAME, "ann", packed(1)))

    async def read(reader: BoardReader) -> list[int | None]:
        page = await reader.top(GAME, 1, "unique", 0)
        place = await reader.place(GAME, "ann", "unique")
        return [page.as_of, place.as_of, (await reader.size(GAME)).as_of, (await reader.report(LANE)).as_of]

    assert reading(redis_side, read) == [None] * 4
    redis_side.lanes.project(LANE, IDS, [Range(0, 0, 0, 500), Range(1, 0, 0, 400)], entries())
    assert reading(redis_side, read) == [400] * 4


# ---------------------------------------------------------------- positions


def test_a_position_is_reached_once_the_lane_has_applied_what_stands_there(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (5, None), 1: (7, None)})

    async def read(reader: BoardReader) -> list[bool]:
        asked = [(0, 4), (0, 5), (1, 6), (1, 7), (9, 0)]
        return [await reader.has_applied(GAME, Position(IDS.log_id, *one)) for one in asked]

    assert reading(redis_side, read) == [True, False, True, False, False]


def test_a_position_in_another_log_is_never_reached_even_when_both_are_asked_at_once(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (5, None)})

    async def read(reader: BoardReader) -> list[bool]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(reader.has_applied(GAME, Position(log_id, 0, 1)))
                for log_id in (IDS.log_id, "another-log", IDS.log_id)
            ]
        return [task.result() for task in tasks]

    assert reading(redis_side, read) == [True, False, True]


def test_no_position_is_reached_in_a_lane_that_is_not_ready(redis_side: RedisSide) -> None:
    redis_side.make_ready({0: (5, None)})
    lanes = redis_side.lanes
    assert lanes.begin(LANE, "e", IDS, 1, lanes.read_meta(LANE), [])

    async def read(reader: BoardReader) -> bool:
        return await reader.has_applied(GAME, Position(IDS.log_id, 0, 1))

    assert reading(redis_side, read) is False
