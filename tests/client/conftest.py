"""Every test of a client runs with both."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

from tests.client.script import Caller


@pytest.fixture(params=["sync", "async"])
def caller(request: pytest.FixtureRequest) -> Callable[..., Caller]:
    """Makes one of the two clients over a script."""
    return functools.partial(Caller, request.param)
