"""Metrics for Prometheus, of one server."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Metrics:
    """Counts and times; names of routes are the only labels that vary, so that their number stays small."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        self._requests = Counter("handful_requests", "Requests answered.", ("method", "route", "status"), registry=registry)
        self._seconds = Histogram(
            "handful_request_seconds", "Seconds per request.", ("route",), buckets=SECONDS, registry=registry
        )
        self.texts = Counter("handful_texts", "Texts classified.", registry=registry)
        self.active = 0  # requests that are being answered
        self.labels = Counter("handful_labels", "Labels stored.", registry=registry)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def watch(self, name: str, about: str, value: Callable[[], float]) -> None:
        """A number that is asked for when the metrics are read."""
        Gauge(name, about, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """All of them in Prometheus' format."""
        return generate_latest(self.registry)
