"""Hugging Face's payload for text classification, and the /predict and /info of Text Embeddings Inference."""

from __future__ import annotations

from asyncio import wrap_future
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from ..errors import InvalidError, TooLargeError
from ..schemas import Plain
from ..settings import Limits
from .batcher import Answers, Batcher
from .learning import ServedModel

Inputs = Plain | Annotated[list[Plain], Field(min_length=1)] | Annotated[list[list[Plain]], Field(min_length=1)]


class Parameters(BaseModel):
    """Options of Hugging Face's pipeline."""

    top_k: Annotated[int, Field(ge=1)] | None = None
    function_to_apply: Literal["softmax", "sigmoid", "none"] | None = None


class InferenceRequest(BaseModel):
    """One text, or several: `{"inputs": "text"}`, `{"inputs": ["one", "two"]}` or `{"inputs": [["one"], ["two"]]}`."""

    inputs: Inputs
    parameters: Parameters = Field(default_factory=Parameters)
    raw_scores: bool = False
    truncate: bool = True


class LabelScore(BaseModel):
    """A class and its probability."""

    label: str
    score: float


def check_size(texts: list[str], limits: Limits) -> list[str]:
    """Refuse more or longer texts than a request may have."""
    if len(texts) > limits.texts_per_request:
        raise TooLargeError(f"The request has {len(texts):,} texts, and the limit is {limits.texts_per_request:,}: send fewer.")
    longest = max(map(len, texts), default=0)
    if longest > limits.characters_per_text:
        raise InvalidError(f"A text has {longest:,} characters, and the limit is {limits.characters_per_text:,}: shorten it.")
    return texts


def texts_of(inputs: Inputs) -> list[str]:
    """The texts of a request; a list of lists has one text each, since pairs of texts have no meaning here."""
    if isinstance(inputs, str):
        return [inputs]
    found = []
    for one in inputs:
        if isinstance(one, list) and len(one) != 1:
            raise InvalidError("An input is a list of several texts, and a pair of texts cannot be classified: send one each.")
        found.append(one[0] if isinstance(one, list) else one)
    return found


async def answer(batcher: Batcher, texts: list[str]) -> Answers:
    """Answers to texts, computed with those of others."""
    return await wrap_future(batcher.submit(texts))


async def infer(body: InferenceRequest, batcher: Batcher, limits: Limits) -> list[Any]:
    """A list of labels with scores for one text, or such a list for each of several."""
    found = await answer(batcher, check_size(texts_of(body.inputs), limits))
    raw = body.raw_scores or body.parameters.function_to_apply == "none"
    scores = found.scores.astype(np.float64) if raw else found.fitted.probabilities(found.scores)
    labels = [str(name) for name in found.fitted.classes.tolist()]
    lists = [_ranked(labels, row, body.parameters.top_k) for row in scores]
    return lists[0] if isinstance(body.inputs, str) else lists


def _ranked(labels: list[str], scores: Any, top_k: int | None) -> list[dict[str, Any]]:
    if top_k == 1:
        best = int(scores.argmax())
        return [{"label": labels[best], "score": float(scores[best])}]
    order = np.argsort(-scores, kind="stable")[:top_k].tolist()
    return [{"label": labels[place], "score": float(scores[place])} for place in order]


def model_info(model: ServedModel, limits: Limits, version: str) -> dict[str, Any]:
    """The facts of a model as Text Embeddings Inference gives them."""
    facts = model.facts()
    ids = {str(number): name for number, name in enumerate(facts["classes"])}
    return {
        "model_id": facts["name"],
        "model_sha": facts["version"],
        "model_type": {"classifier": {"id2label": ids, "label2id": {name: int(number) for number, name in ids.items()}}},
        "learns": facts["learns"],
        "max_client_batch_size": limits.texts_per_request,
        "max_input_characters": limits.characters_per_text,
        "version": version,
    }
