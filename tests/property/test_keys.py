"""Keys: different things never share one, hashes are the same everywhere and spread evenly."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import MatchEvent
from schemas.ids import check_id, check_leaderboard_id
from schemas.keys import LaneKeys, Names
from schemas.leaderboards import Definition, Leaderboard
from schemas.rows import Row, RowKey, Topology, board_shard, candidates_of, receipt_key, receipt_of, shard_key

AWKWARD = ("*", "=", "#", ":", "a", "=a", "*=", "#*", "a#=", "a:b", "a/b", "../", ".", "{x}", "{0}", "}", "é", "🦊")
FOUR_KINDS = Definition(order="higher", min=0, max=100, windows=("all", "daily", "weekly", "monthly"))
AT = 1_792_843_200_000  # 2026-10-24T12:00:00Z

ids = st.sampled_from(AWKWARD) | st.text("*=#:{}/.a0 ", min_size=1, max_size=6)
leaderboard_ids = st.sampled_from(("a", "b", "a-b", "0", "main", "meta", "daily2")) | st.from_regex(
    r"[ab0-9][ab0-9-]{0,3}", fullmatch=True
)


def board_key_of(leaderboard: str, kind: int) -> str:
    return Leaderboard(leaderboard, FOUR_KINDS).boards_at(AT)[kind].name


def event_of(match_id: str, leaderboard: str, player_id: str | None) -> MatchEvent:
    """A match reported whole where no player is named."""
    results = (("zed", 1),) if player_id is None else ((player_id, 1),)
    return MatchEvent(
        match_id, Leaderboard(leaderboard, FOUR_KINDS), AT, time_given=True, whole=player_id is None, results=results
    )


@given(st.lists(st.tuples(ids, leaderboard_ids, ids | st.none()), min_size=2, max_size=30, unique=True))
def test_two_reports_never_share_a_receipt(reports: list[tuple[str, str, str | None]]) -> None:
    assert len({receipt_key(event_of(*report)) for report in reports}) == len(reports)


def test_a_player_called_star_shares_no_receipt_with_the_whole_match() -> None:
    keys = [receipt_key(event_of("m", "main", player)).part for player in (None, "*", "=*", "=")]
    assert keys == ["main#*", "main#=*", "main#==*", "main#=="]


@given(st.lists(st.tuples(leaderboard_ids, st.integers(0, 3), ids), min_size=2, max_size=30, unique=True))
def test_two_players_or_boards_never_share_a_row(rows: list[tuple[str, int, str]]) -> None:
    keys = [RowKey(board_key_of(leaderboard, kind), player_id) for leaderboard, kind, player_id in rows]
    assert len(set(keys)) == len(rows)
    boards = {key.board for key in keys}
    assert len({shard_key(board, shard) for board in boards for shard in (0, 1, 10)}) == len(boards) * 3


@given(st.lists(st.tuples(leaderboard_ids, st.integers(0, 3)), min_size=1, max_size=20, unique=True))
def test_a_board_never_has_the_key_of_another_or_of_its_lane(boards: list[tuple[str, int]]) -> None:
    keys = LaneKeys("lb", 3)
    own = [keys.meta, keys.applied, keys.as_of, keys.boards, keys.expelled]
    named = [keys.board(board_key_of(leaderboard, kind)) for leaderboard, kind in boards]
    assert len({*own, *named}) == len(own) + len(boards)


def hash_tag_of(key: str) -> str:
    """What Redis hashes, by the rule of its cluster specification."""
    start = key.find("{")
    end = key.find("}", start + 1)
    return key[start + 1 : end] if start >= 0 and end > start + 1 else key


@given(st.integers(0, 1_000_000), leaderboard_ids, st.integers(0, 3))
def test_all_keys_of_a_lane_share_its_hash_tag(lane: int, leaderboard: str, kind: int) -> None:
    keys = Names("lb").lane(lane)
    board = keys.board(board_key_of(leaderboard, kind))
    for key in (keys.meta, keys.applied, keys.as_of, keys.boards, keys.expelled, board):
        assert hash_tag_of(key) == str(lane)
        assert key.startswith("lb:")


def test_lanes_and_prefixes_share_nothing() -> None:
    keys = [LaneKeys(prefix, lane) for prefix in ("lb", "lb-2", "lb-updater") for lane in (0, 1, 10)]
    named = [
        key for one in keys for key in (one.meta, one.applied, one.as_of, one.boards, one.expelled, one.board("a:all"))
    ]
    assert len(set(named)) == len(named)
    names = [Names(prefix) for prefix in ("lb", "lb-2", "lb-match", "lb-updater")]
    stores = [
        name for one in names for name in (one.scores, one.matches, one.leaderboards, one.events, one.dead_letters)
    ]
    assert len(set(stores)) == len(stores)


def test_the_names_in_the_stores_are_those_of_the_design() -> None:
    names = Names("lb")
    assert (names.scores, names.matches, names.leaderboards) == ("lb-scores", "lb-matches", "lb-leaderboards")
    assert (names.events, names.dead_letters) == ("lb-match-events", "lb-match-events.dlq")
    assert names.group("T1") == "lb-updater-T1"
    assert names.lane(7).board("main:all") == "lb:{7}:main:all"
    assert names.lane(7).meta == "lb:{7}:meta"


# By sha256sum: the first eight hex digits, as a number.
PINNED = {
    "zed": 2928627840,
    "amy": 419871868,
    "a:b": 1736680222,
    "é": 1251562878,
    "007": 1654607097,
    "7": 2030201243,
}
PINNED_BOARDS = {"ranked:weekly:2026-W43": 1198206847, "main:all": 803251041}


@pytest.mark.parametrize(("player_id", "number"), PINNED.items())
@pytest.mark.parametrize("peak", [700, 5_600, 5_601, 70_000])
def test_the_shard_of_a_player_is_pinned(player_id: str, number: int, peak: int) -> None:
    definition = Definition(order="higher", min=0, max=100, windows=("all",), peak_writes_per_s=peak)
    (board,) = Leaderboard("main", definition).boards_at(AT)
    assert board_shard(board, player_id) == f"main:all#{number % definition.shards}"


@pytest.mark.parametrize(("board", "number"), PINNED_BOARDS.items())
@pytest.mark.parametrize("lanes", [1, 2, 16, 64])
def test_the_lane_of_a_board_is_pinned(board: str, number: int, lanes: int) -> None:
    assert Topology(lanes, 1, "t").lane_of(board) == number % lanes


def test_another_process_with_another_hash_seed_finds_the_same_lane() -> None:
    program = "from schemas.rows import Topology; print(Topology(1000, 1, 't').lane_of('main:all'))"
    for seed in ("0", "1", "4242"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        assert int(run.stdout) == 803251041 % 1000


def spread_of(places: list[str]) -> float:
    """How far the fullest or the emptiest place is from its even share."""
    counts = Counter(places).values()
    even = len(places) / len(counts)
    return max(max(counts) / even - 1, 1 - min(counts) / even)


def test_players_are_spread_evenly_over_the_shards() -> None:
    (board, *_) = Leaderboard("main", FOUR_KINDS).boards_at(AT)
    places = [board_shard(board, f"player-{number}") for number in range(40_000)]
    assert set(places) == {f"main:all#{shard}" for shard in range(8)}
    assert spread_of(places) < 0.06


def test_boards_are_spread_evenly_over_the_lanes() -> None:
    topology = Topology(16, 1, "t")
    places = [
        str(topology.lane_of(f"game-{number}:daily:2026-10-{day:02d}"))
        for number in range(1_500)
        for day in range(1, 32)
    ]
    assert len(set(places)) == 16
    assert spread_of(places) < 0.08


small_rows = st.builds(
    Row,
    player_id=st.just("zed"),
    score=st.just(0),
    packed=st.integers(0, 2),
    achieved_at=st.integers(0, 2),
    match_id=st.sampled_from(("m", "m1", "m10", "m2", "M", "é", "🦊", "\uffff")),
)


@given(small_rows, small_rows, small_rows)
def test_rows_have_a_strict_total_order(one: Row, two: Row, three: Row) -> None:
    assert not one.beats(one)
    assert one.beats(two) + two.beats(one) == (one != two)
    if one.beats(two) and two.beats(three):
        assert one.beats(three)


@given(
    st.permutations([Row("zed", 0, packed, at, match) for packed in (1, 2) for at in (5, 6) for match in ("a", "b")])
)
def test_the_row_that_stays_does_not_depend_on_the_order_of_arrival(arrivals: list[Row]) -> None:
    kept = arrivals[0]
    for row in arrivals[1:]:
        kept = row if row.beats(kept) else kept
    assert kept == Row("zed", 0, 2, 5, "a")


@given(small_rows, small_rows)
def test_match_ids_compare_as_their_utf8_bytes_do(one: Row, two: Row) -> None:
    if (one.packed, one.achieved_at) == (two.packed, two.achieved_at):
        assert one.beats(two) == (one.match_id.encode() < two.match_id.encode())


@given(st.lists(st.tuples(ids, st.integers(0, 100)), min_size=1, max_size=8, unique_by=lambda result: result[0]))
def test_an_event_makes_one_candidate_for_each_player_and_window(results: list[tuple[str, int]]) -> None:
    leaderboard = Leaderboard("main", FOUR_KINDS)
    event = MatchEvent("m", leaderboard, AT, time_given=True, whole=True, results=tuple(results))
    candidates = candidates_of(event)
    boards = {"main:all", "main:daily:2026-10-24", "main:weekly:2026-W43", "main:monthly:2026-10"}
    assert {one.key for one in candidates} == {RowKey(board, player) for board in boards for player, _ in results}
    assert len(candidates) == 4 * len(results)
    for one in candidates:
        assert one.row.packed == one.board.codec.pack(one.row.score, AT)
        assert (one.row.achieved_at, one.row.match_id) == (AT, "m")
    assert receipt_of(event, AT + 5).results == dict(results)


@given(st.text(max_size=140))
def test_an_id_is_taken_exactly_when_the_rules_allow_it(text: str) -> None:
    allowed = (
        1 <= len(text.encode("utf-8", "surrogatepass")) <= 128
        and unicodedata.normalize("NFC", text) == text
        and not any(unicodedata.category(char) in ("Cc", "Cs") for char in text)
    )
    try:
        taken = check_id(text) == text
    except ValueError:
        taken = False
    assert taken == allowed


@given(st.text("abz09-AZ_.:# é\n", max_size=66) | st.sampled_from(("all", "daily", "weekly", "monthly")))
def test_a_leaderboard_id_is_taken_exactly_when_the_rules_allow_it(text: str) -> None:
    allowed = (
        1 <= len(text) <= 63
        and set(text) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
        and text[0] != "-"
        and text not in ("all", "daily", "weekly", "monthly")
    )
    try:
        taken = check_leaderboard_id(text) == text
    except ValueError:
        taken = False
    assert taken == allowed
