"""Health, readiness and metrics."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Response

from .metrics import Metrics


def health_routes(metrics: Metrics, ready: Callable[[], object], about: dict[str, str] | None = None) -> APIRouter:
    """Whether the process lives, whether it can answer (`ready` raises if not), and what it has done."""
    router = APIRouter(tags=["health"])

    @router.get("/health")
    async def health() -> dict[str, str]:
        """Whether the process lives."""
        return about or {"status": "ok"}

    @router.get("/ready")
    def is_ready() -> dict[str, str]:
        """Whether requests can be answered: the store or the model is there."""
        ready()
        return {"status": "ready"}

    @router.get("/metrics", response_class=Response)
    def read_metrics() -> Response:
        """Metrics for Prometheus."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router
