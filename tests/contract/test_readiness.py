"""A board whose lane can't prove that it is whole is never served, whichever way it is read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from schemas.errors import BoardNotReady, StoreUnavailable
from schemas.positions import Cursor
from stores.boards import BoardReader
from stores.exchange import Nodes
from tests.contract.redis_side import ALL, DAILY, IDS, LANE, TOPOLOGY, RedisSide, entries, reading

pytestmark = pytest.mark.contract

Read = Callable[[BoardReader], Awaitable[Any]]
READS: dict[str, Read] = {
    "top": lambda reader: reader.top(ALL, 3, "unique", 0),
    "top behind a cursor": lambda reader: reader.top(ALL, 3, "shared", Cursor(5, "zed")),
    "around": lambda reader: reader.around(ALL, "ann", 3, "shared"),
    "place": lambda reader: reader.place(ALL, "ann", "unique"),
    "shared place": lambda reader: reader.place(ALL, "ann", "shared"),
    "places": lambda reader: reader.places(ALL, ["ann", "bob"], "unique"),
    "size": lambda reader: reader.size(ALL),
}
every_read = pytest.mark.parametrize("read", READS.values(), ids=READS)


@every_read
def test_a_lane_that_nobody_built_is_not_served(redis_side: RedisSide, read: Read) -> None:
    with pytest.raises(BoardNotReady) as refusal:
        reading(redis_side, read)
    assert (refusal.value.state, refusal.value.progress) == ("lost", None)


@every_read
def test_a_lane_under_rebuild_is_not_served_and_tells_its_progress(redis_side: RedisSide, read: Read) -> None:
    lanes = redis_side.lanes
    assert lanes.begin(LANE, "e", IDS, 1, lanes.read_meta(LANE), [])
    assert lanes.fill(LANE, "e", 0, 17, entries((ALL, "ann", 1)))
    with pytest.raises(BoardNotReady) as refusal:
        reading(redis_side, read)
    assert (refusal.value.state, refusal.value.progress) == ("rebuilding", "17")


@every_read
@pytest.mark.parametrize("topology", [replace(TOPOLOGY, truth_id="restored"), replace(TOPOLOGY, mapping=2)])
def test_a_lane_of_another_truth_or_layout_is_not_served(redis_side: RedisSide, read: Read, topology: Any) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    with pytest.raises(BoardNotReady):
        reading(redis_side, read, topology)


@every_read
def test_nothing_is_served_before_boards_were_laid_out(redis_side: RedisSide, read: Read) -> None:
    redis_side.make_ready()
    with pytest.raises(BoardNotReady):
        reading(redis_side, read, None)


@every_read
@pytest.mark.parametrize("lost", ["meta", "applied", "boards"])
def test_a_ready_lane_that_lost_a_key_is_not_served(redis_side: RedisSide, read: Read, lost: str) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    redis_side.ask("DEL", getattr(redis_side.names.lane(LANE), lost))
    with pytest.raises(BoardNotReady) as refusal:
        reading(redis_side, read)
    assert refusal.value.state == "lost"


@every_read
def test_a_board_whose_key_was_deleted_by_hand_is_not_served_as_empty(redis_side: RedisSide, read: Read) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1), (DAILY, "ann", 1))
    redis_side.ask("DEL", redis_side.names.lane(LANE).board(ALL.name))
    with pytest.raises(BoardNotReady):
        reading(redis_side, read)
    assert reading(redis_side, lambda reader: reader.size(DAILY)).size == 1


class Between:
    """Finds what `nodes` finds, and lets something happen before the second exchange."""

    def __init__(self, nodes: Nodes, happen: Callable[[], None]) -> None:
        self._nodes = nodes
        self._happen = happen
        self._exchanges = 0

    def client_of(self, key: str) -> Any:
        self._exchanges += 1
        if self._exchanges == 2:
            self._happen()
        return self._nodes.client_of(key)

    async def relocate(self) -> None:
        await self._nodes.relocate()

    async def close(self) -> None:
        await self._nodes.close()


@every_read
def test_a_deleted_board_is_not_served_although_an_update_makes_its_key_anew(redis_side: RedisSide, read: Read) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 5), (ALL, "bob", 1))
    reading(redis_side, read)  # the server knows the scripts from here on
    redis_side.ask("DEL", redis_side.names.lane(LANE).board(ALL.name))
    nodes = Between(redis_side.make_nodes(), lambda: redis_side.project((ALL, "cid", 2)))
    with pytest.raises(BoardNotReady):
        reading(redis_side, read, nodes=nodes)
    assert redis_side.scores(ALL) == {"cid": 2}


@every_read
def test_an_emptied_lane_is_served_again_once_it_was_rebuilt(redis_side: RedisSide, read: Read) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    lanes = redis_side.lanes
    assert lanes.begin(LANE, "second", IDS, 1, lanes.read_meta(LANE), [])
    assert lanes.fill(LANE, "second", 0, 1, entries((ALL, "ann", 1)))
    with pytest.raises(BoardNotReady):
        reading(redis_side, read)
    assert lanes.finish(LANE, "second", 1, {0: (0, None)})
    assert reading(redis_side, read).size == 1


@pytest.mark.parametrize("score", ["1.5", "-1", "inf"])
def test_a_score_that_no_codec_made_is_not_served(redis_side: RedisSide, score: str) -> None:
    redis_side.make_ready()
    redis_side.project((ALL, "ann", 1))
    redis_side.ask("ZADD", redis_side.names.lane(LANE).board(ALL.name), score, "ann")
    for read in READS.values():
        if read not in (READS["top behind a cursor"], READS["size"]):
            with pytest.raises(StoreUnavailable, match="no packed value"):
                reading(redis_side, read)


def test_a_lane_reports_what_it_is(redis_side: RedisSide) -> None:
    def report() -> tuple[str, int | None, str | None]:
        found = reading(redis_side, lambda reader: reader.report(LANE))
        return found.state, found.as_of, found.progress

    assert report() == ("lost", None, None)
    lanes = redis_side.lanes
    assert lanes.begin(LANE, "e", IDS, 1, lanes.read_meta(LANE), [])
    assert lanes.fill(LANE, "e", 0, 3, entries((ALL, "ann", 1)))
    assert report() == ("rebuilding", None, "3")
    assert lanes.finish(LANE, "e", 1, {0: (0, 800)})
    assert report() == ("ready", 800, None)
