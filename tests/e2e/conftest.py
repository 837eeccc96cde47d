"""One stack for all tests that leave it as they found it."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from embedded.errors import StackError
from embedded.services import require_wheels
from tests.e2e.stack import RunningStack, running_stack
from tests.servers.missing import Missing, skip_or_fail


@pytest.fixture(scope="session", autouse=True)
def wheels() -> None:
    """Nothing here works without the programs of the embedded stack."""
    try:
        require_wheels()
    except StackError as error:
        skip_or_fail(Missing(str(error)))


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    with running_stack(tmp_path_factory.mktemp("stack")) as stack:
        yield stack


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/e2e/" in item.nodeid:
            item.add_marker(pytest.mark.e2e)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What the shared stack has said stands below a test that failed on it."""
    report = yield
    stack = getattr(item, "funcargs", {}).get("stack")
    if report.failed and isinstance(stack, RunningStack):
        report.sections.append(("the stack", stack.logs()))
    return report
