"""What the embedded stack can't do, as one line that says what to do."""

from __future__ import annotations


class StackError(Exception):
    """The stack can't start or go on; `str(error)` is one line for the user."""


class StopRequested(BaseException):
    """SIGINT or SIGTERM came before the stack was ready; like KeyboardInterrupt, no `except Exception` takes it."""


class KilledAtOnce(BaseException):
    """A second SIGINT came: every child has been killed, nothing is to be waited for."""
