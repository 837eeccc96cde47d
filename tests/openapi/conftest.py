"""The real stores of the API's tests."""

from tests.api.conftest import emulator_access, shared, stores

__all__ = ["emulator_access", "shared", "stores"]
