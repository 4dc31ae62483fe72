"""KServe's Open Inference Protocol, version 2, over REST."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from ... import __version__
from ..errors import InvalidError, NotFoundError
from ..schemas import Plain
from ..settings import Limits
from .batcher import Batcher
from .inference import answer, check_size
from .learning import ServedModel

TEXT, LABEL, SCORE, PROBABILITIES = "text", "label", "score", "probabilities"


class Tensor(BaseModel):
    """An input: texts as BYTES."""

    name: Annotated[str, Field(max_length=200)]
    shape: Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1, max_length=4)]
    datatype: Annotated[str, Field(max_length=20)]
    data: list[Plain]


class Output(BaseModel):
    """An output that is wanted."""

    name: Annotated[str, Field(max_length=200)]


class InferRequest(BaseModel):
    """Texts to classify."""

    id: Annotated[str, Field(max_length=200)] | None = None
    inputs: Annotated[list[Tensor], Field(min_length=1, max_length=1)]
    outputs: Annotated[list[Output], Field(max_length=10)] | None = None


def kserve_routes(model: ServedModel, batcher: Batcher, limits: Limits) -> APIRouter:
    """The routes under /v2."""
    router = APIRouter(prefix="/v2", tags=["Open Inference Protocol"])

    def check(name: str) -> None:
        if name != model.name:
            raise NotFoundError(f"There is no such model here: the model is {model.name}.")

    @router.get("")
    async def server() -> dict[str, Any]:
        """Facts of the server."""
        return {"name": "handful", "version": __version__, "extensions": []}

    @router.get("/health/live")
    async def live() -> dict[str, bool]:
        """Whether the process lives."""
        return {"live": True}

    @router.get("/health/ready")
    async def ready(response: Response) -> dict[str, bool]:
        """Whether texts can be classified."""
        return _ready(model, response)

    @router.get("/models/{name}")
    @router.get("/models/{name}/versions/{version}", include_in_schema=False)
    async def facts(name: str) -> dict[str, Any]:
        """Facts of the model."""
        check(name)
        classes = len(model.facts()["classes"])
        outputs = [(LABEL, "BYTES", [-1]), (SCORE, "FP32", [-1]), (PROBABILITIES, "FP32", [-1, classes])]
        return {
            "name": model.name,
            "versions": [model.facts()["version"]],
            "platform": "handful",
            "inputs": [{"name": TEXT, "datatype": "BYTES", "shape": [-1]}],
            "outputs": [{"name": name, "datatype": kind, "shape": shape} for name, kind, shape in outputs],
        }

    @router.get("/models/{name}/ready")
    async def model_ready(name: str, response: Response) -> dict[str, bool]:
        """Whether the model can classify texts."""
        check(name)
        return _ready(model, response)

    @router.post("/models/{name}/infer")
    @router.post("/models/{name}/versions/{version}/infer", include_in_schema=False)
    async def infer(name: str, body: InferRequest) -> dict[str, Any]:
        """Classify texts: the label, its score, and the probabilities of all classes."""
        check(name)
        texts = check_size(_texts(body.inputs[0]), limits)
        model.require()
        found = await answer(batcher, texts)
        return _response(model, body, found)

    return router


def _ready(model: ServedModel, response: Response) -> dict[str, bool]:
    response.status_code = 200 if model.fitted is not None else 409
    return {"ready": model.fitted is not None}


def _texts(tensor: Tensor) -> list[str]:
    if tensor.datatype != "BYTES":
        raise InvalidError(f"The input has the datatype {tensor.datatype[:20]!r}: texts are BYTES.")
    size = 1
    for one in tensor.shape:
        size *= one
    if size != len(tensor.data) or not tensor.data:
        raise InvalidError(
            f"The input has {len(tensor.data)} texts, which do not fit its shape: give at least one, and the shape."
        )
    return list(tensor.data)


def _response(model: ServedModel, body: InferRequest, found: Any) -> dict[str, Any]:
    shares = found.fitted.probabilities(found.scores)
    best = shares.argmax(axis=1)
    count, classes = shares.shape
    outputs = {
        LABEL: ("BYTES", [count], [str(found.fitted.classes[place]) for place in best]),
        SCORE: ("FP32", [count], [float(row[place]) for row, place in zip(shares, best, strict=True)]),
        PROBABILITIES: ("FP32", [count, classes], shares.ravel().tolist()),
    }
    wanted = [one.name for one in body.outputs] if body.outputs else list(outputs)
    unknown = [name for name in wanted if name not in outputs]
    if unknown:
        raise InvalidError(f"There is no output {unknown[0]!r}: choose one of {', '.join(outputs)}.")
    made = [
        {"name": name, "datatype": outputs[name][0], "shape": outputs[name][1], "data": outputs[name][2]} for name in wanted
    ]
    facts = {"model_name": model.name, "model_version": model.facts()["version"], "outputs": made}
    return facts | ({"id": body.id} if body.id is not None else {})
