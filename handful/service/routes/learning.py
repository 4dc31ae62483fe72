"""Answers of the model: predictions, explanations, what to label next, how good it is, and a map."""

from __future__ import annotations

import random
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query

from ...classifier.explanation import explain_text
from ...utils.functional import Floats, Ints
from ..context import Context, Service, Someone
from ..errors import ConflictError, InvalidError
from ..learning.computed import Computed, Kept, Value, key_of
from ..learning.models import ProjectModel
from ..learning.queue import Strategy
from ..learning.validation import accuracy_facts
from ..schemas import ExplainRequest, Number, PredictRequest, ProjectId, TestSetRequest
from ..store.projects import ProjectRow, bump
from ..store.texts import TextFilter, find_numbers, missing, set_test, text_classes, texts_by_number
from .texts import check_texts, text_facts

router = APIRouter(tags=["learning"])
Wait = Annotated[bool, Query(description="Wait until it is computed for the present state.")]
MOST_POINTS = 100_000


def ranked(model: ProjectModel, probabilities: Floats, top_k: int | None) -> list[dict[str, Any]]:
    """The classes of one text, the most probable one first."""
    order = np.argsort(-probabilities, kind="stable")[:top_k]
    numbers = model.numbers[order].tolist()
    return [
        {"class": number, "label": model.names[number], "probability": float(probabilities[place])}
        for number, place in zip(numbers, order.tolist(), strict=True)
    ]


@router.post("/projects/{project}/predict")
def predict(service: Context, person: Someone, project: ProjectId, body: PredictRequest) -> dict[str, Any]:
    """Classify texts; below `reject_below` the answer is null: none of these."""
    check_texts(service, body.texts)
    row = service.project(person, project)
    model = service.brain.model(row)
    fitted = model.require()
    found = fitted.probabilities(fitted.scores(body.texts))
    service.metrics.texts.inc(len(body.texts))
    answers = []
    for probabilities in found:
        classes = ranked(model, probabilities, body.top_k)
        sure = body.reject_below is None or classes[0]["probability"] >= body.reject_below
        answers.append({"label": classes[0]["label"] if sure else None, "classes": classes})
    return {"version": row.version, "answers": answers}


@router.post("/projects/{project}/explain")
def explain(service: Context, person: Someone, project: ProjectId, body: ExplainRequest) -> dict[str, Any]:
    """Why a text gets its answer: the contribution of each word to the score of each class."""
    row = service.project(person, project)
    if (body.text is None) == (body.id is None):
        raise InvalidError("Give either a `text` or the `id` of a text of the project.")
    text = body.text if body.text is not None else _text(service, row, body.id or 0)
    check_texts(service, [text])
    return explanation(service.brain.model(row), text) | {"version": row.version}


def explanation(model: ProjectModel, text: str) -> dict[str, Any]:
    """An explanation whose classes have their numbers too."""
    facts = explain_text(model.require(), text).to_dict()
    for one, number in zip(facts["classes"], model.numbers.tolist(), strict=True):
        one["label"], one["class"] = one["class"], number
    return facts


def _text(service: Service, row: ProjectRow, number: int) -> str:
    with service.database.reading() as connection:
        found = texts_by_number(connection, row, [number])
    if not found:
        raise missing(number)
    return str(found[0].text)


@router.get("/projects/{project}/next")
def next_texts(
    service: Context,
    person: Someone,
    project: ProjectId,
    strategy: Strategy = "suggest",
    count: Annotated[int, Query(ge=1, le=50)] = 5,
    search: Annotated[str, Query(max_length=1_000, pattern="^[^\\x00]*$")] = "",
    exclude: Annotated[list[Number] | None, Query(max_length=1_000, description="Texts that you have already.")] = None,
    explain: Annotated[bool, Query(description="With the contribution of each word.")] = False,
) -> dict[str, Any]:
    """The texts to label next, chosen ahead of time, with the present model's predictions.

    `suggest` stands for what the model is unsure of, `uncertain` is most uncertain, `second` was labelled by somebody else,
    `disputed` has labels that differ, `test` is of the test set.
    """
    row = service.project(person, project, "label")
    numbers = service.brain.next_texts(row, person.annotator, strategy, search, count, set(exclude or ()))
    with service.database.reading() as connection:
        texts = [one.model_dump(by_alias=True) for one in text_facts(connection, row, numbers, None)]
    model = service.brain.model(row)
    if model.fitted is not None and texts:
        found = model.fitted.probabilities(model.fitted.scores([one["text"] for one in texts]))
        for one, probabilities in zip(texts, found, strict=True):
            one["classes"] = ranked(model, probabilities, None)
            one["explanation"] = explanation(model, one["text"]) if explain else None
    return {"version": row.version, "texts": texts}


