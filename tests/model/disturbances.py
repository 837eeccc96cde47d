"""What happens to stores and processes, and is nobody's mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.fakes.deployment import Deployment, UpdaterProcess

_MOST_DUMPS = 6


class Disturber:
    """Disturbs a deployment; `number` chooses among variants. Names of disturbances: `names`."""

    names = (
        "wait",
        "wait long",
        "rollback",
        "lose all",
        "lose key",
        "recreate",
        "outage",
        "lost replies",
        "leave",
        "gap",
    )

    def __init__(self, world: Deployment, updaters: Sequence[UpdaterProcess], movable: Callable[[bytes], bool]) -> None:
        self._world = world
        self._updaters = updaters
        self._movable = movable
        self._dumped: list[Mapping[int, int]] = []
        self._dumps: list[list[tuple[bytes, int, bytes]]] = []
        self._ways: dict[str, Callable[[int], None]] = {
            "wait": lambda _: self.advance(700),
            "wait long": lambda number: self.advance(6_000 + 60_000 * (number % 3)),
            "rollback": self._roll_back,
            "lose all": lambda _: world.delete(world.keys()),
            "lose key": lambda number: world.delete(world.keys()[number : number + 1]),
            "recreate": lambda _: self._recreate(),
            "outage": lambda number: world.dynamodb.faults.fail_calls("InternalFailure", 1 + number % 3),
            "lost replies": self._lose_replies,
            "leave": self._leave,
            "gap": lambda number: world.log.leave_gap(number % 2, 1 + number % 3),
        }

    def do(self, what: str, number: int) -> None:
        """Let it happen."""
        self._ways[what](number)

    def advance(self, more_ms: int) -> None:
        """Time passes, and Redis expires what it would."""
        self._world.clock.advance(more_ms)
        keys = self._world.keys()
        ends_s = self._world.ask([("EXPIRETIME", key) for key in keys])
        now_at = self._world.clock.now_at()
        self._world.delete([key for key, end_s in zip(keys, ends_s, strict=True) if 0 <= end_s * 1_000 <= now_at])

    def dump(self, applied: list[Mapping[int, int]]) -> None:
        """What the server may be rolled back to: a state each time that something was applied since."""
        if applied == self._dumped:
            return
        self._dumped = applied
        keys = self._world.keys()
        ends_s = self._world.ask([("EXPIRETIME", key) for key in keys])
        contents = self._world.ask([("DUMP", key) for key in keys])
        self._dumps = [*self._dumps[-_MOST_DUMPS:], list(zip(keys, ends_s, contents, strict=True))]

    def _roll_back(self, number: int) -> None:
        if not self._dumps:
            return
        self._world.delete(self._world.keys())
        for key, end_s, content in self._dumps[number % len(self._dumps)]:
            self._world.client.restore(key, max(0, end_s * 1_000), content, absttl=True)
        self.advance(0)

    def _lose_replies(self, number: int) -> None:
        self._world.redis.lost_replies += 1 + number % 2
        self._world.dynamodb.faults.time_out_calls(number % 2)

    def _leave(self, number: int) -> None:
        if not any(one.is_running for one in self._updaters):
            self._updaters[number % 2].leave()

    def _recreate(self) -> None:
        """The topic is made anew, and what nobody had recorded is published once more.

        Not where that would be another event there: without a time of its own, or ahead of its time.
        """
        log, committed = self._world.log, self._world.committed()
        left = [
            one
            for number, partition in enumerate(log.topics[self._world.settings.names.events].partitions)
            for one in partition.records
            if one.offset >= committed.get(number, 0)
        ]
        if all(self._movable(one.value) for one in left):
            log.recreate_topic(2)
            for one in left:
                log.append(one.key, one.value)
