"""What a test needs and this machine lacks."""

import os
from typing import NoReturn

import pytest


class Missing(Exception):
    """A server can't be started here; the message says what is missing and how to get it."""


def skip_or_fail(missing: Missing) -> NoReturn:
    """Skip the test with its reason; with ``CI=true`` fail it, because CI must have everything."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have this: {missing}")
    pytest.skip(str(missing))
