from __future__ import annotations

import pytest

from schemas.ids import check_id, check_leaderboard_id


@pytest.mark.parametrize(
    "text",
    [
        "a", "007", "7", "a:b", "a#b", "{x}", "a/b", "../", "..", ".", " ", "*", "=", "\\", '"', "%2F", "a b",
        "x" * 128, "é" * 64, "🦊" * 32, "🦊", "Zoë", "team|scorer", "null", "\u00a0", "\u200b", "\u2028",
        "\ufeff", "\ue000",
    ],
)  # fmt: skip
def test_any_other_character_may_stand_in_an_id(text: str) -> None:
    assert check_id(text) is text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "1 to 128 bytes"),
        ("x" * 129, "this one has 129"),
        ("é" * 64 + "x", "this one has 129"),
        ("🦊" * 33, "this one has 132"),
        ("e\u0301", "normal form C"),
        ("\u212b", "normal form C"),  # the angstrom sign, which is written å with a ring
        ("a\x00b", "control"),
        ("a\n", "control"),
        ("\t", "control"),
        ("\x1f", "control"),
        ("\x7f", "control"),
        ("\x80", "control"),
        ("é\x9f", "control"),
        ("\ud800", "surrogates"),
        ("a\udfff", "surrogates"),
        ("\ud83e\udd8a", "surrogates"),  # the two halves of a fox, which no decoder has joined
    ],
)
def test_an_id_that_breaks_the_rules_is_refused_with_the_rule(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_id(text)


@pytest.mark.parametrize("text", ["a", "0", "ranked", "a-", "a--b", "daily2", "alltime", "weekly-cup", "x" * 63])
def test_a_leaderboard_may_be_called_so(text: str) -> None:
    assert check_leaderboard_id(text) is text


@pytest.mark.parametrize(
    "text", ["", "-a", "A", "a_b", "a.b", "a:b", "a#b", "x" * 64, "a\n", "é", "\uff10", "a b", "#topology"]
)
def test_a_leaderboard_may_not_be_called_so(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 63 of"):
        check_leaderboard_id(text)


@pytest.mark.parametrize("text", ["all", "daily", "weekly", "monthly"])
def test_the_kinds_of_windows_are_reserved(text: str) -> None:
    with pytest.raises(ValueError, match="can't name a leaderboard"):
        check_leaderboard_id(text)
