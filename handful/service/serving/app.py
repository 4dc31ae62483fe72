"""The application of a served classifier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import Body, FastAPI

from ... import __version__
from ..context import Someone
from ..handlers import add_handlers
from ..health import health_routes
from ..metrics import Metrics
from ..middleware import Gate
from ..pages import add_docs
from ..schemas import ErrorBody
from ..settings import ServiceSettings
from ..store.database import Database
from .batcher import Batcher
from .inference import InferenceRequest, infer, model_info
from .kserve import kserve_routes
from .label_studio import LabelStudio, TasksRequest, label_studio_routes
from .learning import ServedModel

Given = Annotated[InferenceRequest | TasksRequest, Body()]


def serving_app(model: ServedModel, settings: ServiceSettings, database: Database | None) -> FastAPI:
    """A classifier in the protocols of Hugging Face, Text Embeddings Inference, Label Studio and KServe."""
    metrics, batcher = Metrics(), Batcher(model.require)
    backend = LabelStudio(model, batcher, settings.limits)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = settings.limits.concurrent_requests
        yield
        await run_sync(batcher.close)
        model.close()

    app = FastAPI(
        title=f"Handful: {model.name}",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        root_path=settings.root_path,
        responses={"4XX": {"model": ErrorBody, "description": "A typed error."}},
    )
    _add_inference(app, model, settings, batcher, backend, metrics)
    app.include_router(label_studio_routes(backend, model))
    app.include_router(kserve_routes(model, batcher, settings.limits))
    about = {"status": "UP", "model_class": "Handful"}
    app.include_router(health_routes(metrics, lambda: model.require(), about))
    add_docs(app)
    add_handlers(app)
    app.add_middleware(Gate, settings=settings, database=database, metrics=metrics)
    return app


def _add_inference(
    app: FastAPI, model: ServedModel, settings: ServiceSettings, batcher: Batcher, backend: LabelStudio, metrics: Metrics
) -> None:
    @app.post("/predict", tags=["inference"])
    async def predict(body: Given, person: Someone) -> Any:
        """Classify texts (`inputs`, Hugging Face and Text Embeddings Inference) or tasks (`tasks`, Label Studio)."""
        if isinstance(body, TasksRequest):
            metrics.texts.inc(len(body.tasks))
            return await backend.predict(body)
        metrics.texts.inc(1 if isinstance(body.inputs, str) else len(body.inputs))
        return await infer(body, batcher, settings.limits)

    @app.post("/", tags=["inference"])
    async def root(body: InferenceRequest, person: Someone) -> Any:
        """Classify texts, as Hugging Face's inference endpoints do."""
        return await predict(body, person)

    @app.get("/info", tags=["inference"])
    async def info(person: Someone) -> dict[str, Any]:
        """Facts of the model."""
        return model_info(model, settings.limits, __version__)
