"""A live board: what a client has to know between the streams that it reads one after the other. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
from pydantic import ValidationError

from client.calls import Call, encode_part
from client.errors import UnexpectedReply
from client.events import EventParser
from client.retries import Budget
from client.session import Session
from schemas.replies import TopPage

# The service says something every 15 s.
_SILENCE_S = 40.0
# Those whose service was restarted don't all come back at once.
_SPREAD_S = 2.0


class Feed:
    """The streams of one board. Whatever ends one, the next is begun, until the deadline passes without a word."""

    def __init__(self, session: Session, board: str, n: int) -> None:
        self._session = session
        self._call = Call("GET", f"/v1/boards/{encode_part(board)}/live", _unread, (("n", str(n)),))
        self._budget = Budget(session.retries)
        self._parser = EventParser()

    def options(self) -> dict[str, Any]:
        """The request of the next stream."""
        self._parser = EventParser()
        return self._session.options(self._call, self._budget.limit_s(_SILENCE_S))

    def take(self, chunk: bytes) -> Iterator[TopPage]:
        """The pages that this chunk of the stream completes."""
        self._budget.renew()
        for event in self._parser.feed(chunk):
            if event.name == "top":
                try:
                    yield TopPage.model_validate_json(event.data, extra="ignore")
                except ValidationError as error:
                    raise UnexpectedReply(f"an event is no page: {error.errors()[0]['msg']}") from None

    def pause_s(self, outcome: httpx.Response | httpx.RequestError) -> float:
        """How long to pause after a stream has ended or could not be had. Raises the error where that is the end."""
        if isinstance(outcome, httpx.Response) and outcome.is_success:
            outcome = httpx.RemoteProtocolError("the stream ended")
        pause_s = self._session.pause_s(self._session.error(outcome), outcome, self._budget)
        return max(pause_s, self._parser.retry_s or 0.0) + _SPREAD_S * self._session.retries.chance()


def _unread(response: httpx.Response) -> TopPage:
    raise NotImplementedError(response)
