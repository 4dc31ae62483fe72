"""Label Studio's ML backend: predictions for its tasks, and learning from its annotations inside the webhook."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter
from pydantic import BaseModel, Field

from ..context import Someone
from ..errors import InvalidError
from ..files.uploads import first_choice, sound
from ..settings import Limits
from .batcher import Batcher
from .inference import answer, check_size
from .learning import Annotation, ServedModel

Id = int | Annotated[str, Field(max_length=200)]


@dataclass(frozen=True)
class LabelConfig:
    """The part of a labelling interface that matters: one set of choices about one text."""

    from_name: str = "label"
    to_name: str = "text"
    key: str = "text"  # of the text in a task's data
    choices: tuple[str, ...] = ()


class Task(BaseModel):
    """A task of Label Studio."""

    id: Id | None = None
    data: dict[str, Any]


class TasksRequest(BaseModel):
    """Tasks to predict."""

    tasks: list[Task]
    label_config: Annotated[str, Field(max_length=1_000_000)] | None = None


class SetupRequest(BaseModel):
    """A project of Label Studio that connects."""

    project: Id | None = None
    schema_: Annotated[str, Field(max_length=1_000_000, validation_alias="schema")] = ""


class LabelStudioAnnotation(BaseModel):
    """An annotation of Label Studio."""

    id: Id
    result: list[Any] = Field(default_factory=list)
    was_cancelled: bool | None = None


class WebhookRequest(BaseModel):
    """Something that happened in Label Studio."""

    action: Annotated[str, Field(max_length=100)]
    annotation: LabelStudioAnnotation | None = None
    annotations: Annotated[list[LabelStudioAnnotation], Field(max_length=10_000)] | None = None
    task: Task | None = None
    project: dict[str, Any] | None = None


@lru_cache(maxsize=64)
def parse_config(config: str) -> LabelConfig:
    """A labelling interface from its XML: the first Choices, and the Text that it is about."""
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(config)
    except Exception as error:  # a parser has many
        raise InvalidError("The labelling interface is not XML that can be read: check it in Label Studio.") from error
    choices = next(iter(root.iter("Choices")), None)
    if choices is None:
        raise InvalidError("The labelling interface has no Choices: use the template for text classification.")
    to_name = choices.get("toName", "text")
    text = next((one for one in root.iter() if one.get("name") == to_name), None)
    key = text.get("value", "$text").lstrip("$") if text is not None else "text"
    values = tuple(one.get("value", "") for one in choices.iter("Choice") if one.get("value"))
    return LabelConfig(choices.get("name", "label"), to_name, key, values)


class LabelStudio:
    """The backend of one model; the interface that was seen last serves requests that bring none."""

    def __init__(self, model: ServedModel, batcher: Batcher, limits: Limits) -> None:
        self._model, self._batcher, self._limits = model, batcher, limits
        self._config = LabelConfig()

    def configure(self, config: str | None) -> LabelConfig:
        """Take a labelling interface, and let its choices be predicted by their names."""
        if config:
            found = parse_config(config)
            if found != self._config:
                self._config = found
                self._model.name_classes([sound(choice) for choice in found.choices])
        return self._config

    def text_of(self, data: dict[str, Any], config: LabelConfig) -> str:
        """The text of a task: the one that the interface names, or the only one that there is."""
        only = [value for value in data.values() if isinstance(value, str)]
        text = data.get(config.key, data.get("text", only[0] if len(only) == 1 else None))
        if not isinstance(text, str):
            raise InvalidError(f"A task has no text {config.key!r} in its data: check the labelling interface.")
        return sound(text)

    async def predict(self, body: TasksRequest) -> dict[str, Any]:
        """Predictions of tasks; none while the model knows fewer than two classes."""
        config = await run_sync(self.configure, body.label_config)
        texts = check_size([self.text_of(task.data, config) for task in body.tasks], self._limits)
        version = f"{self._model.name}-{self._model.version}"
        if self._model.fitted is None or not texts:
            return {
                "results": [{"result": [], "score": 0.0, "model_version": version} for _ in texts],
                "model_version": version,
            }
        found = await answer(self._batcher, texts)
        shares = found.fitted.probabilities(found.scores)
        labels = [str(name) for name in found.fitted.classes.tolist()]
        results = [self._prediction(config, labels[int(row.argmax())], float(row.max()), version) for row in shares]
        return {"results": results, "model_version": version}

    def _prediction(self, config: LabelConfig, label: str, score: float, version: str) -> dict[str, Any]:
        value = {"from_name": config.from_name, "to_name": config.to_name, "type": "choices", "value": {"choices": [label]}}
        return {"result": [{**value, "score": score}], "score": score, "model_version": version}

    def learn(self, body: WebhookRequest) -> str:
        """Learn from an annotation, or take it back; gives what was done."""
        if body.action in ("ANNOTATION_CREATED", "ANNOTATION_UPDATED") and body.annotation and body.task:
            given, seen = body.annotation, (body.project or {}).get("label_config")
            config = self.configure(seen if isinstance(seen, str) else None)
            label = first_choice([given.model_dump()])
            text = self.text_of(body.task.data, config)
            check_size([text], self._limits)
            if label is None or len(label) > 200:
                self._model.forget(str(given.id))
                return "forgotten"
            self._model.teach(Annotation(str(given.id), text, sound(label)))
            return "learned"
        if body.action in ("ANNOTATION_DELETED", "ANNOTATIONS_DELETED"):
            for one in [*(body.annotations or []), *([body.annotation] if body.annotation else [])]:
                self._model.forget(str(one.id))
            return "forgotten"
        return "ignored"


def label_studio_routes(backend: LabelStudio, model: ServedModel) -> APIRouter:
    """The routes of an ML backend, except for /predict and /health, which other protocols have too."""
    router = APIRouter(tags=["Label Studio"])

    @router.post("/setup")
    def setup(body: SetupRequest, person: Someone) -> dict[str, str]:
        """Connect a project of Label Studio."""
        person.require("label")
        backend.configure(body.schema_ or None)
        return {"model_version": f"{model.name}-{model.version}"}

    @router.post("/webhook", status_code=201)
    def webhook(body: WebhookRequest, person: Someone) -> dict[str, str]:
        """Learn from an annotation; it is kept, and the next prediction knows it, when this is answered."""
        person.require("label")
        return {"status": "ok", "result": backend.learn(body)}

    return router
