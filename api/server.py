"""The API as a process: granian in this very process, so that nothing outlives it, or with workers."""

from __future__ import annotations

import asyncio
import logging
import sys

from granian import Granian
from granian.constants import Interfaces
from granian.server.embed import Server

from api.app import create_app
from api.endpoints import RawPaths
from api.services import connect
from schemas.settings import Settings, load_settings

# Waiting submissions and live streams hold their connections for long.
_CONNECTIONS = 10_000
_BACKLOG = 2_048


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are finished first."""
    logging.basicConfig(
        level=settings.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    if settings.workers == 1:
        asyncio.run(_serve_here(settings))
        return
    Granian(
        "api.server:make_app",
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        workers=settings.workers,
        factory=True,
        websockets=False,
        backlog=_BACKLOG,
        backpressure=_CONNECTIONS,
        respawn_failed_workers=True,
    ).serve()


def make_app() -> RawPaths:
    """The app of a worker process, with the settings of the environment."""
    return create_app(connect(load_settings()))


async def _serve_here(settings: Settings) -> None:
    server = Server(
        create_app(connect(settings)),
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        websockets=False,
        backlog=_BACKLOG,
        backpressure=_CONNECTIONS,
    )
    await server.serve()
