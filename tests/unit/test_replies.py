"""The models of replies: their examples hold, and they take nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from schemas import problem_replies, replies
from schemas.problem_replies import PROBLEM_REPLIES, InvalidRequestReply, StoreUnavailableReply
from schemas.problems import CATALOGUE
from schemas.replies import ReplyBody, TopPage

MODELS: list[type[ReplyBody]] = [
    one
    for module in (replies, problem_replies)
    for one in vars(module).values()
    if isinstance(one, type) and issubclass(one, ReplyBody) and one.__module__ == module.__name__
]
TOP: dict[str, Any] = {
    "board": "main:all",
    "as_of": "2026-12-01T00:41:27.997Z",
    "size": 1,
    "entries": [{"rank": 1, "player_id": "zed", "score": 10, "achieved_at": None}],
    "next": None,
}


def read(value: Any) -> TopPage:
    return TopPage.model_validate_json(json.dumps(value))


@pytest.mark.parametrize("model", MODELS, ids=[one.__name__ for one in MODELS])
def test_every_model_says_what_it_is_and_its_examples_hold(model: type[ReplyBody]) -> None:
    schema = model.model_json_schema()
    assert schema["description"]
    assert schema["additionalProperties"] is False
    for example in schema.get("examples", []):
        shown = model.model_validate_json(json.dumps(example))
        assert shown.model_dump(mode="json", exclude_unset=True) == example


@pytest.mark.parametrize(
    "wrong",
    [
        {"more": 1},
        {"size": "1"},
        {"size": 1.0},
        {"size": True},
        {"size": -1},
        {"size": None},
        {"as_of": "2026-12-01T00:41:27Z"},
        {"as_of": 1796085687997},
        {"entries": [TOP["entries"][0] | {"rank": 0}]},
        {"entries": [TOP["entries"][0] | {"score": 2**53}]},
        {"entries": None},
    ],
    ids=str,
)
def test_a_reply_of_another_form_is_no_reply(wrong: dict[str, Any]) -> None:
    assert read(TOP).model_dump() == TOP
    with pytest.raises(ValidationError):
        read(TOP | wrong)


def test_a_field_that_is_missing_is_told() -> None:
    for name in TOP:
        with pytest.raises(ValidationError, match=name):
            read({key: value for key, value in TOP.items() if key != name})


def test_a_reader_of_a_newer_service_may_ignore_what_it_does_not_know() -> None:
    newer = TOP | {"more": 1, "entries": [TOP["entries"][0] | {"more": 2}]}
    assert TopPage.model_validate_json(json.dumps(newer), extra="ignore") == read(TOP)


def test_every_problem_of_the_catalogue_has_a_document() -> None:
    assert PROBLEM_REPLIES.keys() == CATALOGUE.keys()
    assert PROBLEM_REPLIES["invalid-request"] is InvalidRequestReply


def test_an_unknown_outcome_is_not_the_same_as_none() -> None:
    document = {"type": "/problems/store-unavailable", "title": "t", "status": 503, "detail": "d"}
    assert "accepted" not in StoreUnavailableReply.model_validate(document).model_fields_set
    assert "accepted" in StoreUnavailableReply.model_validate(document | {"accepted": None}).model_fields_set
    with pytest.raises(ValidationError):
        StoreUnavailableReply.model_validate(document | {"accepted": True})
