"""The API as a process: granian in this very process, so that nothing outlives it, or with workers."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys

import structlog
from granian import Granian
from granian.constants import Interfaces
from granian.log import LogLevels
from granian.server.embed import Server

from api.app import create_app
from api.endpoints import RawPaths
from api.services import connect
from schemas.settings import Settings, load_settings

log = structlog.get_logger("api")
# Waiting submissions and live streams hold their connections for long.
_CONNECTIONS = 10_000
_BACKLOG = 2_048
_GRACE_S = 15


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are finished first, for 15 s at most.

    Exits at once, with one line that says so, where somebody else listens on the port.
    """
    _refuse_taken_port(settings.host, settings.port)
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
        log_level=LogLevels.error,
        respawn_failed_workers=True,
    ).serve()


def make_app() -> RawPaths:
    """The app of a worker process, with the settings of the environment."""
    return create_app(connect(load_settings()))


async def _serve_here(settings: Settings) -> None:
    services = connect(settings)
    server = Server(
        create_app(services),
        address=settings.host,
        port=settings.port,
        interface=Interfaces.ASGI,
        websockets=False,
        backlog=_BACKLOG,
        backpressure=_CONNECTIONS,
        log_level=LogLevels.error,
    )
    loop = asyncio.get_running_loop()
    serving = loop.create_task(server.serve())

    def stop() -> None:
        services.end_streams()
        server.stop()  # type: ignore[no-untyped-call]  # granian annotates most, not this
        loop.call_later(_GRACE_S, serving.cancel)

    for which in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(which, stop)
    log.info("listening", host=settings.host, port=settings.port)
    try:
        await serving
    except asyncio.CancelledError:
        log.warning("requests were still under way at the end", after_s=_GRACE_S)


def _refuse_taken_port(host: str, port: int) -> None:
    """Granian shares a port that is taken (SO_REUSEPORT): half of the requests would go to somebody else."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        sys.exit(f"can't listen on {host}:{port} ({error.strerror}): set STANDINGS_HOST and STANDINGS_PORT")
