"""The OpenAPI document: valid, complete, and at one with what is served and with what docs/http.md promises."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from starlette.routing import Route, Router

from api.app import create_app
from api.endpoints import Endpoint
from api.openapi import describe
from api.operations import OPERATIONS
from api.services import connect
from embedded.environment import describe_emulator_access
from schemas.problems import CATALOGUE
from schemas.settings import Role, Settings

DOCUMENT = describe(frozenset({"read", "submit"}))
PROMISES = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
# Files of the pages are no part of the contract.
FILES = {("GET", "/page/{}"), ("GET", "/docs/{}")}
SERVES: list[frozenset[Role]] = [frozenset({"read"}), frozenset({"submit"}), frozenset({"read", "submit"})]


def operations(document: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    """((method, path without the names of its parts), operation)."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield (method.upper(), nameless(path)), operation


def nameless(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


OPERATION = dict(operations(DOCUMENT))


def query_of(operation: Mapping[str, Any]) -> set[str]:
    return {one["name"] for one in operation.get("parameters", []) if one["in"] == "query"}


def problems_of(operation: Mapping[str, Any]) -> dict[str, int]:
    """Status by name of a problem."""
    found = {}
    for status, response in operation["responses"].items():
        for name in response.get("content", {}).get("application/problem+json", {}).get("examples", {}):
            found[name] = int(status)
    return found


@pytest.mark.parametrize("serves", SERVES, ids=sorted)
def test_the_document_is_openapi_3_1(serves: frozenset[Role]) -> None:
    document = json.loads(json.dumps(describe(serves)))
    assert document["openapi"] == "3.1.0"
    OpenAPIV31SpecValidator(document).validate()
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(names) == len(set(names))
    unused = {name for name in document["components"]["schemas"] if f'schemas/{name}"' not in json.dumps(document)}
    assert unused == set()


@pytest.mark.parametrize("serves", SERVES, ids=sorted)
def test_every_route_is_described_and_all_that_is_described_is_served(
    serves: frozenset[Role], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in describe_emulator_access().items():
        monkeypatch.setenv(name, value)
    services = connect(Settings(serve=serves))
    try:
        router = create_app(services)._app
        assert isinstance(router, Router)
        served = set()
        for route in router.routes:
            assert isinstance(route, Route)
            assert isinstance(route.endpoint, Endpoint)
            allowed = set(route.endpoint._allow.split(", ")) - {"HEAD", "OPTIONS"}
            served |= {(method, nameless(route.path)) for method in allowed}
    finally:
        asyncio.run(services.close())
    described = {key for key, _ in operations(describe(serves))}
    assert served - FILES == described


def examples() -> Iterator[tuple[str, Mapping[str, Any], Any]]:
    for (method, path), operation in operations(DOCUMENT):
        place = f"{method} {path}"
        for parameter in operation.get("parameters", []):
            if "example" in parameter:
                yield f"{place} {parameter['name']}", parameter["schema"], parameter["example"]
        contents = [operation.get("requestBody", {}), *operation["responses"].values()]
        for content in contents:
            for media, described in content.get("content", {}).items():
                assert described.get("examples") or media == "text/html", f"{place} {media}"
                for name, example in described.get("examples", {}).items():
                    yield f"{place} {name}", described, example["value"]
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for example in schema.get("examples", []):
            yield name, schema, example


def validate(schema: Mapping[str, Any], value: Any) -> None:
    checker = OAS31Validator.FORMAT_CHECKER
    OAS31Validator({**schema, "components": DOCUMENT["components"]}, format_checker=checker).validate(value)


def test_every_example_is_valid() -> None:
    seen = 0
    for place, described, value in examples():
        schema = described.get("schema", described)
        try:
            validate(schema, value)
            for line in value.splitlines() if "x-line-schema" in described else []:
                validate(described["x-line-schema"], json.loads(line))
            if isinstance(value, dict) and "event" in value:
                validate(schema["properties"]["data"]["contentSchema"], json.loads(value["data"]))
        except Exception as error:
            raise AssertionError(f"the example of {place} is wrong") from error
        seen += 1
    assert seen > 150


def promised_calls() -> set[tuple[str, str]]:
    """What docs/http.md names in its text, and what its curl lines call."""
    found = {
        (method, nameless(path))
        for method, path in re.findall(r"`(GET|POST) (/[^\s`?]*)", PROMISES)
        if not path.startswith("/page/")
    }
    known = {path for _, path in OPERATION}
    for line in re.findall(r'curl "\$URL(.*(?:\n .*)*)', PROMISES):
        path = line.split('"')[0].split("?")[0]
        method = "POST" if " -d " in line or "--data" in line else "GET"
        (fitting,) = {one for one in known if re.fullmatch(one.replace("{}", "[^/]+"), path)} or {path}
        found.add((method, fitting))
    return found


def test_the_contract_in_words_names_the_same_operations() -> None:
    assert promised_calls() == set(OPERATION)


def test_the_contract_in_words_names_the_same_parameters() -> None:
    lines = re.findall(r"^\| `(GET|POST) (/v1/[^`]*)` \| (.*) \|$", PROMISES, flags=re.MULTILINE)
    promised = {
        (method, nameless(path)): set(re.findall(r"`(\w+)`", said.partition(";")[0])) for method, path, said in lines
    }
    assert promised == {
        key: query_of(one) for key, one in OPERATION.items() if key[1].startswith("/v1/") and one["tags"] == ["read"]
    }
    submits = {key[1]: query_of(one) for key, one in OPERATION.items() if one["tags"] == ["submit"]}
    assert submits.pop("/v1/scores") == submits.pop("/v1/matches") == {"wait"}
    assert set().union(*submits.values()) == set()


def test_the_contract_in_words_names_the_same_problems() -> None:
    promised = {
        name: int(status) for name, status in re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \|", PROMISES, flags=re.MULTILINE)
    }
    assert promised == {name: status for name, (status, _) in CATALOGUE.items()}
    described: dict[str, int] = {}
    for operation in OPERATION.values():
        described |= problems_of(operation)
    # Of no operation, but of paths that there are not.
    elsewhere = {"not-found", "method-not-allowed"}
    assert described.keys() - {"unready", "defect"} == promised.keys() - elsewhere
    assert all(described[name] == status for name, status in promised.items() if name not in elsewhere)


def test_only_submitting_needs_a_key_and_says_so() -> None:
    for operation in OPERATIONS:
        shown = OPERATION[operation.method, nameless(operation.path)]
        assert ("security" in shown) == ("401" in shown["responses"]) == (shown["tags"] == ["submit"])


def test_bounds_in_words_are_the_bounds_described() -> None:
    top = {one["name"]: one["schema"] for one in OPERATION["GET", "/v1/boards/{}/top"]["parameters"]}
    around = {one["name"]: one["schema"] for one in OPERATION["GET", "/v1/boards/{}/around"]["parameters"]}
    promised = dict(re.findall(r"^\| (?:`(\w+)`[^|]*) \| ([^|]*) \|$", PROMISES, flags=re.MULTILINE))
    n, k = top["n"], around["k"]
    assert promised["n"] == f"{n['minimum']} to {n['maximum']:,}; {n['default']} by default"
    assert promised["k"] == f"{k['minimum']} to {k['maximum']}; {k['default']} by default"
    assert (top["from_rank"]["minimum"], top["from_rank"]["maximum"]) == (1, 2**53 - 1)
    assert promised["from_rank"] == "1 to 2^53 − 1"
    assert (top["wait"]["exclusiveMinimum"], top["wait"]["maximum"]) == (0, 5)
    assert promised["wait"] == "above 0, at most 5 s; decimals allowed"
