"""What `standings up` does with the embedded stack once its stores answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from commands.administer import add_main, init, open_catalogue
from commands.demo import Demo
from embedded.stack import Stack
from embedded.up import Hooks, UpOptions, run, tell
from schemas.settings import Settings, load_settings
from stores.kafka_admin import KafkaLogAdmin, count_unrecorded

_PARTITIONS = 4
_LANES = 4


def run_stack(options: UpOptions, sample: str | None) -> int:
    """Run the stack until it is stopped; the exit code. With a sample, submit it and go on with a live game."""
    stopping = threading.Event()

    def ready(stack: Stack) -> None:
        tell(f"ready: {stack.api}  (submit key: {stack.submit_key})")
        tell(
            "the broker keeps its records in memory: a stop waits until all are recorded, a kill may lose the last ones"
        )
        if sample is not None:
            demo = Demo(stack.api, stack.submit_key, _settings(settings_seen), sample, stopping)
            threading.Thread(target=demo.run, name="demo", daemon=True).start()

    settings_seen: dict[str, str] = {}

    def prepare_stores(settings: Mapping[str, str]) -> None:
        settings_seen.update(settings)
        _init(settings)
        _note_log(_settings(settings))

    hooks = Hooks(
        init=prepare_stores,
        ready=ready,
        count_unrecorded=_count_unrecorded,
        after_restart=_after_restart,
        stopping=stopping.set,
    )
    return run(options, hooks)


def _init(settings: Mapping[str, str]) -> None:
    loaded = _settings(settings)
    init(loaded, _LANES, None, 1, _PARTITIONS)
    add_main(loaded)


def _note_log(settings: Settings) -> None:
    """At the stack's start no updater of an older log is alive: no rebuild needs to wait for one."""
    admin = KafkaLogAdmin(settings)
    try:
        log = admin.describe()
    finally:
        admin.close()
    if log is not None:
        with open_catalogue(settings) as catalogue:
            catalogue.note_log(log.log_id, 0)


def _after_restart(name: str, settings: Mapping[str, str]) -> None:
    """The broker comes back empty: its topics are made anew, and the roles find another log."""
    if name == "kafka":
        _init(settings)


def _count_unrecorded(settings: Mapping[str, str]) -> int:
    return count_unrecorded(_settings(settings))


def _settings(settings: Mapping[str, str]) -> Settings:
    os.environ.update({name: value for name, value in settings.items() if name.startswith("AWS_")})
    return load_settings(settings)
