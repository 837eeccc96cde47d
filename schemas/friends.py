"""The body that asks for friends."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from schemas.ids import PlayerId

MAX_FRIENDS = 500


def distinct_friends(player_ids: list[str]) -> list[str]:
    """The ids without repeats, in the order asked; ValueError where there are more than 500 of them."""
    distinct = list(dict.fromkeys(player_ids))
    if len(distinct) > MAX_FRIENDS:
        raise ValueError(f"at most {MAX_FRIENDS} different players can be asked for at once, these are {len(distinct)}")
    return distinct


class FriendsBody(BaseModel):
    """1 to 500 different players; one that is repeated counts once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    player_ids: Annotated[list[PlayerId], Field(min_length=1), AfterValidator(distinct_friends)]
