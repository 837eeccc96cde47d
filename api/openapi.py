"""The OpenAPI document: made from the table of operations and from the models that validate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from api.batches import NDJSON
from api.calls import Call
from api.contract import EVENTS, Answer, Body, Operation, Parameter
from api.files import tag_of
from api.operations import OPERATIONS
from api.replies import JSON_TYPE, Headers, Reply
from api.submits import JSON
from schemas.problem_replies import PROBLEM_REPLIES, DefectReply, ProblemReply, UnreadyReply
from schemas.problems import CATALOGUE, MEDIA_TYPE, Problem
from schemas.settings import Role
from schemas.wire import encode_json

_REF = "#/components/schemas/{model}"
_KEY = "key"
_INFO = """\
A leaderboard service for games. Times are RFC 3339 in UTC with milliseconds. Unknown parameters and unknown fields are
refused. Errors are problem documents (RFC 9457)."""
_TAGS = {
    "submit": "For game servers: each call needs a key.",
    "read": "Public. HEAD works wherever GET does.",
    "service": "Of every process, without a key: not for the public.",
}
_HEADERS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "Cache-Control": ("How long this may be kept", {"type": "string"}, True),
    "Content-Security-Policy": ("What the page may load and run", {"type": "string"}, True),
    "ETag": ("For If-None-Match", {"type": "string"}, True),
    "Retry-After": ("In seconds", {"type": "integer", "minimum": 1}, True),
    "Standings-As-Of": (
        "Everything that the log accepted before this moment is in; absent where that is not known",
        {"type": "string", "format": "date-time"},
        False,
    ),
    "WWW-Authenticate": ("How to show a key", {"const": "Bearer"}, True),
}
_OF_PROBLEMS = {401: ("WWW-Authenticate",), 503: ("Retry-After",), 504: ("Retry-After",)}
# What /readyz answers is of one form, whichever of two problems it names.
_UNREADY = "unready"
_DETAILS = {
    "invalid-json": "the body is not JSON: unexpected end of data: line 1 column 2 (char 1)",
    "unauthorized": "send a key that may submit: Authorization: Bearer KEY",
    "forbidden": "the key eu-1 may not write ranked",
    "leaderboard-not-found": "no leaderboard is called 'none'",
    "board-not-found": "main has no monthly window",
    "player-not-found": "'ghost' has no score on main:all",
    "match-not-found": "nothing of 'm-9' was applied on main",
    "match-conflict": "'m-1' is recorded on main with other results or another end time: what was recorded first stays",
    "board-expired": "main:daily:2026-01-01 is past its retention",
    "too-large": "a body of this call has at most 65536 bytes",
    "unsupported-media-type": "send this body as application/json; it says that it is text/plain",
    "store-unavailable": "Redis does not answer",
    "not-applied-yet": "the position was not applied within 1 s; ask again, or without it",
}


class OpenApi:
    """GET /openapi.json: the document of what this process serves, made once, when it is first asked for."""

    def __init__(self, serves: frozenset[Role]) -> None:
        self._serves = serves
        self._made: tuple[bytes, bytes] | None = None

    async def show(self, call: Call) -> Reply:
        """The document; any web page may read it."""
        if self._made is None:
            body = encode_json(describe(self._serves))
            self._made = tag_of(body), body
        tag, body = self._made
        headers: Headers = [(b"etag", tag), (b"cache-control", b"no-cache")]
        if call.knows(tag):
            return Reply(304, b"", headers)
        return Reply(200, body, [JSON_TYPE, *headers])


def describe(serves: frozenset[Role]) -> dict[str, Any]:
    """The OpenAPI 3.1 document of these route sets, and of what every process has."""
    shown = [one for one in OPERATIONS if one.serves is None or one.serves in serves]
    paths: dict[str, dict[str, Any]] = {}
    for operation in shown:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    tags = [tag for tag in _TAGS if tag == "service" or tag in serves]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Standings",
            "version": _version(),
            "description": _INFO,
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": tag, "description": _TAGS[tag]} for tag in tags],
        "paths": paths,
        "components": {
            "schemas": _schemas(shown),
            "headers": {name: _header(name) for name in _HEADERS},
            "securitySchemes": {
                _KEY: {"type": "http", "scheme": "bearer", "description": "A key of STANDINGS_SUBMIT_KEYS"}
            },
        },
    }


class _Plain(GenerateJsonSchema):
    """Without what says nothing: titles that repeat a name, and a null that stands for a field left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> dict[str, Any]:
        made = super().default_schema(schema)
        if made.get("default", ...) is None:
            del made["default"]
        return made


def _schemas(operations: Iterable[Operation]) -> dict[str, Any]:
    models: dict[type[BaseModel], None] = {ProblemReply: None, DefectReply: None}
    for operation in operations:
        models |= dict.fromkeys(operation.body.models if operation.body else ())
        for answer in operation.answers:
            models |= dict.fromkeys(answer.models)
        models |= dict.fromkeys(_problem_model(name) for name in operation.problems)
    _, schema = models_json_schema(
        [(model, "validation") for model in models], ref_template=_REF, schema_generator=_Plain
    )
    found: dict[str, Any] = schema["$defs"]
    return found


