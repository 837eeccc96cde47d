"""What can go wrong between a client and DynamoDB, ordered in advance by a test."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError, ReadTimeoutError

Request = dict[str, Any]
THROTTLED = "ProvisionedThroughputExceededException"


def client_error(operation: str, code: str, message: str = "by the test", **more: Any) -> ClientError:
    """What boto3 raises for an answer that is an error."""
    response: Any = {"Error": {"Code": code, "Message": message}, "ResponseMetadata": {"HTTPStatusCode": 400}, **more}
    return ClientError(response, operation)


class DynamoFaults:
    """Orders of faults, each consumed by the next calls that it fits. Safe to share between threads.

    `before` is called with (operation, request) ahead of every call, outside of all locks: a test may write
    there what another writer would have written meanwhile, or raise. `calls` counts calls by operation.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.before: Callable[[str, Request], None] | None = None
        self._lock = threading.Lock()
        self._failing: list[tuple[str | None, str]] = []
        self._timing_out: list[str | None] = []
        self._statement_codes: list[str] = []
        self._unprocessed: list[int] = []
        self._running = threading.Event()
        self._running.set()

    def fail_calls(self, code: str = THROTTLED, times: int = 1, operation: str | None = None) -> None:
        """The next calls (of this operation) raise ClientError and do nothing."""
        with self._lock:
            self._failing += [(operation, code)] * times

    def time_out_calls(self, times: int = 1, operation: str | None = None) -> None:
        """The next calls (of this operation) are executed, and then the connection times out."""
        with self._lock:
            self._timing_out += [operation] * times

    def fail_statements(self, code: str = "ThrottlingError", times: int = 1) -> None:
        """The next statements of batches answer this error and do nothing; their neighbours go on."""
        with self._lock:
            self._statement_codes += [code] * times

    def leave_unprocessed(self, *keys: int) -> None:
        """The next BatchGetItems leave so many of their keys unprocessed, one number for each call."""
        with self._lock:
            self._unprocessed += keys

    def pause(self) -> None:
        """All calls wait until `resume`."""
        self._running.clear()

    def resume(self) -> None:
        """The calls that wait go on."""
        self._running.set()

    def enter(self, operation: str, request: Request) -> None:
        """A call begins: it is counted, waits, and may fail."""
        with self._lock:
            self.calls[operation] += 1
        self._running.wait()
        if self.before is not None:
            self.before(operation, request)
        with self._lock:
            order = next((one for one in self._failing if one[0] in (None, operation)), None)
            if order is not None:
                self._failing.remove(order)
        if order is not None:
            raise client_error(operation, order[1])

    def leave(self, operation: str) -> None:
        """A call was executed; its answer may get lost."""
        with self._lock:
            index = next((i for i, one in enumerate(self._timing_out) if one in (None, operation)), None)
            if index is None:
                return
            del self._timing_out[index]
        raise ReadTimeoutError(endpoint_url="memory://dynamodb")

    def statement_code(self) -> str | None:
        """The error that the next statement answers."""
        with self._lock:
            return self._statement_codes.pop(0) if self._statement_codes else None

    def unprocessed_keys(self) -> int:
        """How many keys the present BatchGetItem leaves."""
        with self._lock:
            return self._unprocessed.pop(0) if self._unprocessed else 0
