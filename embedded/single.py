"""Single stores for tests: started on a free port, ready when the context opens, gone after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded.children import Child, ChildSpec
from embedded.environment import clean_environment
from embedded.errors import StackError
from embedded.ports import LOOPBACK, find_free_port
from embedded.services import describe_broker, describe_dynamodb, describe_valkey

_TRIES = 3

Env = dict[str, str]


@contextmanager
def running_valkey(folder: Path, port: int | None = None) -> Iterator[str]:
    """Run Valkey with its data and log under `folder`; yield its URL, redis://127.0.0.1:PORT/0."""
    with _running(lambda at, env: describe_valkey(at, folder / "redis", env), folder, port) as (_, at):
        yield f"redis://{LOOPBACK}:{at}/0"


@contextmanager
def running_broker(folder: Path, port: int | None = None) -> Iterator[str]:
    """Run the broker with its log under `folder`; yield its address, 127.0.0.1:PORT."""
    with _running(describe_broker, folder, port) as (_, at):
        yield f"{LOOPBACK}:{at}"


@contextmanager
def running_dynamodb(folder: Path, port: int | None = None) -> Iterator[str]:
    """Run the DynamoDB emulator with its state and log under `folder`; yield http://127.0.0.1:PORT.

    Clients need some credentials and a region: `describe_emulator_access` has them.
    """
    with _running(lambda at, env: describe_dynamodb(at, folder / "dynamodb", env), folder, port) as (_, at):
        yield f"http://{LOOPBACK}:{at}"


@contextmanager
def running_child(spec: ChildSpec, folder: Path) -> Iterator[Child]:
    """Run any child with its log under `folder`; for tests that kill, pause or restart it.

    Errors: StackError with the last line of its log when it doesn't get ready.
    """
    child = Child(spec, folder / "logs" / f"{spec.name}.log")
    child.begin_log()
    child.start()
    try:
        if not child.wait_until_ready():
            raise StackError(child.explain_end())
        yield child
    finally:
        child.stop()


@contextmanager
def _running(describe: Callable[[int, Env], ChildSpec], folder: Path, port: int | None) -> Iterator[tuple[Child, int]]:
    """Run a store on the given port or, trying again if another takes it first, on a free one."""
    env = clean_environment(os.environ)
    for attempt in range(_TRIES):
        at = port if port is not None else find_free_port()
        context = running_child(describe(at, env), folder)
        try:
            child = context.__enter__()
        except StackError:
            if port is not None or attempt == _TRIES - 1:
                raise
            continue
        try:
            yield child, at
        finally:
            context.__exit__(None, None, None)
        return
