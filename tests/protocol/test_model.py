"""The protocol holds in every scope, and breaks without any one of its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.protocol.model import Found, search
from tests.protocol.reference_lane import ALL_RULES, Off
from tests.protocol.rules import RULES
from tests.protocol.scopes import SOUND, SPARE, WEAKENED, Weakened
from tests.protocol.world import Scope

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Search = Callable[[Scope, Off, str], Found]


@pytest.fixture(scope="module")
def searched() -> Iterator[Search]:
    """All searches, begun at once on two processes; each test waits for its own."""
    jobs: dict[tuple[str, Off], Future[Found]] = {}
    asked = [(one, ALL_RULES, "") for one in SOUND] + [(one.scope, one.off, one.wrong) for one in (*WEAKENED, *SPARE)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for scope, off, wrong in asked:
            jobs[scope.name, off] = pool.submit(search, scope, off, to_end=wrong in ("", "end"))
        yield lambda scope, off, _wrong: jobs[scope.name, off].result()
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("scope", SOUND, ids=lambda scope: scope.name)
def test_nothing_goes_wrong_whatever_happens_when(searched: Search, scope: Scope) -> None:
    found = searched(scope, ALL_RULES, "")
    assert not found.trace, str(found)
    assert found.exhausted
    assert found.states > 300, "a scope in which nothing can happen shows nothing"


@pytest.mark.parametrize("weakened", WEAKENED, ids=str)
def test_without_this_rule_something_goes_wrong(searched: Search, weakened: Weakened) -> None:
    found = searched(weakened.scope, weakened.off, weakened.wrong)
    assert found.trace, f"{found.states} states, and nothing is wrong without {weakened}"
    assert found.trace[-1].startswith(weakened.wrong), str(found)


@pytest.mark.parametrize("spare", SPARE, ids=str)
def test_safety_does_not_hang_on_this_rule(searched: Search, spare: Weakened) -> None:
    found = searched(spare.scope, spare.off, "")
    assert found.exhausted, str(found)


def test_every_rule_that_the_model_can_leave_out_is_left_out() -> None:
    names = {rule for one in (*WEAKENED, *SPARE) for rule in one.off}
    assert names == set(RULES)
