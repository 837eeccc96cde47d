"""Metrics of a process without an HTTP server of its own, served for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server

from schemas.settings import Settings


@contextmanager
def serving_metrics(settings: Settings, registry: CollectorRegistry) -> Iterator[None]:
    """Serve the registry at http://HOST:METRICS_PORT/metrics meanwhile; nothing where the port is 0.

    Raises OSError where the port is taken.
    """
    if settings.metrics_port == 0:
        yield
        return
    server, thread = start_http_server(settings.metrics_port, settings.host, registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
