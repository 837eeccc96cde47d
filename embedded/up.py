"""`standings up`: the whole stack in the foreground, from nothing to ready, until it is stopped."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from embedded.children import ChildSpec
from embedded.environment import clean_environment, describe_settings
from embedded.errors import KilledAtOnce, StackError, StopRequested
from embedded.files import DataFolder
from embedded.ports import LOOPBACK, choose_port, require_free
from embedded.probes import ask_what_is_missing
from embedded.services import (
    ROLES,
    STORES,
    describe_broker,
    describe_dynamodb,
    describe_role,
    describe_valkey,
    require_wheels,
)
from embedded.stack import Stack
from embedded.supervisor import Supervisor

Settings = Mapping[str, str]
DescribeRole = Callable[[str, Settings, int], ChildSpec]
"""Takes the role's name, its environment and the api's port."""

_ROLE_TRIES = 3
_TELL_EVERY_S = 5.0
_STORES_TIMEOUT_S = 600.0  # a journal of millions of statements may have to be replayed


def tell(line: str) -> None:
    """Write a line for the user to stderr; stdout is for results."""
    sys.stderr.write(f"standings: {line}\n")
    sys.stderr.flush()


@dataclass(frozen=True)
class UpOptions:
    """What `standings up` was asked for. A store's port that is None may be any."""

    data: Path
    port: int = 8080
    redis_port: int | None = None
    kafka_port: int | None = None
    dynamodb_port: int | None = None
    prefix: str = "lb"
    fresh: bool = False
    ready_timeout_s: float = 60.0
    drain_timeout_s: float = 15.0


@dataclass(frozen=True)
class Hooks:
    """What the caller does with the stack. All are called in the main thread.

    `prepare` runs while the stores start: the time for slow imports. `init` gets the roles'
    settings once the stores answer, and makes tables, topics, the leaderboard. `ready` gets the
    stack when GET /readyz has answered 200; it returns soon, what takes long belongs in a
    thread of its own. `count_unrecorded` tells how much of the log is still to be recorded; it
    returns within about a second, and may raise. `after_restart` gets the name and settings
    after a child was restarted and is ready, and raises if it is to be called again: the broker
    (`kafka`) has lost its topics then. `stopping` is called before the first child is ended.
    `say` takes a line for the user.
    """

    init: Callable[[Settings], None]
    ready: Callable[[Stack], None]
    count_unrecorded: Callable[[Settings], int]
    after_restart: Callable[[str, Settings], None]
    prepare: Callable[[], None] = lambda: None
    stopping: Callable[[], None] = lambda: None
    say: Callable[[str], None] = tell


def run(options: UpOptions, hooks: Hooks, describe: DescribeRole = describe_role) -> int:
    """Run the stack until SIGINT or SIGTERM; return the exit code.

    0 after a stop in order, 1 after an error, which is told in one line, 130 after a second
    SIGINT. What `init` and `ready` raise is passed on once all has been stopped. Must be called
    in the main thread. `describe` may put other programs in the roles' places.
    """
    try:
        require_wheels()
        folder = DataFolder(options.data)
        try:
            return _Run(options, hooks, folder, describe).run()
        finally:
            folder.close()
    except StackError as error:
        hooks.say(str(error))
        return 1


