"""Rows of the scorebook: the best stays, whatever comes, in whatever order, and the image told is the truth's."""

from __future__ import annotations

import itertools
import random

import pytest

from schemas.rows import Candidate, Row
from stores.deadline import Deadline, DeadlineMissed
from tests.contract.dynamo_side import GAME, NOW, DynamoSide, candidate, leaderboard, row, soon

pytestmark = pytest.mark.contract

ODD_IDS = [
    "a:b",
    "a#b",
    "a",
    "#",
    "{x}",
    "a/b",
    "../",
    "007",
    "7",
    "Zoë",
    "日本",
    "🏆",
    "a b",
    "'",
    '"',
    "?",
    "x" * 128,
]
HELD = row("ann", 10, NOW, "m")


def test_the_rows_in_here_tie_where_they_say_so() -> None:
    assert row("ann", 10, NOW - 1).packed == HELD.packed == row("ann", 10, NOW + 1).packed
    assert row("ann", 10, NOW - 5_000).packed > HELD.packed > row("ann", 10, NOW + 5_000).packed


def test_a_row_that_is_not_there_is_written(dynamo_side: DynamoSide) -> None:
    assert dynamo_side.write(candidate("ann")) == [row("ann")]
    assert dynamo_side.read("ann", "bob") == [row("ann"), None]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("better", "name"),
    [
        (row("ann", 11, NOW + 5_000, "z"), "a higher score"),
        (row("ann", 10, NOW - 5_000, "z"), "the same score in an earlier tick"),
        (row("ann", 10, NOW - 1, "z"), "the same packed value, earlier by a millisecond"),
        (row("ann", 10, NOW, "a"), "the same packed value and time, from a smaller match id"),
        (row("ann", 10, NOW, "Z"), "upper case is smaller, bytewise"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_better_row_takes_the_place(dynamo_side: DynamoSide, better: Row, name: str, known: bool) -> None:  # noqa: ARG001, FBT001
    dynamo_side.put(HELD)
    assert dynamo_side.write(Candidate(GAME, better), known=known) == [better]
    assert dynamo_side.read("ann") == [better]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    "worse",
    [
        row("ann", 9, NOW - 5_000, "a"),
        row("ann", 10, NOW + 5_000, "a"),
        row("ann", 10, NOW + 1, "a"),
        row("ann", 10, NOW, "n"),
        row("ann", 10, NOW, "m"),
        row("ann", 10, NOW, "mm"),
        row("ann", 10, NOW, "é"),
    ],
)
def test_a_row_that_is_not_better_changes_nothing_and_the_held_one_is_told(
    dynamo_side: DynamoSide,
    worse: Row,
    known: bool,  # noqa: FBT001
) -> None:
    dynamo_side.put(HELD)
    assert dynamo_side.write(Candidate(GAME, worse), known=known) == [HELD]
    assert dynamo_side.read("ann") == [HELD]


def test_a_row_that_the_view_claims_and_the_truth_lacks_is_written(dynamo_side: DynamoSide) -> None:
    assert dynamo_side.write(candidate("ann"), known=True) == [row("ann")]
    assert dynamo_side.read("ann") == [row("ann")]


def test_a_repeat_changes_nothing(dynamo_side: DynamoSide) -> None:
    for known in (False, True, True):
        assert dynamo_side.write(candidate("ann"), candidate("bob", 7), known=known) == [row("ann"), row("bob", 7)]
    assert dynamo_side.read("ann", "bob") == [row("ann"), row("bob", 7)]


def test_rows_of_one_player_on_two_boards_are_two_rows(dynamo_side: DynamoSide) -> None:
    boards = leaderboard(windows=["all", "daily", "weekly", "monthly"]).boards_at(NOW)
    dynamo_side.write(*[candidate("ann", n, board=board) for n, board in enumerate(boards)])
    for n, board in enumerate(boards):
        assert dynamo_side.read("ann", board=board) == [row("ann", n, board=board)]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_row_does_not_depend_on_the_order_of_arrival(dynamo_side: DynamoSide, order: tuple[int, ...]) -> None:
    rows = [row("ann", 10, NOW, "m"), row("ann", 10, NOW, "k"), row("ann", 10, NOW + 3, "a"), row("ann", 9, NOW, "a")]
    for index in order:
        dynamo_side.write(Candidate(GAME, rows[index]))
    assert dynamo_side.read("ann") == [rows[1]]


def test_dynamodb_and_python_agree_on_which_row_beats_which(dynamo_side: DynamoSide) -> None:
    rows = [
        row("ann", score, at, match)
        for score in (9, 10)
        for at in (NOW, NOW + 1, NOW + 2_000)
        for match in ("a", "B", "b", "é", "ｱ", "🏆")
    ]
    pairs = random.Random(1).sample(list(itertools.product(rows, rows)), 150)
    for held, other in pairs:
        dynamo_side.put(held)
        written = dynamo_side.scorebook._write_if_beats(Candidate(GAME, other), soon())
        assert (written is not None) is other.beats(held), (held, other)
        assert dynamo_side.read("ann") == [other if other.beats(held) else held]


def test_two_hundred_candidates_of_every_kind_are_settled_in_one_call(dynamo_side: DynamoSide) -> None:
    players = [f"player {n}" for n in range(200)]
    held = {player: row(player, 10, NOW, "m") for n, player in enumerate(players) if n % 4}
    for one in held.values():
        dynamo_side.put(one)
    offers = [row(player, (10, 5, 10, 20)[n % 4], NOW - (n % 4 == 2), "k") for n, player in enumerate(players)]
    # What the view said is wrong for some, either way.
    known = {Candidate(GAME, one).key for n, one in enumerate(offers) if n % 3}
    images = dynamo_side.scorebook.write_rows([Candidate(GAME, one) for one in offers], known, soon())
    expected = [one if n % 4 != 1 else held[one.player_id] for n, one in enumerate(offers)]
    assert [images[Candidate(GAME, one).key] for one in offers] == expected
    assert dynamo_side.read(*players) == expected


def test_nothing_to_write_and_nothing_to_read_ask_nothing(dynamo_side: DynamoSide) -> None:
    assert dynamo_side.scorebook.write_rows([], set(), soon()) == {}
    assert dynamo_side.scorebook.read_rows([], soon()) == {}


def test_ids_of_any_characters_are_kept_apart(dynamo_side: DynamoSide) -> None:
    dynamo_side.write(*[candidate(player, n, match=player) for n, player in enumerate(ODD_IDS)])
    assert dynamo_side.read(*ODD_IDS) == [row(player, n, match=player) for n, player in enumerate(ODD_IDS)]
    dynamo_side.write(*[candidate(player, 99, match=player) for player in ODD_IDS])
    assert dynamo_side.read(*ODD_IDS) == [row(player, 99, match=player) for player in ODD_IDS]


@pytest.mark.parametrize("order", ["higher", "lower"])
def test_the_widest_scores_keep_all_their_digits(dynamo_side: DynamoSide, order: str) -> None:
    widest = 2**53 - 1
    board = leaderboard(order=order, min=0, max=widest).boards_at(NOW)[0]
    dynamo_side.write(candidate("most", widest, board=board), candidate("next", widest - 1, board=board))
    dynamo_side.write(candidate("least", 0, board=board))
    found = dynamo_side.read("most", "next", "least", board=board)
    assert [one and one.score for one in found] == [widest, widest - 1, 0]
    negative = leaderboard("n", order=order, min=-widest, max=0).boards_at(NOW)[0]
    dynamo_side.write(candidate("least", -widest, board=negative))
    assert dynamo_side.read("least", board=negative) == [row("least", -widest, board=negative)]


def test_rows_say_when_they_may_go_where_the_leaderboard_says_so(dynamo_side: DynamoSide) -> None:
    board = leaderboard(windows=["daily"], durable_days={"daily": 400}).boards_at(NOW)[0]
    assert board.rows_expire_at is not None
    dynamo_side.write(candidate("ann", board=board))
    assert dynamo_side.item("ann", board)["expires_at"] == {"N": str(board.rows_expire_at // 1_000)}
    dynamo_side.put(row("ann", 5, board=board), board)
    dynamo_side.write(candidate("ann", 6, board=board))
    assert dynamo_side.item("ann", board)["expires_at"] == {"N": str(board.rows_expire_at // 1_000)}
    dynamo_side.put(row("ann", 6, board=board), board)
    dynamo_side.write(candidate("ann", 6, match="a", board=board))
    assert dynamo_side.item("ann", board)["expires_at"] == {"N": str(board.rows_expire_at // 1_000)}
    dynamo_side.write(candidate("ann"))
    assert "expires_at" not in dynamo_side.item("ann")


@pytest.mark.parametrize("offer", [row("ann", 99), row("ann", 10, NOW - 1)])
def test_a_row_that_a_correction_has_touched_is_left_alone(dynamo_side: DynamoSide, offer: Row) -> None:
    dynamo_side.put(row("ann", 10), rev={"N": "1"})
    with pytest.raises(DeadlineMissed):
        dynamo_side.scorebook.write_rows([Candidate(GAME, offer)], set(), Deadline.after(150))
    assert dynamo_side.read("ann") == [row("ann", 10)]


# ---------------------------------------------------------------- shards


def test_a_board_is_read_shard_by_shard_each_row_once(dynamo_side: DynamoSide) -> None:
    players = [f"player {n}" for n in range(150)] + ODD_IDS
    dynamo_side.write(*[candidate(player, n) for n, player in enumerate(players)])
    other = leaderboard("main-2").boards_at(NOW)[0]
    dynamo_side.write(candidate("a stranger", board=other))
    found = [
        one
        for shard in range(GAME.shards)
        for page in dynamo_side.scorebook.query_shard(GAME, shard, NOW)
        for one in page
    ]
    assert len(found) == len(players)
    assert {one.player_id: one.score for one in found} == {player: n for n, player in enumerate(players)}


def test_rows_past_their_time_are_left_out_although_they_are_still_there(dynamo_side: DynamoSide) -> None:
    board = leaderboard(windows=["daily"], durable_days={"daily": 3}, peak_writes_per_s=700).boards_at(NOW)[0]
    assert (board.shards, board.rows_expire_at is None) == (1, False)
    ends_at = board.rows_expire_at or 0
    dynamo_side.write(*[candidate(f"player {n}", n, board=board) for n in range(20)])

    def count(now_at: int) -> int:
        return sum(len(page) for page in dynamo_side.scorebook.query_shard(board, 0, now_at))

    assert (count(ends_at - 1), count(ends_at), count(ends_at + 1)) == (20, 0, 0)


def test_a_shard_without_rows_gives_none(dynamo_side: DynamoSide) -> None:
    assert [one for page in dynamo_side.scorebook.query_shard(GAME, 0, NOW) for one in page] == []