# How good it is


def _when_ready(
    computed: Computed[Value], row: ProjectRow, wait: bool, key: tuple[int, int] | None = None
) -> Kept[Value] | None:
    key = key or key_of(row)
    return computed.current(row.id, key) if wait else computed.latest(row.id, key)


def _state(kept: Kept[Any] | None, row: ProjectRow) -> dict[str, Any]:
    return {"version": kept.key[0] if kept else None, "current": bool(kept and kept.key[0] >= row.version)}


@router.get("/projects/{project}/accuracy")
def accuracy(service: Context, person: Someone, project: ProjectId, wait: Wait = False) -> dict[str, Any]:
    """An estimate of accuracy with its 95 % interval, per class too, and what is confused with what.

    It comes from the test set if at least 10 of its texts are labelled, otherwise from examples left out. Texts that were
    chosen because they are hard make the latter an underestimate.
    """
    row = service.project(person, project)
    kept = _when_ready(service.brain.validations, row, wait)
    found = kept.value if kept else None
    names = service.brain.model(row).names if found is not None else {}
    return {**_state(kept, row), "estimate": accuracy_facts(found, names) if found is not None else None}


@router.get("/projects/{project}/curve")
def curve(service: Context, person: Someone, project: ProjectId, wait: Wait = False) -> dict[str, Any]:
    """The learning curve: accuracy with its interval after the first labels, and after more of them."""
    row = service.project(person, project)
    kept = _when_ready(service.brain.curves, row, wait)
    return {**_state(kept, row), "points": kept.value if kept else []}


@router.post("/projects/{project}/test-set", status_code=201)
def draw_test_set(service: Context, person: Someone, project: ProjectId, body: TestSetRequest) -> dict[str, Any]:
    """Draw a random test set from the texts that nobody has labelled; the model never learns from it."""
    with service.changing(person, project, "admin") as (connection, row):
        free = find_numbers(connection, row, TextFilter(states=("open",), test=False))
        if not free:
            raise ConflictError("There are no texts without a label to draw from: import more texts.")
        drawn = random.SystemRandom().sample(free, min(body.size, len(free)))
        set_test(connection, row, drawn)
        version = bump(connection, project)
    return {"drawn": len(drawn), "version": version}


@router.delete("/projects/{project}/test-set", status_code=204)
def drop_test_set(service: Context, person: Someone, project: ProjectId) -> None:
    """Give up the test set: the model learns from its labels from now on."""
    with service.changing(person, project, "admin") as (connection, row):
        set_test(connection, row, None)
        bump(connection, project)


@router.get("/projects/{project}/map")
def text_map(
    service: Context,
    person: Someone,
    project: ProjectId,
    wait: Wait = False,
    limit: Annotated[int, Query(ge=1, le=MOST_POINTS)] = 10_000,
) -> dict[str, Any]:
    """All texts in two dimensions (PCA), as columns; an even sample if there are more than `limit`.

    `class` is what people said, -1 where nobody did; `predicted` is what the model says.
    """
    row = service.project(person, project)
    service.brain.model(row).require()
    kept = _when_ready(service.brain.maps, row, wait, (0, row.visible))
    if kept is None:
        return {"ready": False, "id": [], "x": [], "y": [], "class": [], "predicted": [], "probability": []}
    numbers, points = kept.value
    chosen: Ints = np.unique(np.linspace(0, max(len(numbers) - 1, 0), min(limit, len(numbers))).astype(np.int64))
    numbers, points = numbers[chosen], points[chosen]
    shot = service.brain.snapshots.kept(project)
    rows, known = shot.value.places(numbers) if shot else (np.empty(0, int), np.empty(0, int))
    predicted, probability = np.full(len(numbers), -1), np.zeros(len(numbers))
    if shot:
        predicted[known], probability[known] = shot.value.classes[rows], shot.value.probabilities[rows]
    with service.database.reading() as connection:
        given = text_classes(connection, row)
    return {
        "ready": True,
        "id": numbers.tolist(),
        "x": points[:, 0].round(4).tolist(),
        "y": points[:, 1].round(4).tolist(),
        "class": [given.get(number, -1) for number in numbers.tolist()],
        "predicted": predicted.tolist(),
        "probability": probability.round(4).tolist(),
    }
