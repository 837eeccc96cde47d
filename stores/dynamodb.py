"""DynamoDB as it is spoken to: batches whose every error is read, retries within a deadline, errors translated once.

Facts relied on: a BatchExecuteStatement takes 25 statements, either all reads or all writes, each on
another item, and reports an error per statement beside the 200
(https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html);
a BatchGetItem takes 100 keys and may leave some unprocessed
(https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from schemas.errors import StoreUnavailable
from schemas.settings import Settings
from stores.deadline import Deadline

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = dict[str, Any]

STATEMENTS_PER_BATCH = 25
KEYS_PER_GET = 100
CONNECT_TIMEOUT_S = 1
READ_TIMEOUT_S = 2
# For pages of thousands of rows, of which many are under way: DynamoDB takes milliseconds, the emulator seconds.
QUERY_TIMEOUT_S = 10
# After so long a request that was sent can no longer write.
REQUEST_TIMEOUT_S = CONNECT_TIMEOUT_S + READ_TIMEOUT_S
_PARALLEL_CALLS = 8
_FIRST_BACKOFF_S = 0.025
_LONGEST_BACKOFF_S = 1.0

# What another attempt can cure. Names as in a statement's error and as in an exception.
_PASSING = frozenset({
    "InternalServerError", "ItemCollectionSizeLimitExceededException", "LimitExceededException",
    "ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
    "RequestLimitExceededException", "ServiceUnavailable", "Throttling", "ThrottlingError", "ThrottlingException",
    "TransactionConflict", "TransactionConflictException", "TransactionInProgressException",
})  # fmt: skip
REFUSED = "ConditionalCheckFailed"
DUPLICATE = "DuplicateItem"


@dataclass(frozen=True, slots=True)
class Statement:
    """One PartiQL statement and its parameters, in DynamoDB's wire types."""

    text: str
    parameters: Sequence[Item]

    def request(self) -> Item:
        """The statement as BatchExecuteStatement takes it."""
        return {"Statement": self.text, "Parameters": list(self.parameters)}


def connect_dynamodb(settings: Settings, read_timeout_s: float = READ_TIMEOUT_S) -> DynamoDBClient:
    """A client with one attempt and short timeouts: the retries are ours. Safe to share between threads.

    What writes keeps the read timeout: others rely on when its requests are over (REQUEST_TIMEOUT_S).
    """
    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=read_timeout_s,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=2 * _PARALLEL_CALLS,
        tcp_keepalive=True,
    )
    return boto3.client("dynamodb", endpoint_url=settings.dynamodb_url, config=config)


