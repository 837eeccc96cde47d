"""Top lists: pages, cursors, ties, tags."""

from __future__ import annotations

from typing import Any

import pytest

from stores.clock import now_ms
from tests.api.world import HOUR_MS, World, faults, problem

TOP = "/v1/boards/ranked:all/top"


def entries(world: World, path: str) -> list[dict[str, Any]]:
    response = world.api.get(path)
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()["entries"]
    return found


@pytest.fixture(scope="module")
def tied(shared: World) -> World:
    """Five players, three of them with 20."""
    at = now_ms() - 10 * HOUR_MS
    scores = {
        "a": (30, at),
        "b": (20, at + HOUR_MS),
        "c": (20, at + 2 * HOUR_MS),
        "d": (10, at),
        "e": (20, at + 3 * HOUR_MS),
    }
    shared.put(shared.board(), scores)
    return shared


@pytest.mark.parametrize(
    ("query", "ranks"),
    [
        ("", ["1a", "2b", "3c", "4e", "5d"]),
        ("?ties=unique", ["1a", "2b", "3c", "4e", "5d"]),
        ("?ties=shared", ["1a", "2b", "2c", "2e", "5d"]),
        ("?n=2&from_rank=3", ["3c", "4e"]),
        ("?n=2&from_rank=3&ties=shared", ["2c", "2e"]),
        ("?from_rank=5", ["5d"]),
        ("?from_rank=6", []),
        (f"?from_rank={2**53 - 1}&n=1000", []),
    ],
)
def test_a_page_shows_ranks_from_where_it_begins(tied: World, query: str, ranks: list[str]) -> None:
    assert [f"{one['rank']}{one['player_id']}" for one in entries(tied, TOP + query)] == ranks


def test_an_entry_has_exactly_its_four_members(tied: World) -> None:
    body = tied.api.get(f"{TOP}?n=1").json()
    assert set(body) == {"board", "as_of", "size", "entries", "next"}
    (entry,) = body["entries"]
    assert set(entry) == {"rank", "player_id", "score", "achieved_at"}
    assert (body["board"], body["size"]) == ("ranked:all", 5)


@pytest.mark.parametrize("ties", ["unique", "shared"])
def test_cursors_lead_through_equal_scores_to_everybody_once(tied: World, ties: str) -> None:
    seen: list[str] = []
    path = f"{TOP}?n=2&ties={ties}"
    page = tied.api.get(path).json()
    for _ in range(3):
        seen += [one["player_id"] for one in page["entries"]]
        if page["next"] is None:
            break
        page = tied.api.get(f"{path}&cursor={page['next']}").json()
    assert seen == ["a", "b", "c", "e", "d"]


def test_the_last_full_page_has_no_next(tied: World) -> None:
    assert tied.api.get(f"{TOP}?n=5").json()["next"] is None
    assert tied.api.get(f"{TOP}?n=4").json()["next"] is not None


def test_a_cursor_holds_still_while_players_pass(world: World) -> None:
    at = now_ms() - HOUR_MS
    world.put(world.board(), {f"p{score}": (score, at) for score in range(10, 100, 10)})
    page = world.api.get(f"{TOP}?n=3").json()
    assert [one["player_id"] for one in page["entries"]] == ["p90", "p80", "p70"]
    # The cursor's own entry moves away, and others arrive above.
    world.put(world.board(), {"new": (500, at), "p10": (400, at), "p70": (300, at)})
    page = world.api.get(f"{TOP}?n=3&cursor={page['next']}").json()
    assert [(one["rank"], one["player_id"]) for one in page["entries"]] == [(6, "p60"), (7, "p50"), (8, "p40")]


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("n=0", "n"),
        ("n=-1", "n"),
        ("n=1001", "n"),
        ("n=ten", "n"),
        ("n=1.0", "n"),
        ("n=1e2", "n"),
        ("n=", "n"),
        ("n", "n"),
        ("n=+5", "n"),
        ("n=05", "n"),
        ("n=%D9%A1", "n"),
        ("n=5&n=5", "n"),
        ("N=5", "N"),
        ("limit=5", "limit"),
        ("from_rank=0", "from_rank"),
        (f"from_rank={2**53}", "from_rank"),
        ("ties=dense", "ties"),
        ("ties=", "ties"),
        ("cursor=nonsense", "cursor"),
        ("cursor=", "cursor"),
        ("after=nonsense", "after"),
        ("after=", "after"),
        ("wait=0", "wait"),
        ("wait=5.1", "wait"),
        ("wait=nan", "wait"),
        ("wait=1e0", "wait"),
        ("n=%FF", "n"),
    ],
)
def test_a_parameter_out_of_its_bounds_is_refused(shared: World, query: str, place: str) -> None:
    assert faults(shared.api.get(f"{TOP}?{query}")) == [place]