class _Run:
    def __init__(self, options: UpOptions, hooks: Hooks, folder: DataFolder, describe: DescribeRole) -> None:
        self._describe = describe
        self._options = options
        self._hooks = hooks
        self._folder = folder
        self._supervisor = Supervisor(folder.path, hooks.say, self._after_restart, self._write_stack)
        self._supervisor.end_leftovers()
        (folder.path / "stack.json").unlink(missing_ok=True)
        if options.fresh:
            folder.clear()
        require_free(options.port, "the api", "--port")
        self._redis = choose_port(6390, options.redis_port, "Valkey", "--redis-port")
        self._kafka = choose_port(9092, options.kafka_port, "the broker", "--kafka-port")
        self._dynamodb = choose_port(4566, options.dynamodb_port, "the DynamoDB emulator", "--dynamodb-port")
        self._key = folder.read_submit_key()
        self._settings = describe_settings(
            redis_url=f"redis://{LOOPBACK}:{self._redis}/0",
            kafka=f"{LOOPBACK}:{self._kafka}",
            dynamodb_url=f"http://{LOOPBACK}:{self._dynamodb}",
            api_port=options.port,
            submit_key=self._key,
            data=folder.path,
            prefix=options.prefix,
        )
        self._is_ready = False

    def run(self) -> int:
        with self._supervisor.handling_signals():
            try:
                self._run_and_stop()
            except KilledAtOnce:
                self._hooks.say("all processes were killed")
                return 130
            finally:
                self._describe_stack().remove()
        return 0

    def _run_and_stop(self) -> None:
        try:
            with suppress(StopRequested):
                self._start()
                self._supervisor.supervise()
            self._hooks.say(f"stopping, once all that was accepted is recorded; the data stay in {self._folder.path}")
        finally:
            self._hooks.stopping()
            # a broken start has accepted nothing that there is a need to wait for
            count = (lambda: self._hooks.count_unrecorded(self._settings)) if self._is_ready else None
            self._supervisor.stop(count, self._options.drain_timeout_s)

    def _start(self) -> None:
        env = clean_environment(os.environ)
        self._supervisor.start(self._describe_stores(env))
        self._hooks.prepare()
        self._supervisor.wait_until_ready(STORES, _STORES_TIMEOUT_S)
        self._hooks.init(self._settings)
        role_env = {**env, **self._settings}
        self._supervisor.start([self._describe(role, role_env, self._options.port) for role in ROLES])
        self._supervisor.wait_until_ready(ROLES, self._options.ready_timeout_s, tries=_ROLE_TRIES)
        self._wait_until_whole()
        self._is_ready = True
        self._write_stack()
        self._hooks.ready(self._describe_stack())

    def _wait_until_whole(self) -> None:
        """The broker is new at every start, so all boards are rebuilt first, however long that takes.

        Errors: StackError where nothing has moved for `ready_timeout_s`.
        """
        began_s = moved_s = told_s = time.monotonic()
        last: str | None = None
        while (missing := ask_what_is_missing(self._options.port)) is not None:
            now_s = time.monotonic()
            if missing != last:
                last, moved_s = missing, now_s
            if now_s > moved_s + self._options.ready_timeout_s:
                raise StackError(f"the boards did not get ready, and nothing moves any more: {missing}")
            if now_s > told_s + _TELL_EVERY_S:
                told_s = now_s
                self._hooks.say(f"not ready yet, {now_s - began_s:.0f} s: {missing}")
            self._supervisor.wait_a_turn()

    def _describe_stores(self, env: Settings) -> list[ChildSpec]:
        # the slowest first
        return [
            describe_dynamodb(self._dynamodb, self._folder.path / "dynamodb", env),
            describe_valkey(self._redis, self._folder.path / "redis", env),
            describe_broker(self._kafka, env),
        ]

    def _after_restart(self, name: str) -> None:
        self._hooks.after_restart(name, self._settings)

    def _write_stack(self) -> None:
        if self._is_ready:
            self._describe_stack().write()

    def _describe_stack(self) -> Stack:
        pids = self._supervisor.pids
        return Stack(
            api=f"http://{LOOPBACK}:{self._options.port}",
            submit_key=self._key,
            redis=self._settings["STANDINGS_REDIS_URL"],
            kafka=self._settings["STANDINGS_KAFKA"],
            dynamodb=self._settings["STANDINGS_DYNAMODB_URL"],
            pids={name: pids[name] for name in (*STORES, *ROLES) if name in pids},
            data=str(self._folder.path),
            prefix=self._options.prefix,
        )
