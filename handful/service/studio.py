"""The studio's application: projects, their API and the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI
from sqlalchemy import text

from .. import __version__
from .context import Service
from .handlers import add_handlers
from .health import health_routes
from .jobs import JobRunner
from .learning.brain import Brain
from .metrics import Metrics
from .middleware import API, Gate
from .pages import add_docs, add_page
from .routes import accounts, cleaning, files, learning, projects, texts
from .schemas import ErrorBody
from .settings import ServiceSettings
from .store.database import Database


def open_service(settings: ServiceSettings) -> Service:
    """The store of a server, brought up to date, with what learns from it and works on it."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    database = Database(settings.url)
    database.prepare()
    brain = Brain(database, settings.folder, settings.limits)
    metrics = Metrics()
    jobs = JobRunner(database, settings.folder, settings.limits, database.is_sqlite, busy=lambda: metrics.active > 0)
    metrics.watch("handful_jobs_active", "Jobs that wait or run in this process.", lambda: jobs.active)
    metrics.watch("handful_fits", "Models fitted by this process.", lambda: brain.fits)
    metrics.watch("handful_fit_seconds", "Seconds spent on fitting models.", lambda: brain.fit_seconds)
    return Service(settings, database, brain, jobs, metrics)


def studio_app(settings: ServiceSettings) -> FastAPI:
    """The application; the store is opened at once, so that its errors are raised here."""
    service = open_service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = settings.limits.concurrent_requests
        await run_sync(service.jobs.start)
        service.brain.warm_up()
        yield
        await run_sync(close_service, service)

    app = FastAPI(
        title="Handful Studio",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        root_path=settings.root_path,
        responses={"4XX": {"model": ErrorBody, "description": "A typed error."}},
    )
    app.state.service = service
    for part in (accounts, files, projects, texts, learning, cleaning):
        app.include_router(part.router, prefix=API)
    app.include_router(health_routes(service.metrics, lambda: check_ready(service)))
    add_page(app)
    add_docs(app)
    add_handlers(app)
    app.add_middleware(Gate, settings=settings, database=service.database, metrics=service.metrics)
    return app


def check_ready(service: Service) -> None:
    """Raise unless the store answers."""
    with service.database.reading() as connection:
        connection.execute(text("SELECT 1"))


def close_service(service: Service) -> None:
    """Finish what was accepted, and close the store."""
    service.jobs.close()
    service.brain.close()
    service.database.close()
