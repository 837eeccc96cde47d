"""The DynamoDB emulator as a process: ministack, DynamoDB alone, behind a journal.

ministack writes its state only at a clean stop, and starts empty where it can't read it. Here,
every writing request is journaled before its reply, so kill -9 loses no acknowledged write
(a loss of power at most the last second's); the journal is replayed at the next start and
folded into a snapshot there and at a clean stop; state that can't be read is an error.

`python -m embedded.emulator --port PORT --folder FOLDER`
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embedded.journal import Journal, Record
from embedded.ports import LOOPBACK

_SYNC_EVERY_S = 1.0
_READS = frozenset(
    {"GetItem", "BatchGetItem", "Query", "Scan", "TransactGetItems", "DescribeTable", "ListTables"}
    | {"DescribeTimeToLive", "DescribeEndpoints", "DescribeLimits", "ListTagsOfResource"}
)

# The partition key needs an equality: where there is one condition only, it is that.
_PARTITION_ALONE = re.compile(r"\s*\w+\s*=\s*:\w+\s*")

_Reply = tuple[int, dict[str, str], Any]
_Handler = Callable[[str, str, dict[str, str], bytes, dict[str, Any]], Awaitable[_Reply]]


def main() -> int:
    """Serve DynamoDB on 127.0.0.1 until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="embedded.emulator", description="DynamoDB on 127.0.0.1")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args()
    _configure(options.port)
    journal = Journal(options.folder)
    started_at = time.monotonic()
    count = asyncio.run(_restore(journal))
    if count:
        journal.compact(_save)
    _tell(f"{count} requests replayed in {time.monotonic() - started_at:.2f} s")
    _record(journal)
    _skip_needless_conditions()
    threading.Thread(target=_sync_for_ever, args=(journal,), daemon=True).start()
    asyncio.run(_serve(options.port))
    if not journal.is_empty():
        journal.compact(_save)
    _tell("stopped, state saved")
    return 0


def _configure(port: int) -> None:
    """Set what ministack reads from the environment when it is imported."""
    os.environ.update(
        SERVICES="dynamodb",
        BIND_HOST=LOOPBACK,
        GATEWAY_PORT=str(port),
        PERSIST_STATE="0",  # its own way: only at a clean stop
        LOCALSTACK_PERSISTENCE="0",
        USE_SSL="0",
        AUTH="false",
        SFTP_ENABLED="0",
        IOT_MTLS_ENABLED="0",
        DOCKER_HOST="unix:///nonexistent",  # it would look for containers to remove
        MINISTACK_WORKER_THREADS="4",
    )
    os.environ.setdefault("LOG_LEVEL", "WARNING")


async def _restore(journal: Journal) -> int:
    """Load the snapshot, then execute the journal; return how many requests that were."""
    from ministack.core import persistence, responses  # noqa: PLC0415 - after _configure
    from ministack.services import dynamodb  # noqa: PLC0415

    with _persisting(journal.generation):
        state = persistence.load_state("dynamodb")
    if state is not None:
        dynamodb.load_persisted_state(state)
    elif (journal.generation / "dynamodb.json").exists():
        raise SystemExit(f"the state in {journal.generation} can't be read; it is left as it is")
    count = 0
    for record in journal.read():
        with responses.request_scope(record["account"], record["region"]):
            await dynamodb.handle_request("POST", "/", {"x-amz-target": record["target"]}, record["body"].encode(), {})
        count += 1
    return count


@contextmanager
def _persisting(folder: Path) -> Iterator[None]:
    """Turn ministack's persistence on for a moment: left on, its stop would write beside the journal."""
    from ministack.core import persistence  # noqa: PLC0415 - after _configure

    persistence.PERSIST_STATE = True
    persistence.STATE_DIR = str(folder)
    try:
        yield
    finally:
        persistence.PERSIST_STATE = False


def _save(folder: Path) -> None:
    """Write the state into a folder, to the disk; raises if ministack (which only logs) could not."""
    from ministack.core import persistence  # noqa: PLC0415 - after _configure
    from ministack.services import dynamodb  # noqa: PLC0415

    with _persisting(folder):
        persistence.save_state("dynamodb", dynamodb.get_state())
    with (folder / "dynamodb.json").open("rb") as file:
        os.fsync(file.fileno())


def _record(journal: Journal) -> None:
    """Put the journal between DynamoDB's handler and its replies.

    The handler never awaits, so one turn of the event loop executes and journals a request:
    the order in the journal is the order of execution. Refused requests are journaled too;
    they are refused again. What can't be journaled ends the process, unacknowledged.
    """
    from ministack.core import responses  # noqa: PLC0415 - after _configure
    from ministack.services import dynamodb  # noqa: PLC0415

    handle: _Handler = dynamodb.handle_request

    async def handle_and_record(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> _Reply:
        reply = await handle(method, path, headers, body, query)
        target = headers.get("x-amz-target", "")
        if target.rpartition(".")[2] not in _READS:
            record: Record = {
                "account": responses.get_account_id(),
                "region": responses.get_region(),
                "target": target,
                "body": body.decode("utf-8", "replace"),
            }
            try:
                journal.append(record)
            except OSError as error:
                _tell(f"the journal can't be written, so nothing may be acknowledged: {error}")
                os._exit(1)
        return reply

    dynamodb.handle_request = handle_and_record


def _skip_needless_conditions() -> None:
    """Let a query by partition key alone not ask each item of the partition whether it is in it.

    ministack parses the condition anew for every item, and that for every page: 16 µs each, so that a
    page of a partition of 100,000 items took 1.7 s.
    """
    from ministack.services import dynamodb  # noqa: PLC0415 - after _configure

    name = "_evaluate_condition"  # none of its public names: one that lacks it is as slow as it ever was
    evaluate = getattr(dynamodb, name, None)
    if evaluate is None:
        return

    def evaluate_if_needed(expression: str, *rest: Any, slot: str = "ConditionExpression") -> bool:
        if slot == "KeyConditionExpression" and _PARTITION_ALONE.fullmatch(expression):
            return True
        return bool(evaluate(expression, *rest, slot=slot))

    setattr(dynamodb, name, evaluate_if_needed)


def _sync_for_ever(journal: Journal) -> None:
    while True:
        time.sleep(_SYNC_EVERY_S)
        journal.sync()


async def _serve(port: int) -> None:
    from hypercorn.asyncio import serve  # noqa: PLC0415 - comes with ministack
    from hypercorn.config import Config  # noqa: PLC0415
    from ministack.app import app  # noqa: PLC0415 - after _configure

    config = Config()
    config.bind = [f"{LOOPBACK}:{port}"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 1
    config.loglevel = "WARNING"
    await serve(app, config)


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
