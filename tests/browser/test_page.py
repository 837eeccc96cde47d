"""The page, in a real browser on a real stack."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from .conftest import Reader, Stack, find_serious

pytestmark = pytest.mark.browser

MakeReader = Callable[..., Reader]

ODD = (
    "<script>window.ran = 1</script>",
    "<img src=x onerror='window.ran = 1'>",
    '"><svg onload=window.ran=1>',
    "javascript:window.ran=1",
    "a/b",
    "..",
    ".",
    "%2e%2e",
    "a b+c&d=e#f?g",
    "🏆🧑‍🚀",
    "שלום",
    "x" * 128,
    "\u202eevil",
)


def names(page: Page, table: str = "#entries") -> list[str]:
    return page.locator(f"{table} .id").all_text_contents()


def find_player(page: Page, player_id: str) -> None:
    page.get_by_role("textbox", name="Player id", exact=True).fill(player_id)
    page.get_by_role("button", name="Find", exact=True).click()


def test_a_submit_shows_within_two_seconds(stack: Stack, reader: Reader) -> None:
    stack.submit("live", {"amy": 10, "bo": 20})
    page = reader.go("live:daily")
    expect(page.locator("#mode")).to_have_text("Live")
    expect(page.locator("#entries .id")).to_have_text(["bo", "amy"])

    stack.submit("live", {"amy": 12_345})
    expect(page.locator("#entries .id")).to_have_text(["amy", "bo"], timeout=2_000)
    expect(page.locator("#entries .score")).to_have_text(["12,345", "20"])
    expect(page.locator("#entries .place")).to_have_text(["1", "2"])
    expect(page.locator("#as-of")).to_have_text(re.compile(r"^as of \d s ago$"))
    expect(page.locator("#told")).to_have_text(re.compile("amy takes the lead|2 players"))


def test_without_a_stream_the_page_asks_again_and_again(stack: Stack, reader: Reader) -> None:
    stack.submit("quiet", {"amy": 10})
    reader.context.route("**/live?*", lambda route: route.abort())
    page = reader.go("quiet:all")
    expect(page.locator("#mode")).to_have_text("Every 2 s")
    stack.submit("quiet", {"bo": 20})
    expect(page.locator("#entries .id")).to_have_text(["bo", "amy"], timeout=5_000)


def test_rows_move_unless_the_reader_wants_stillness(stack: Stack, make_reader: MakeReader) -> None:
    count = (
        "window.moved = 0; const animate = Element.prototype.animate;"
        "Element.prototype.animate = function (...given) { window.moved += 1; return animate.apply(this, given); };"
    )
    stack.submit("still", {"amy": 10, "bo": 20})
    moving, still = make_reader(reduced_motion="no-preference"), make_reader(reduced_motion="reduce")
    for one in (moving, still):
        one.context.add_init_script(count)
        expect(one.go("still:all").locator("#entries .id")).to_have_text(["bo", "amy"])
    stack.submit("still", {"amy": 30})
    for one in (moving, still):
        expect(one.page.locator("#entries .id")).to_have_text(["amy", "bo"])
    assert moving.page.evaluate("window.moved") == 2
    assert still.page.evaluate("window.moved") == 0


@pytest.mark.parametrize("width", [1_100, 320])
def test_odd_ids_are_text_and_fit(stack: Stack, make_reader: MakeReader, width: int) -> None:
    stack.submit("odd", {player_id: 100 - at for at, player_id in enumerate(ODD)})
    reader = make_reader(viewport={"width": width, "height": 640})
    page = reader.go("odd:all", friend=list(ODD))
    expect(page.locator("#entries .id")).to_have_count(len(ODD))
    assert names(page) == list(ODD)
    expect(page.locator("#friends tbody .id")).to_have_count(len(ODD))
    for player_id in ODD:
        find_player(page, player_id)
        expect(page.locator(".player-title .id")).to_have_text(player_id, use_inner_text=False)
        expect(page.locator("#player .facts")).to_have_text(re.compile(r"^Rank \d+ of 13 "))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("window.ran") is None
    assert page.locator("body img, td svg, th svg, script:not([src])").count() == 0


def test_a_name_from_right_to_left_turns_nothing_around_it(stack: Stack, reader: Reader) -> None:
    stack.submit("words", {"(שלום)": 7, "amy": 5})
    page = reader.go("words:all")
    row = page.locator("#entries tr").first
    assert row.locator(".id").evaluate("one => getComputedStyle(one).direction") == "rtl"
    assert row.evaluate("one => getComputedStyle(one).direction") == "ltr"
    boxes = [row.locator(part).bounding_box() for part in (".place", ".id", ".score")]
    lefts = [box["x"] for box in boxes if box is not None]
    assert len(lefts) == 3
    assert lefts == sorted(lefts)


def test_an_id_with_nothing_to_see_is_spelled_out(stack: Stack, reader: Reader) -> None:
    stack.submit("words", {"\u200b\u200b": 6})
    expect(reader.go("words:all").locator("#entries .spelled")).to_have_text("U+200B U+200B")


def test_scores_have_the_leaderboards_scale_and_the_readers_digits(stack: Stack, make_reader: MakeReader) -> None:
    stack.submit("laps", {"amy": 100_000, "bo": 1_442, "cy": 5, "di": -5})
    page = make_reader(locale="en-GB").go("laps:all")
    expect(page.locator("#entries .score")).to_have_text(["1,000.00", "14.42", "0.05", "-0.05"])
    page = make_reader(locale="de-DE").go("laps:all", player="bo")
    expect(page.locator("#entries .score")).to_have_text(["1.000,00", "14,42", "0,05", "-0,05"])
    expect(page.locator("#player .facts")).to_have_text(re.compile("14,42"))


def test_a_player_is_found_with_neighbours_and_follows_the_board(stack: Stack, reader: Reader) -> None:
    stack.submit("near", {f"p{at}": 100 - at for at in range(9)})
    page = reader.go("near:all")
    find_player(page, "p5")
    expect(page.locator("#player tbody .id")).to_have_text([f"p{at}" for at in range(2, 9)])
    expect(page.locator("#player .facts")).to_have_text("Rank 6 of 9 · 95 · top\u00a066.67%")
    expect(page.locator("#entries .chosen .id")).to_have_text("p5")
    stack.submit("near", {"p5": 1_000})
    expect(page.locator("#player .facts")).to_have_text(re.compile("^Rank 1 of 9 · 1,000"), timeout=5_000)

    find_player(page, "nobody")
    expect(page.locator("#player .facts")).to_have_text("No score on this board yet.")
    find_player(page, "x" * 129)
    expect(page.locator("#player .facts")).to_have_text(re.compile("can’t be a player’s id: .*128 bytes"))
    page.go_back()
    page.go_back()
    expect(page.locator(".player-title")).to_have_text("p5")


def test_equal_scores_share_a_rank_where_the_reader_says_so(stack: Stack, reader: Reader) -> None:
    stack.submit("words", {"t1": 3, "t2": 3, "t3": 2})
    page = reader.go("words:all", player="t1", friend=["t1", "t2", "t3"])
    places = page.locator("#entries tr", has=page.get_by_text(re.compile("^t[123]$"))).locator(".place")
    expect(places).to_have_count(3)
    first = int(places.first.inner_text())
    expect(places).to_have_text([str(first), str(first + 1), str(first + 2)])
    page.get_by_label("Equal scores share a rank").check()
    shared = [str(first), str(first), str(first + 2)]
    expect(places).to_have_text(shared)
    expect(page.locator("#friends .place")).to_have_text(shared)
    expect(page.locator("#player .chosen .place")).to_have_text(str(first))
    assert "ties=shared" in page.url


def test_friends_and_player_travel_in_the_link(stack: Stack, make_reader: MakeReader) -> None:
    stack.submit("pals", {"amy": 1, "a/b": 2, "cy": 3})
    reader = make_reader(permissions=["clipboard-read", "clipboard-write"])
    page = reader.go("pals:daily")
    for friend in ("amy", "a/b", "ghost"):
        page.get_by_role("textbox", name="Friend’s player id").fill(friend)
        page.get_by_role("button", name="Add", exact=True).click()
    find_player(page, "cy")
    page.get_by_role("button", name="Add to friends").click()
    page.get_by_role("button", name="Remove ghost from friends").click()
    expect(page.locator("#friends tbody .id")).to_have_text(["cy", "a/b", "amy"])
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#share-words")).to_have_text("Copied")
    link = page.evaluate("navigator.clipboard.readText()")
    assert link.endswith("/#board=pals:daily&player=cy&friend=amy&friend=a%2Fb&friend=cy")

    other = make_reader()
    other.page.goto(link)
    expect(other.page.locator("#friends tbody .id")).to_have_text(["cy", "a/b", "amy"])
    expect(other.page.locator("#friends .place")).to_have_text(["1", "2", "3"])
    expect(other.page.locator(".player-title")).to_have_text("cy")
    expect(other.page.get_by_role("heading", level=1)).to_have_text("pals")
    expect(other.page.get_by_label("Today")).to_be_checked()


def test_everything_is_done_by_keyboard_alone(stack: Stack, reader: Reader) -> None:
    stack.submit("keys", {"amy": 2, "bo": 1})
    page = reader.go("keys:all")
    expect(page.locator("#entries .id")).to_have_count(2)
    page.keyboard.press("Tab")
    expect(page.locator("#skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#board-title")).to_be_focused()
    assert page.url.endswith("/#board=keys%3Aall")

    page.locator("#skip").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Leaderboard")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("All time")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_label("Today")).to_be_checked()
    assert "board=keys:daily" in page.url
    expect(page.locator("#entries .id")).to_have_text(["amy", "bo"])
    page.keyboard.press("Tab")  # the link's button
    page.keyboard.press("Tab")  # ties
    page.keyboard.press("Space")
    expect(page.get_by_label("Equal scores share a rank")).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.locator("#entries a").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".player-title")).to_have_text("amy")

    stack.submit("keys", {"bo": 9})  # the row moves, and the focus with it
    expect(page.locator("#entries .id")).to_have_text(["bo", "amy"])
    expect(page.locator("#entries a", has_text="amy")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.locator("#find-id")).to_be_focused()
    page.keyboard.type("bo")
    page.keyboard.press("Enter")
    expect(page.locator(".player-title")).to_have_text("bo")
    page.get_by_role("button", name="Add to friends").press("Enter")
    page.get_by_role("button", name="Remove bo from friends").press("Enter")
    expect(page.locator("#friend-id")).to_be_focused()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_100, 320])
def test_axe_finds_nothing_serious(stack: Stack, make_reader: MakeReader, scheme: str, width: int) -> None:
    stack.submit("looks", {f"p{at}": 50 - at for at in range(6)})
    reader = make_reader(color_scheme=scheme, viewport={"width": width, "height": 800}, reduced_motion="reduce")
    page = reader.go("looks:daily", player="p4", friend=["p1", "p4", "ghost"])
    expect(page.locator("#player tbody tr")).to_have_count(5)
    expect(page.locator("#friends tbody tr")).to_have_count(2)
    assert find_serious(page) == []
    page = reader.go("nothing:all", player="p4", friend=["p1"])
    expect(page.locator("#trouble")).to_have_text("There is no such leaderboard.")
    assert find_serious(page) == []


def test_a_phone_has_no_scrolling_sideways(stack: Stack, make_reader: MakeReader) -> None:
    stack.submit("phone", {f"player-{at}": -100_000 + at for at in range(30)})
    reader = make_reader(viewport={"width": 320, "height": 640}, has_touch=True, is_mobile=True)
    page = reader.go("phone:all", player="player-7", friend=["player-3", "ghost"])
    expect(page.locator("#friends tbody tr")).to_have_count(1)
    expect(page.locator("#player tbody tr")).to_have_count(7)
    assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [320, 320]
    expect(page.locator("#entries tr")).to_have_count(20)
    page.get_by_role("button", name="Show more").tap()
    expect(page.locator("#entries tr")).to_have_count(30)
    page.get_by_role("button", name="Find a player").tap()
    expect(page.locator("#find-id")).to_be_focused()
    expect(page.locator("#find-id")).to_be_in_viewport()


def test_the_page_begins_where_there_are_scores(stack: Stack, reader: Reader) -> None:
    stack.submit("live", {"amy": 10})
    reader.page.goto(stack.url)
    expect(reader.page.locator("#entries tr").first).to_be_visible()
    assert "#board=" in reader.page.url


def test_an_empty_board_says_so_and_fills_by_itself(stack: Stack, reader: Reader) -> None:
    page = reader.go("main:monthly")
    expect(page.locator("#empty")).to_have_text(re.compile("^No scores yet"))
    stack.submit("main", {"zed": 5})
    expect(page.locator("#entries .id")).to_have_text(["zed"], timeout=2_000)
    expect(page.locator("#empty")).to_be_hidden()


def test_what_cannot_be_shown_is_said(reader: Reader) -> None:
    page = reader.go("main:daily:2020-01-01")
    expect(page.locator("#trouble")).to_have_text(re.compile("^This board has expired"))
    page = reader.go("main:daily:2999-01-01")
    expect(page.locator("#trouble")).to_have_text(re.compile("its window has not opened yet"))
