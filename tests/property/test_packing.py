"""The packed integer: it orders as the rules say, gives back what went in, and never leaves 53 bits."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.leaderboards import Definition, Leaderboard
from schemas.packing import MAX_SAFE_INTEGER, RESOLUTIONS_MS, Codec, Order, choose_codec
from schemas.times import parse_time
from schemas.windows import SPAN_MS, Kind, Window, parse_window, window_of

EARLIEST_AT = parse_time("0001-01-01T00:00:00Z")
LATEST_AT = parse_time("9998-12-31T23:59:59.999Z")
DEFAULT_SPAN_MS = 2**32 * 1000
ORDERS: tuple[Order, ...] = ("higher", "lower")
LADDER_MS = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)


@dataclass(frozen=True)
class Space:
    """A codec with the stretch of time that it was made for."""

    codec: Codec
    span_ms: int

    @property
    def last_at(self) -> int:
        return self.codec.origin_at + self.span_ms - 1


def widest_of_bits(bits: int) -> tuple[int, int]:
    """The narrowest and the widest difference between bounds that takes so many bits."""
    return (0, 0) if bits == 0 else (2 ** (bits - 1), 2**bits - 1)


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    order = draw(st.sampled_from(ORDERS))
    widest = draw(st.integers(0, 53).flatmap(lambda bits: st.integers(*widest_of_bits(bits))))
    min_score = draw(st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER - widest))
    kind: Kind = draw(st.sampled_from(("all", "daily", "weekly", "monthly")))
    at = draw(st.integers(EARLIEST_AT, LATEST_AT))
    if kind == "all":
        span_ms = draw(st.one_of(st.just(DEFAULT_SPAN_MS), st.integers(1, LATEST_AT - EARLIEST_AT)))
        return Space(choose_codec(order, min_score, min_score + widest, at, span_ms), span_ms)
    window = window_of(kind, at)
    codec = choose_codec(order, min_score, min_score + widest, window.starts_at, SPAN_MS[kind])
    return Space(codec, window.ends_at - window.starts_at)


def scores_of(codec: Codec) -> st.SearchStrategy[int]:
    edges = st.sampled_from((codec.min_score, codec.max_score))
    return edges | st.integers(codec.min_score, codec.max_score)


def instants_of(space: Space) -> st.SearchStrategy[int]:
    edges = st.sampled_from((space.codec.origin_at, space.last_at))
    return edges | st.integers(space.codec.origin_at, space.last_at)


def tick_of(codec: Codec, at_ms: int) -> int:
    return 0 if codec.resolution_ms is None else (at_ms - codec.origin_at) // codec.resolution_ms


def goodness_of(codec: Codec, score: int) -> int:
    return score if codec.order == "higher" else -score


@given(st.data(), spaces())
def test_unpacking_gives_back_the_score_and_the_time_cut_to_the_tick(data: st.DataObject, space: Space) -> None:
    codec = space.codec
    score = data.draw(scores_of(codec))
    at = data.draw(instants_of(space))
    packed = codec.pack(score, at)
    assert codec.score(packed) == score
    if codec.resolution_ms is None:
        assert codec.achieved_at(packed) is None
    else:
        assert codec.achieved_at(packed) == at - (at - codec.origin_at) % codec.resolution_ms


@given(st.data(), spaces())
def test_a_packed_value_is_never_below_zero_nor_more_than_a_double_holds(data: st.DataObject, space: Space) -> None:
    packed = space.codec.pack(data.draw(scores_of(space.codec)), data.draw(instants_of(space)))
    assert 0 <= packed <= 2**53 - 1
    assert int(float(packed)) == packed


@given(st.data(), spaces())
def test_packed_values_compare_as_the_better_score_and_then_the_earlier_tick(data: st.DataObject, space: Space) -> None:
    codec = space.codec
    score = data.draw(scores_of(codec))
    other_score = data.draw(st.just(score) | scores_of(codec))
    at, other_at = data.draw(instants_of(space)), data.draw(instants_of(space))
    mine = (goodness_of(codec, score), -tick_of(codec, at))
    theirs = (goodness_of(codec, other_score), -tick_of(codec, other_at))
    packed, other_packed = codec.pack(score, at), codec.pack(other_score, other_at)
    assert (packed > other_packed) == (mine > theirs)
    assert (packed == other_packed) == (mine == theirs)


@given(st.data(), spaces())
def test_the_very_next_score_and_the_very_next_tick_are_told_apart(data: st.DataObject, space: Space) -> None:
    codec = space.codec
    score, at = data.draw(scores_of(codec)), data.draw(instants_of(space))
    packed = codec.pack(score, at)
    if score < codec.max_score:
        assert (codec.pack(score + 1, space.last_at) > packed) == (codec.order == "higher")
        assert (codec.pack(score + 1, codec.origin_at) > packed) == (codec.order == "higher")
    if codec.resolution_ms is not None and at + codec.resolution_ms <= space.last_at:
        assert codec.pack(score, at + codec.resolution_ms) == packed - 1


@given(st.data(), spaces())
def test_what_the_window_cannot_hold_is_refused_and_not_wrapped(data: st.DataObject, space: Space) -> None:
    codec = space.codec
    at = data.draw(instants_of(space))
    for score in (codec.min_score - 1, codec.max_score + 1):
        with pytest.raises(ValueError, match="outside"):
            codec.pack(score, at)
    if codec.resolution_ms is not None:
        ticks_end_at = codec.origin_at + 2**codec.tick_bits * codec.resolution_ms
        for wrong_at in (codec.origin_at - 1, ticks_end_at):
            with pytest.raises(ValueError, match="outside"):
                codec.pack(codec.min_score, wrong_at)


def fits(widest: int, span_ms: int, resolution_ms: int) -> bool:
    """Whether the greatest packed value of this resolution is still a safe integer, by trying bit after bit."""
    tick_bits = 0
    while (1 << tick_bits) * resolution_ms < span_ms:
        tick_bits += 1
    return widest * (1 << tick_bits) + (1 << tick_bits) - 1 <= MAX_SAFE_INTEGER


@pytest.mark.parametrize("bits", range(54))
@pytest.mark.parametrize("span_ms", [*SPAN_MS.values(), DEFAULT_SPAN_MS, 200 * 365 * 86_400_000 + 7, 2, 1])
def test_the_finest_resolution_that_fits_is_taken(span_ms: int, bits: int) -> None:
    for widest in widest_of_bits(bits):
        # A resolution that sees the whole span as one tick tells nobody apart: it counts as none.
        useful = [one for one in LADDER_MS if one < span_ms and fits(widest, span_ms, one)]
        codec = choose_codec("higher", 0, widest, 0, span_ms)
        assert codec.resolution_ms == (useful[0] if useful else None)
        assert (codec.tick_bits == 0) == (codec.resolution_ms is None)


def test_every_step_of_the_ladder_comes_out_somewhere() -> None:
    came_out = {
        choose_codec("higher", 0, 2**bits - 1, 0, span_ms).resolution_ms
        for span_ms in (*SPAN_MS.values(), DEFAULT_SPAN_MS)
        for bits in range(54)
    }
    assert came_out == {*LADDER_MS, None}
    assert RESOLUTIONS_MS == LADDER_MS


WINDOWS = [
    parse_window("daily", "2026-10-24"),
    parse_window("daily", "1969-12-31"),
    parse_window("weekly", "2026-W43"),
    parse_window("weekly", "2026-W53"),
    parse_window("weekly", "1970-W01"),
    parse_window("monthly", "2026-02"),
    parse_window("monthly", "2024-02"),
    parse_window("monthly", "2026-04"),
    parse_window("monthly", "2026-10"),
    Window("all", "all", 0, DEFAULT_SPAN_MS),
    Window("all", "all", parse_time("1870-01-01T00:00:00Z"), parse_time("2070-01-01T00:00:00Z")),
]


def test_the_windows_under_test_have_all_lengths_of_a_month() -> None:
    days = {(one.ends_at - one.starts_at) // 86_400_000 for one in WINDOWS if one.kind == "monthly"}
    assert days == {28, 29, 30, 31}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: f"{window.name}-{window.starts_at}")
def test_both_ends_of_a_window_pack_at_every_width_of_the_score(window: Window, order: Order) -> None:
    span_ms = SPAN_MS.get(window.kind, window.ends_at - window.starts_at)
    last_at = window.ends_at - 1
    for bits in range(54):
        for widest in widest_of_bits(bits):
            for min_score in (0, -widest, -(widest // 2), -MAX_SAFE_INTEGER, MAX_SAFE_INTEGER - widest):
                max_score = min_score + widest
                codec = choose_codec(order, min_score, max_score, window.starts_at, span_ms)
                best, worst = (max_score, min_score) if order == "higher" else (min_score, max_score)
                top = codec.pack(best, window.starts_at)
                bottom = codec.pack(worst, last_at)
                assert 0 <= bottom <= top <= 2**53 - 1
                assert (codec.score(top), codec.score(bottom)) == (best, worst)
                if codec.resolution_ms is not None:
                    assert codec.achieved_at(top) == window.starts_at
                    late_ms = last_at - (codec.achieved_at(bottom) or 0)
                    assert 0 <= late_ms < codec.resolution_ms


def test_the_greatest_packed_value_is_the_greatest_safe_integer() -> None:
    codec = choose_codec("higher", 0, 2**21 - 1, 0, DEFAULT_SPAN_MS)
    assert codec.pack(2**21 - 1, 0) == 2**53 - 1
    whole = choose_codec("lower", -(2**52), 2**52 - 1, 0, DEFAULT_SPAN_MS)
    assert whole.pack(-(2**52), 0) == 2**53 - 1
    assert whole.pack(2**52 - 1, DEFAULT_SPAN_MS - 1) == 0


@given(st.integers(0, 2_097_151), st.integers(0, DEFAULT_SPAN_MS - 1))
def test_the_default_packing_of_all_time_is_points_and_epoch_seconds(points: int, at_ms: int) -> None:
    definition = Definition(order="higher", min=0, max=2_097_151, windows=("all", "daily", "weekly", "monthly"))
    (board,) = (one for one in Leaderboard("main", definition).boards_at(at_ms) if one.window.kind == "all")
    assert board.codec.pack(points, at_ms) == points * 2**32 + (2**32 - 1 - at_ms // 1000)
    assert board.codec.resolution_ms == 1000


@pytest.mark.parametrize(("points", "at_s"), [(0, 0), (0, 2**32 - 1), (2_097_151, 0), (2_097_151, 2**32 - 1)])
def test_the_default_packing_holds_at_its_corners(points: int, at_s: int) -> None:
    codec = choose_codec("higher", 0, 2_097_151, 0, DEFAULT_SPAN_MS)
    for at_ms in (at_s * 1000, at_s * 1000 + 999):
        assert codec.pack(points, at_ms) == points * 2**32 + (2**32 - 1 - at_s)


def test_bounds_further_apart_than_the_greatest_safe_integer_are_refused() -> None:
    choose_codec("higher", -1, MAX_SAFE_INTEGER - 1, 0, DEFAULT_SPAN_MS)
    for min_score, max_score in ((-1, MAX_SAFE_INTEGER), (-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER), (1, 0)):
        with pytest.raises(ValueError, match="max"):
            choose_codec("higher", min_score, max_score, 0, DEFAULT_SPAN_MS)
