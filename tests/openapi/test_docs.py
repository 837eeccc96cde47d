"""The pages that show the description: complete from this origin alone."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from api.calls import Call
from api.docs import Docs
from api.openapi import OpenApi, describe
from api.replies import Reply
from schemas.problems import Problem

DOCS = Docs()


async def _nothing() -> Any:
    raise AssertionError("nobody reads a body here")


def call(name: str | None = None, tag: bytes | None = None) -> Call:
    headers = [] if tag is None else [(b"if-none-match", tag)]
    return Call({} if name is None else {"name": name}, b"", headers, _nothing)


def get(name: str | None = None, tag: bytes | None = None) -> Reply:
    return asyncio.run(DOCS.index(call()) if name is None else DOCS.file(call(name, tag)))


def test_the_page_is_complete_without_a_network() -> None:
    page = get()
    headers = dict(page.headers)
    assert headers[b"content-type"] == b"text/html; charset=utf-8"
    text = page.body.decode()
    assert "://" not in text
    assert "://" not in get("start.js").body.decode()
    references = set(re.findall(r'(?:src|href)="([^"]+)"', text)) - {"openapi.json"}
    assert len(references) == 4
    for reference in references:
        folder, _, name = reference.partition("/")
        assert folder == "docs"
        assert get(name).status == 200


def test_nothing_of_another_origin_may_run_or_be_asked() -> None:
    policy = dict(get().headers)[b"content-security-policy"].decode()
    rules = dict(one.strip().split(" ", 1) for one in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in policy
    assert "http" not in policy


def test_a_known_file_is_not_sent_again() -> None:
    tag = dict(get("swagger-ui.css").headers)[b"etag"]
    again = get("swagger-ui.css", tag)
    assert (again.status, again.body) == (304, b"")
    assert get("swagger-ui.css", b'"other"').status == 200


@pytest.mark.parametrize("name", ["", "..", "index.j2", "swagger-ui.js", "..%2fdocs.py", "%ff"])
def test_nothing_else_is_served(name: str) -> None:
    with pytest.raises(Problem) as met:
        get(name)
    assert met.value.status == 404


def test_the_description_is_made_once_and_not_sent_again() -> None:
    described = OpenApi(frozenset({"read"}))
    first = asyncio.run(described.show(call()))
    headers = dict(first.headers)
    assert headers[b"content-type"] == b"application/json"
    assert json.loads(first.body) == json.loads(json.dumps(describe(frozenset({"read"}))))
    assert asyncio.run(described.show(call())).body is first.body
    assert asyncio.run(described.show(call(tag=headers[b"etag"]))).status == 304


def test_a_process_describes_what_it_serves() -> None:
    reads = set(describe(frozenset({"read"}))["paths"])
    submits = set(describe(frozenset({"submit"}))["paths"])
    assert "/v1/boards/{board}/top" in reads - submits
    assert "/v1/scores" in submits - reads
    assert reads & submits == {"/livez", "/readyz", "/metrics", "/openapi.json", "/docs"}