def test_every_fault_is_listed(shared: World) -> None:
    assert faults(shared.api.get(f"{TOP}?n=0&x=1&ties=q&from_rank=0&cursor=z&after=y&wait=9")) == [
        "x", "n", "ties", "from_rank", "from_rank", "cursor", "after", "wait",
    ]  # fmt: skip


@pytest.mark.parametrize("query", ["n=1", "n=1000", "from_rank=1", "wait=5", "wait=0.001", "", "&"])
def test_a_parameter_at_its_bounds_is_taken(shared: World, query: str) -> None:
    assert shared.api.get(f"{TOP}?{query}").status_code == 200


def test_a_cursor_belongs_to_its_board_and_its_ties(tied: World) -> None:
    tied.put(tied.board("daily"), {"a": (1, now_ms()), "b": (2, now_ms())})
    cursor = tied.api.get(f"{TOP}?n=2").json()["next"]
    assert tied.api.get(f"{TOP}?n=2&cursor={cursor}").status_code == 200
    for path in (
        f"/v1/boards/ranked:daily/top?cursor={cursor}",
        f"{TOP}?ties=shared&cursor={cursor}",
        f"{TOP}?cursor={cursor[:-1]}",
        f"{TOP}?cursor={cursor}A",
    ):
        assert faults(tied.api.get(path)) == ["cursor"]
    assert faults(tied.api.get(f"{TOP}?from_rank=1&cursor={cursor}")) == ["from_rank"]


def test_a_tag_covers_what_is_listed_and_not_as_of(world: World) -> None:
    board = world.board()
    world.put(board, {"a": (10, now_ms())})
    first = world.api.get(TOP)
    tag = first.headers["ETag"]
    world.as_of += 500
    world.skip()
    again = world.api.get(TOP, headers={"If-None-Match": f'"x", {tag}'})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert again.headers["Standings-As-Of"] != first.headers["Standings-As-Of"]
    assert "Content-Type" not in again.headers
    assert world.api.get(TOP, headers={"If-None-Match": "*"}).status_code == 304
    assert world.api.get(TOP, headers={"If-None-Match": tag.removeprefix("W/")}).status_code == 304
    # Not among those listed, and yet the size that is shown has changed.
    world.put(board, {"b": (5, now_ms())})
    assert world.api.get(f"{TOP}", headers={"If-None-Match": tag}).status_code == 200


def test_an_empty_board_in_an_open_window_is_an_empty_list(shared: World) -> None:
    body = shared.api.get("/v1/boards/ranked:weekly/top").json()
    assert (body["size"], body["entries"], body["next"]) == (0, [], None)


def test_a_page_says_how_long_it_may_be_kept(world: World) -> None:
    assert world.api.get(TOP).headers["Cache-Control"] == "public, max-age=1"
    closed = world.board("daily", at_ms=now_ms() - 24 * HOUR_MS)
    assert world.api.get(f"/v1/boards/{closed.name}/top").headers["Cache-Control"] == "public, max-age=60"


def test_without_time_bits_ties_go_by_player_id(world: World) -> None:
    world.define("wide", min=0, max=2**53 - 1, windows=("all",))
    world.await_leaderboard("wide")
    world.put(world.board("all", "wide"), {"a": (2**53 - 1, 5), "b": (2**53 - 1, 4), "c": (7, 4)})
    body = world.api.get("/v1/boards/wide:all/top?ties=shared").json()
    assert [(one["rank"], one["player_id"], one["score"], one["achieved_at"]) for one in body["entries"]] == [
        (1, "b", 2**53 - 1, None),
        (1, "a", 2**53 - 1, None),
        (3, "c", 7, None),
    ]


@pytest.mark.parametrize(
    ("board", "name"),
    [
        ("none:all", "leaderboard-not-found"),
        ("none", "leaderboard-not-found"),
        ("ranked", "board-not-found"),
        ("ranked:hourly", "board-not-found"),
        ("ranked:monthly", "board-not-found"),
        ("ranked:all:1", "board-not-found"),
        ("ranked:daily:2025-02-29", "board-not-found"),
        ("ranked:weekly:2025-W53", "board-not-found"),
        ("ranked:daily:9000-01-01", "board-not-found"),
        ("ranked:WEEKLY", "board-not-found"),
        ("%FF", "board-not-found"),
        ("all", "leaderboard-not-found"),
    ],
)
def test_what_is_no_board_is_not_found(shared: World, board: str, name: str) -> None:
    for rest in (
        "",
        "/top",
        "/players/zed",
        "/players/zed/around",
        "/friends?id=zed",
        "/player?id=zed",
        "/around?id=zed",
    ):
        assert problem(shared.api.get(f"/v1/boards/{board}{rest}")) == (404, name)


def test_a_board_past_its_retention_is_gone(shared: World) -> None:
    for rest in ("", "/top", "/players/zed", "/friends?id=zed"):
        assert problem(shared.api.get(f"/v1/boards/ranked:weekly:2020-W53{rest}")) == (410, "board-expired")