class Dynamo:
    """Calls with retries. Raises StoreUnavailable for all that is no answer, DeadlineMissed when time is up."""

    def __init__(
        self,
        client: DynamoDBClient,
        sleep: Callable[[float], None] = time.sleep,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self.client = client
        self._sleep = sleep
        self._jitter = jitter
        self._pool = ThreadPoolExecutor(_PARALLEL_CALLS, thread_name_prefix="dynamodb")

    def close(self) -> None:
        """Ends the threads; calls under way are finished first."""
        self._pool.shutdown()

    def execute(self, statements: Sequence[Statement], deadline: Deadline) -> list[str | None]:
        """Execute the statements in parallel batches of 25, and say of each: None (done), REFUSED or DUPLICATE.

        No two may touch one item. Not atomic: each statement stands for itself, in no order. Throttles are
        retried with full-jitter backoff until the deadline; any other error stops loudly.
        """
        outcomes: list[str | None] = [None] * len(statements)
        waiting = list(range(len(statements)))
        for attempt in self._attempts(deadline):
            chunks = [waiting[i : i + STATEMENTS_PER_BATCH] for i in range(0, len(waiting), STATEMENTS_PER_BATCH)]
            answers = self._pool.map(
                lambda chunk: self._execute_chunk([statements[i] for i in chunk], deadline), chunks
            )
            again: list[int] = []
            for chunk, codes in zip(chunks, answers, strict=True):
                for index, code in zip(chunk, codes, strict=True):
                    if code is None or code in (REFUSED, DUPLICATE):
                        outcomes[index] = code
                    else:
                        again.append(index)
            if not again:
                return outcomes
            waiting = again
            self._back_off(attempt, deadline)
        raise AssertionError("unreachable: attempts end by DeadlineMissed")

    def get(self, table: str, keys: Sequence[Item], deadline: Deadline) -> list[Item]:
        """The items that exist under these keys, strongly consistent, in no order; parallel batches of 100."""
        items: list[Item] = []
        waiting = list(keys)
        for attempt in self._attempts(deadline):
            chunks = [waiting[i : i + KEYS_PER_GET] for i in range(0, len(waiting), KEYS_PER_GET)]
            waiting = []
            for found, left in self._pool.map(lambda chunk: self._get_chunk(table, chunk), chunks):
                items += found
                waiting += left
            if not waiting:
                return items
            self._back_off(attempt, deadline)
        raise AssertionError("unreachable: attempts end by DeadlineMissed")

    def call(self, what: str, request: Callable[[], Any], deadline: Deadline) -> Any:
        """One request, retried while it is throttled. ClientError of a condition passes through."""
        for attempt in self._attempts(deadline):
            try:
                with store_errors(what):
                    return request()
            except Throttled:
                self._back_off(attempt, deadline)
        raise AssertionError("unreachable: attempts end by DeadlineMissed")

    def _attempts(self, deadline: Deadline) -> Iterator[int]:
        attempt = 0
        while True:
            deadline.check()
            yield attempt
            attempt += 1

    def _back_off(self, attempt: int, deadline: Deadline) -> None:
        longest_s = min(_LONGEST_BACKOFF_S, _FIRST_BACKOFF_S * 2**attempt)
        self._sleep(min(self._jitter(0, longest_s), deadline.left_s))

    def _execute_chunk(self, statements: Sequence[Statement], deadline: Deadline) -> list[str | None]:
        deadline.check()
        try:
            with store_errors("execute a batch"):
                reply = self.client.batch_execute_statement(Statements=[one.request() for one in statements])  # type: ignore[misc]
        except Throttled:
            return ["Throttling"] * len(statements)
        responses = reply.get("Responses", [])
        if len(responses) != len(statements):
            raise StoreUnavailable(f"DynamoDB answered {len(responses)} of {len(statements)} statements")
        return [_code(response) for response in responses]

    def _get_chunk(self, table: str, keys: Sequence[Item]) -> tuple[list[Item], list[Item]]:
        try:
            with store_errors("read a batch"):
                reply = self.client.batch_get_item(RequestItems={table: {"Keys": list(keys), "ConsistentRead": True}})
        except Throttled:
            return [], list(keys)
        left: Mapping[str, Any] = reply.get("UnprocessedKeys", {}).get(table, {})
        return list(reply.get("Responses", {}).get(table, [])), list(left.get("Keys", []))


class Throttled(StoreUnavailable):
    """DynamoDB asks for another attempt later."""


@contextmanager
def store_errors(what: str) -> Iterator[None]:
    """Turns what boto3 raises into Throttled or StoreUnavailable, keeping the cause.

    A failed condition passes through as ClientError: for its caller it is a result.
    """
    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "")
        if code in ("ConditionalCheckFailedException", "TransactionCanceledException", "ResourceInUseException"):
            raise
        kind = Throttled if code in _PASSING else StoreUnavailable
        raise kind(f"DynamoDB did not {what}: {code}: {error}") from error
    except BotoCoreError as error:
        raise StoreUnavailable(f"DynamoDB did not {what}: {error}") from error


def _code(response: Mapping[str, Any]) -> str | None:
    error = response.get("Error")
    if not error:
        return None
    code = str(error.get("Code", ""))
    if code in (REFUSED, DUPLICATE) or code in _PASSING:
        return code
    raise StoreUnavailable(f"DynamoDB refused a statement: {code}: {error.get('Message', '')}")
