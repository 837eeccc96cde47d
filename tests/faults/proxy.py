"""A proxy before DynamoDB that does to calls what DynamoDB and the network do on bad days.

Statements of a batch fail one by one beside their neighbours, some of them although they were executed; whole
calls are throttled; keys stay unprocessed; replies come too late for calls that were executed; calls hang.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

HOST = "127.0.0.1"
# Longer than the time-out of a client's request.
_TOO_LATE_S = 2.4
_CONDITIONS = ("ConditionalCheckFailed", "DuplicateItem")

Headers = dict[str, str]


@dataclass
class Weather:
    """What happens to calls now: shares of 0 to 1, and a hold. All zero: nothing does."""

    throttled_calls: float = 0.0
    throttled_statements: float = 0.0
    conflicting_statements: float = 0.0
    ambiguous_statements: float = 0.0
    unprocessed_keys: float = 0.0
    late_replies: float = 0.0
    held: bool = False


@dataclass
class Request:
    """One request as it came."""

    line: str
    headers: Headers
    body: bytes

    @property
    def operation(self) -> str:
        return self.headers.get("x-amz-target", "").rpartition(".")[2]


@dataclass
class Reply:
    """One reply as it goes."""

    line: str
    headers: Headers
    body: bytes


@dataclass
class Proxy:
    """Listens on a port of its own and passes on to the emulator's. Belongs to the loop that started it."""

    upstream_port: int
    dice: random.Random = field(default_factory=random.Random)
    weather: Weather = field(default_factory=Weather)
    counts: Counter[str] = field(default_factory=Counter)
    port: int = 0
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)

    async def start(self) -> None:
        """Begin to listen."""
        self._server = await asyncio.start_server(self._serve, HOST, self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and cut what is connected."""
        assert self._server is not None
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while (request := await _read_request(reader)) is not None:
                await self._hold()
                if reader.at_eof():
                    return  # whoever asked has given up: nothing may be executed behind their back
                upstream = upstream or await asyncio.open_connection(HOST, self.upstream_port)
                reply = await self._answer(request, *upstream)
                if self.dice.random() < self.weather.late_replies:
                    self.counts["replies that came too late"] += 1
                    await asyncio.sleep(_TOO_LATE_S)
                await _write_reply(writer, reply)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            return  # to the client this is a lost connection
        finally:
            self._connections.discard(task)
            for one in (writer, *(upstream or ())[1:]):
                one.close()

    async def _hold(self) -> None:
        if self.weather.held:
            self.counts["calls held"] += 1
        while self.weather.held:  # noqa: ASYNC110 - a test may poll
            await asyncio.sleep(0.02)

    async def _answer(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
        weather = self.weather
        if self.dice.random() < weather.throttled_calls:
            self.counts["calls throttled"] += 1
            return _refusal("ProvisionedThroughputExceededException")
        if request.operation == "BatchExecuteStatement":
            return await self._batch(request, reader, writer)
        if request.operation == "BatchGetItem" and self.dice.random() < weather.unprocessed_keys:
            return await self._some_keys(request, reader, writer)
        return await _pass_on(request, reader, writer)

    async def _batch(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
        """Some statements are not executed and say so; some are, and say that nobody knows."""
        statements = json.loads(request.body)["Statements"]
        errors: dict[int, str] = {}
        for index in range(len(statements)):
            if self.dice.random() < self.weather.throttled_statements:
                errors[index] = "ThrottlingError"
            elif self.dice.random() < self.weather.conflicting_statements:
                errors[index] = "TransactionConflict"
        for code in errors.values():
            self.counts[f"statements with {code}"] += 1
        kept = [one for index, one in enumerate(statements) if index not in errors]
        reply = None
        found: list[Any] = []
        if kept:
            passed = Request(request.line, request.headers, _encode({"Statements": kept}))
            reply = await _pass_on(passed, reader, writer)
            if reply.line.split()[1] != "200":
                return reply
            found = json.loads(reply.body)["Responses"]
        for index, one in enumerate(found):
            is_result = "Error" in one and one["Error"]["Code"] in _CONDITIONS
            if not is_result and self.dice.random() < self.weather.ambiguous_statements:
                self.counts["statements executed with InternalServerError"] += 1
                found[index] = _statement_error("InternalServerError")
        rest = iter(found)
        responses = [
            _statement_error(errors[index]) if index in errors else next(rest) for index in range(len(statements))
        ]
        return _ok({"Responses": responses})

    async def _some_keys(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
        asked = json.loads(request.body)
        ((table, wanted),) = asked["RequestItems"].items()
        keys = wanted["Keys"]
        kept = self.dice.sample(keys, len(keys) // 2)
        left = [key for key in keys if key not in kept]
        self.counts["keys left unprocessed"] += len(left)
        answer: dict[str, Any] = {"Responses": {table: []}}
        if kept:
            body = _encode(asked | {"RequestItems": {table: wanted | {"Keys": kept}}})
            reply = await _pass_on(Request(request.line, request.headers, body), reader, writer)
            if reply.line.split()[1] != "200":
                return reply
            answer = json.loads(reply.body)
        answer["UnprocessedKeys"] = {table: wanted | {"Keys": left}}
        return _ok(answer)


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    with suppress(asyncio.IncompleteReadError):
        line, headers = await _read_head(reader)
        return Request(line, headers, await reader.readexactly(int(headers.get("content-length", "0"))))
    return None


async def _read_head(reader: asyncio.StreamReader) -> tuple[str, Headers]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    pairs = (field.partition(":") for field in fields)
    return line, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _pass_on(request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Reply:
    writer.write(_head(request.line, request.headers | {"content-length": str(len(request.body))}) + request.body)
    await writer.drain()
    line, headers = await _read_head(reader)
    return Reply(line, headers, await reader.readexactly(int(headers["content-length"])))


async def _write_reply(writer: asyncio.StreamWriter, reply: Reply) -> None:
    # The checksum is of the emulator's body, which may be another.
    headers = {name: value for name, value in reply.headers.items() if name != "x-amz-crc32"}
    writer.write(_head(reply.line, headers | {"content-length": str(len(reply.body))}) + reply.body)
    await writer.drain()


def _head(line: str, headers: Mapping[str, str]) -> bytes:
    return "\r\n".join([line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]).encode("latin-1")


def _encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def _ok(value: Any) -> Reply:
    return Reply("HTTP/1.1 200 OK", {"content-type": "application/x-amz-json-1.0"}, _encode(value))


def _refusal(code: str) -> Reply:
    body = {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": "by the test"}
    return Reply("HTTP/1.1 400 Bad Request", {"content-type": "application/x-amz-json-1.0"}, _encode(body))


def _statement_error(code: str) -> dict[str, Any]:
    return {"Error": {"Code": code, "Message": "by the test"}}
