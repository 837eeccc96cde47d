"""The files of the page, as they are served."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from typing import Any

import pytest

from api.calls import Call
from api.page import Page
from api.replies import Reply
from schemas.problems import Problem

PAGE = Page()


async def _nothing() -> Any:
    raise AssertionError("a page has no body to read")


_PARSERS = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function"


def get(name: str | None = None, tag: bytes | None = None) -> Reply:
    headers = [] if tag is None else [(b"if-none-match", tag)]
    call = Call({} if name is None else {"name": name}, b"", headers, _nothing)
    return asyncio.run(PAGE.index(call) if name is None else PAGE.file(call))


def references(text: str) -> set[str]:
    return set(re.findall(r'(?:src|href)="page/([^"]+)"', text))


def test_the_document_may_load_and_run_nothing_but_its_own_files() -> None:
    reply = get()
    headers = dict(reply.headers)
    assert headers[b"content-type"] == b"text/html; charset=utf-8"
    policy = dict(one.strip().split(b" ", 1) for one in headers[b"content-security-policy"].split(b";"))
    assert policy == {
        b"default-src": b"'none'",
        b"script-src": b"'self'",
        b"style-src": b"'self'",
        b"img-src": b"'self' data:",
        b"connect-src": b"'self'",
        b"base-uri": b"'none'",
        b"form-action": b"'none'",
        b"frame-ancestors": b"'none'",
    }
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert headers[b"referrer-policy"] == b"no-referrer"


def test_every_file_is_referred_to_and_every_reference_is_a_file() -> None:
    referred = references(get().body.decode())
    assert referred == {one.name for one in files("api").joinpath("page").iterdir()} - {"index.html"}
    for name in referred:
        reply = get(name)
        assert reply.status == 200
        assert dict(reply.headers)[b"content-type"].startswith((b"text/", b"image/svg+xml"))
        if name.endswith(".js"):
            imported = set(re.findall(r'from "\./([^"]+)"', reply.body.decode()))
            assert imported <= referred


def test_a_known_file_is_not_sent_again() -> None:
    tag = dict(get("app.js").headers)[b"etag"]
    for known in (tag, b"W/" + tag, b'"other", ' + tag, b"*"):
        reply = get("app.js", known)
        assert (reply.status, reply.body) == (304, b"")
        assert dict(reply.headers)[b"etag"] == tag
    assert get("app.js", b'"other"').status == 200


@pytest.mark.parametrize(
    "name", ["", "..", "../page.py", "..%2fpage.py", "%2e%2e%2fapp.py", "app", "%ff", "INDEX.html"]
)
def test_nothing_else_is_served(name: str) -> None:
    with pytest.raises(Problem) as met:
        get(name)
    assert met.value.status == 404


def test_no_script_ever_parses_text_as_html() -> None:
    for file in files("api").joinpath("page").iterdir():
        text = file.read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function", text
        )
        assert not re.search(r"\sstyle=|\son\w+=\"", text)