def _operation(operation: Operation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": operation.name,
        "summary": operation.says,
        "tags": [operation.serves or "service"],
        "responses": {str(one.status): _answer(one) for one in operation.answers} | _problems(operation),
    }
    if operation.more:
        shown["description"] = operation.more
    if operation.parameters:
        shown["parameters"] = [_parameter(one) for one in operation.parameters]
    if operation.body is not None:
        shown["requestBody"] = _body(operation.body)
    if operation.needs_key:
        shown["security"] = [{_KEY: []}]
    return shown


def _parameter(parameter: Parameter) -> dict[str, Any]:
    shown = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.says,
        "required": parameter.required,
        "schema": parameter.schema,
    }
    return shown if parameter.example is None else shown | {"example": parameter.example}


def _body(body: Body) -> dict[str, Any]:
    content: dict[str, Any] = _content(body.media, body.models)
    content["examples"] = {name: {"value": _render(body.media, value)} for name, value in body.examples.items()}
    return {"description": body.says, "required": True, "content": {body.media: content}}


def _answer(answer: Answer) -> dict[str, Any]:
    shown: dict[str, Any] = {"description": answer.says, "headers": _header_refs(answer.headers)}
    if answer.media is None:
        return shown
    example = answer.example
    if example is None and answer.models:
        example = _example_of(answer.models[0])
    content = _content(answer.media, answer.models)
    if example is not None:
        content["examples"] = {"one": {"value": _render(answer.media, example)}}
    return shown | {"content": {answer.media: content}}


def _content(media: str, models: tuple[type[BaseModel], ...]) -> dict[str, Any]:
    """OpenAPI 3.1 has no word for the parts of a text: lines have their schema beside it, a stream that of an event."""
    refs = [_ref(model) for model in models]
    if media == NDJSON:
        return {"schema": {"type": "string", "pattern": r"\S"}, "x-line-schema": {"anyOf": refs}}
    if media == EVENTS:
        data = {"type": "string", "contentMediaType": JSON, "contentSchema": refs[0]}
        properties = {"event": {"const": "top"}, "data": data}
        return {"schema": {"type": "object", "properties": properties, "required": ["event", "data"]}}
    if media.startswith("text/"):
        return {"schema": {"type": "string"}}
    return {"schema": refs[0] if refs else {"type": "object"}}


def _render(media: str, value: Any) -> Any:
    if media == NDJSON:
        return "".join(encode_json(line).decode() + "\n" for line in value)
    return {"event": "top", "data": encode_json(value).decode()} if media == EVENTS else value


def _problems(operation: Operation) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for name in operation.problems:
        by_status.setdefault(503 if name == _UNREADY else CATALOGUE[name][0], []).append(name)
    shown = {str(status): _problem(status, names, operation) for status, names in sorted(by_status.items())}
    defect = {"schema": _ref(DefectReply), "examples": {"defect": {"value": _example_of(DefectReply)}}}
    return shown | {"500": {"description": "A defect of the service", "content": {MEDIA_TYPE: defect}}}


def _problem(status: int, names: list[str], operation: Operation) -> dict[str, Any]:
    schemas = [_ref(model) for model in dict.fromkeys(_problem_model(name) for name in names)]
    schema: dict[str, Any] = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    if names != [_UNREADY]:
        types = {"enum": [f"/problems/{name}" for name in names]}
        schema = {"allOf": [schema, {"properties": {"type": types, "status": {"const": status}}}]}
    examples = {name: _problem_example(name, is_submission=operation.needs_key) for name in names}
    headers = _OF_PROBLEMS.get(status, ())
    if "player-not-found" in names:
        headers = ("Standings-As-Of",)
    return {
        "description": " · ".join(CATALOGUE[name][1] if name in CATALOGUE else "Something is wrong" for name in names),
        "headers": _header_refs(headers),
        "content": {MEDIA_TYPE: {"schema": schema, "examples": {name: {"value": examples[name]} for name in names}}},
    }


def _problem_model(name: str) -> type[BaseModel]:
    return UnreadyReply if name == _UNREADY else PROBLEM_REPLIES[name]


def _problem_example(name: str, *, is_submission: bool) -> Any:
    model = _problem_model(name)
    if model is ProblemReply or (name == "store-unavailable" and not is_submission):
        return Problem(name, _DETAILS[name]).body()
    return _example_of(model)


def _example_of(model: type[BaseModel]) -> Any:
    extra: Any = model.model_config["json_schema_extra"]
    return extra["examples"][0]


def _ref(model: type[BaseModel]) -> dict[str, Any]:
    return {"$ref": _REF.format(model=model.__name__)}


def _header(name: str) -> dict[str, Any]:
    says, schema, is_always = _HEADERS[name]
    return {"description": says, "schema": schema, "required": is_always}


def _header_refs(names: Iterable[str]) -> Mapping[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _version() -> str:
    try:
        return version("standings")
    except PackageNotFoundError:  # a checkout that was never installed
        return "0"
