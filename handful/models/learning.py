"""Documents to a scorer: an encoder is fitted to the labelled ones, and a head to their vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..utils.functional import Floats, unit_length
from .examples import LabelledDocuments, trust_in_names, weighted_scorer
from .heads import CentredScorer, ReadyHead
from .text_encoders import FittedEncoder, TextEncoder


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted encoder and a scorer, and how much label words and unlabelled texts counted."""

    labelled: LabelledDocuments  # what it was learned from, without label words that do not count
    encoder: FittedEncoder
    scorer: CentredScorer
    name_weights: Floats  # (classes,): of the words of each label, in examples; 0 where there are none, or examples contradict
    pooled: int  # unlabelled texts that counted


def learn(encoder: TextEncoder, head: ReadyHead, labelled: LabelledDocuments, pool: Any = None) -> Learned:
    """Learn from labelled documents and, if given, from a pool of unlabelled ones."""
    fitted = encoder.fit(labelled.documents, labelled.targets, labelled.weights)
    vectors = fitted.vectors(labelled.documents)  # (documents, dim)
    if not labelled.exclusive:
        scorer = head.fit(vectors, labelled.targets, labelled.weights, exclusive=False)
        return Learned(labelled, fitted, scorer, labelled.names.astype(np.float32) @ labelled.targets, 0)
    vectors = unit_length(vectors)
    name_weights = trust_in_names(vectors, labelled)
    if not name_weights.any() and labelled.needless_names.any():
        return learn(encoder, head, labelled.select(~labelled.needless_names), pool)
    texts = unit_length(fitted.vectors(pool)) if pool is not None and len(pool) else None
    scorer, pooled = weighted_scorer(head, vectors, labelled, name_weights, texts)
    return Learned(labelled, fitted, scorer, name_weights, pooled)
