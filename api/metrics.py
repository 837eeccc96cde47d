"""What the API counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counts of one process, in a registry of its own."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "standings_api_requests_total", "Requests answered.", ("route", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "standings_api_request_seconds",
            "Time from a request to its reply.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._events = Counter(
            "standings_api_events_total",
            "Submitted events by what became of them.",
            ("outcome",),
            registry=self._registry,
        )
        # An outcome that never came is a 0, not a gap.
        for outcome in ("accepted", "refused", "uncertain", "overloaded"):
            self._events.labels(outcome)
        self._subscribers = Gauge("standings_api_live_subscribers", "Open live streams.", registry=self._registry)
        self._in_flight = Gauge(
            "standings_api_events_in_flight", "Events that the log has not answered yet.", registry=self._registry
        )

    def watch_subscribers(self, count: Callable[[], float]) -> None:
        """Show how many live streams are open, asked at each scrape."""
        self._subscribers.set_function(count)

    def watch_in_flight(self, count: Callable[[], float]) -> None:
        """Show how many events are in flight, asked at each scrape."""
        self._in_flight.set_function(count)

    def count_request(self, route: str, method: str, status: int, took_s: float) -> None:
        """Count an answered request."""
        self._requests.labels(route, method, status).inc()
        self._seconds.labels(route).observe(took_s)

    def count_event(self, outcome: str) -> None:
        """Count a submitted event: accepted, refused, uncertain or overloaded."""
        self._events.labels(outcome).inc()

    def render(self) -> bytes:
        """All of it in Prometheus' text format."""
        return generate_latest(self._registry)
