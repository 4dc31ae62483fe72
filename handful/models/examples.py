"""Vectors to a scorer: labelled examples, the words of the classes' labels, and unlabelled texts.

All three reach the head as weighted examples. A class's label words are one more example of it, if the examples confirm them;
the mean of the unlabelled texts that seem to belong to a class is another. So a scorer stays linear, whatever it learned from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..utils.functional import TINY, Floats, Ints, entropy, softmax, unit_length
from .heads import CentredScorer, ReadyHead

Bools = np.ndarray[Any, np.dtype[np.bool_]]
# Chosen on the validation tasks of docs/log.md
NAME_WEIGHT = 3.0  # the words of a label count like this many examples
NAME_SHARPNESS = 10.0  # factor that turns cosines with label words into logits
CHANCE, SURE = (0.2, 2.0), (0.5, 4.0)  # standard deviations per other class, and at most, above chance: label words do not
# count up to the first, and fully from the second
BETTER_NAME = 0.5  # power of how much likelier the words of another label make a class's examples
MOST_DOUBTS = 2.0  # examples whose evidence counts against the words of their class, at most: `suggest` chooses hard ones
POOL_ROUNDS = 4  # of assigning unlabelled texts to classes
POOL_TEXT_WEIGHT = 0.3  # an unlabelled text counts like this many examples,
FEW_TEXTS = 10.0  # of a class count half of that,
POOL_STRENGTH = 36.0  # and all texts of a class like at most this many, if there is no doubt where they belong; more if
FEW_CLASSES = 5  # there are more classes than this, since a wrong pool harms few classes most
LEAST_SHARE = 0.5  # of a text's largest probability, for an unlabelled text to count for a class
LEAST_TEXTS = 0.5  # unlabelled texts of a class, in sum of probabilities
CERTAIN = 0.1  # without examples, texts that label words answer this much more certainly than by chance count fully
DISTANT = 0.1  # of the examples' variance: with this squared distance between their means, unlabelled texts count half
NEAR_EXAMPLES = 25  # percentile of how near examples are to each other: unlabelled texts farther away from all do not count
FAIR_SHARE = 0.5  # of the mean number of texts per class: a class that has fewer may be absent, and its texts count less
MOST_COMPARED = 2000  # examples that unlabelled texts are compared with
TEXTS_COMPARED_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class LabelledDocuments:
    """Documents with targets (documents, classes), 1 where a document has a class, and weights (documents,)."""

    documents: Any
    targets: Floats
    weights: Floats
    exclusive: bool  # each document has one class, and scores are the logits of a softmax; otherwise of one sigmoid per class
    names: Bools  # (documents,): which of them are the words of a class's label

    @property
    def sizes(self) -> Floats:
        """The number of examples of each class; its label words count as one."""
        return self.weights @ self.targets

    @property
    def shots(self) -> Floats:
        """The number of examples of each class, without its label words."""
        return np.where(self.names, np.float32(0), self.weights) @ self.targets

    @property
    def prior(self) -> Floats:
        """The logits of the classes' shares of the examples; a class that has only label words counts as one of one."""
        sizes = np.where(self.shots > 0, self.shots, 1)
        return np.log(sizes / sizes.sum()).astype(np.float32)  # type: ignore[no-any-return]

    @property
    def needless_names(self) -> Bools:
        """Which documents are the words of a label whose class also has examples: (documents,)."""
        return self.names & (self.targets @ self.shots > 0)

    def select(self, positions: Ints | Bools) -> LabelledDocuments:
        """Some of the documents."""
        chosen = np.arange(len(self.weights))[positions]
        parts = self.targets[chosen], self.weights[chosen], self.exclusive, self.names[chosen]
        return LabelledDocuments(self.documents.select(chosen), *parts)

    def without(self, left_out: Ints) -> LabelledDocuments:
        """With one example fewer at each of these positions: an example of weight 2 stays, with weight 1."""
        weights = self.weights.copy()
        weights[left_out] -= np.minimum(weights[left_out], 1)
        return replace(self, weights=weights).select(weights > 0)


def scorer_from_vectors(
    head: ReadyHead, vectors: Floats, targets: Floats, names: Bools, texts: Floats | None = None
) -> CentredScorer:
    """Learn from the vectors of examples and label words with one-hot targets, and from those of unlabelled texts, if given."""
    vectors = unit_length(vectors)
    labelled = LabelledDocuments(None, targets, np.ones(len(targets), np.float32), True, names)
    name_weights = trust_in_names(vectors, labelled)
    kept = ~labelled.needless_names
    if not name_weights.any() and not kept.all():
        return scorer_from_vectors(head, vectors[kept], targets[kept], names[kept], texts)
    return weighted_scorer(head, vectors, labelled, name_weights, None if texts is None else unit_length(texts))[0]


def weighted_scorer(
    head: ReadyHead, vectors: Floats, labelled: LabelledDocuments, name_weights: Floats, texts: Floats | None
) -> tuple[CentredScorer, int]:
    """A scorer learned from unit vectors, and the number of unlabelled texts that counted.

    `name_weights` says how many examples the words of each class's label are worth: (classes,).
    """
    worth = labelled.targets @ name_weights  # (documents,)
    weights = np.where(labelled.names, np.maximum(worth, 1), labelled.weights).astype(np.float32)
    weights[labelled.needless_names] = worth[labelled.needless_names]
    known = _Known(_names_among_examples(vectors, labelled), labelled.targets, weights)
    if texts is None or not len(texts):
        return known.scorer(head), 0
    examples = vectors[~labelled.names]
    near = _near(texts, examples)
    if not near.any():
        return known.scorer(head), 0
    texts = texts[near]
    if len(examples):
        trust = min(1.0, float(near.mean()) / (1 - NEAR_EXAMPLES / 100)) * _likeness(texts, examples)
    else:
        known, trust = _moved_to(texts, known, head)
    return (_with_pool(head, known, texts, trust), len(texts)) if trust else (known.scorer(head), 0)


@dataclass(frozen=True, eq=False)
class _Known:
    """Vectors that a head is fitted to, with targets and weights."""

    vectors: Floats
    targets: Floats
    weights: Floats

    def scorer(self, head: ReadyHead) -> CentredScorer:
        return head.fit(self.vectors, self.targets, self.weights, exclusive=True)

    def joined(self, vectors: Floats, targets: Floats, weights: Floats) -> _Known:
        more = zip((self.vectors, self.targets, self.weights), (vectors, targets, weights), strict=True)
        return _Known(*(np.concatenate(pair).astype(np.float32) for pair in more))


# The words of labels


def _class_means(vectors: Floats, targets: Floats, weights: Floats) -> Floats:
    """The weighted mean of each class's vectors: (classes, dim)."""
    weighted = targets * weights[:, None]
    return weighted.T @ vectors / np.maximum(weighted.sum(axis=0), TINY)[:, None]  # type: ignore[no-any-return]


def trust_in_names(vectors: Floats, labelled: LabelledDocuments) -> Floats:
    """How many examples the words of each class's label are worth, by how well they answer the labelled examples: (classes,).

    None if they answer no better than words dealt out to the classes by chance, as shuffled labels do not. The words of one
    class count less if its examples contradict them, or fit the words of another class better. Vectors have length 1, or 0
    if nothing of a document is known.
    """
    present = vectors.any(axis=1)
    names, examples = labelled.names & present, ~labelled.names & present
    words = _class_means(vectors, labelled.targets, names * np.float32(1))  # (classes, dim)
    both = words.any(axis=1) & ((examples * np.float32(1)) @ labelled.targets > 0)  # classes with names and examples
    worth = np.full(len(both), NAME_WEIGHT if names.any() else 0.0, np.float32)
    if both.sum() < 2:
        return worth
    asked = examples & (labelled.targets[:, both].sum(axis=1) > 0)
    targets, weights = labelled.targets[asked][:, both], labelled.weights[asked]
    centre = _class_means(vectors[asked], targets, weights).mean(axis=0)
    cosines = (vectors[asked] - centre) @ (words[both] - words[both].mean(axis=0)).T  # (examples, words)
    likelihood = np.log(np.maximum(softmax(NAME_SHARPNESS * cosines) * both.sum(), TINY))
    evidence = (targets * weights[:, None]).T @ likelihood  # (classes, words): for each class having these words
    worth *= _better_than_chance(evidence)
    sizes = weights @ targets  # (classes,)
    worth[both] *= _own_words(evidence * np.minimum(1, MOST_DOUBTS / np.maximum(sizes, TINY))[:, None])
    return worth


def _better_than_chance(evidence: Floats) -> float:
    """From 0 to 1: how far the evidence for each class's own words exceeds guessing, and that for words dealt out at random.

    The sum over the classes is compared with its mean and standard deviation over all orders of the words.
    """
    others = len(evidence) - 1
    centred = evidence - evidence.mean(axis=0) - evidence.mean(axis=1, keepdims=True) + evidence.mean()
    deviation = float(np.sqrt((centred**2).sum() / others))
    found = float(np.trace(centred)) / max(deviation, TINY)
    least, enough = (min(most, each * others) for each, most in (CHANCE, SURE))
    guessing = 1 - float(np.exp(-max(0.0, float(np.trace(evidence)))))
    return min(guessing, max(0.0, (found - least) / (enough - least)))


def _own_words(evidence: Floats) -> Floats:
    """From 0 to 1: how far each class's examples suit its own words, and not another's: (classes,)."""
    own = np.diag(evidence)
    best = (evidence - np.diag(np.full(len(own), np.inf))).max(axis=1)
    return np.exp(np.minimum(0, own) + BETTER_NAME * np.minimum(0, own - best))  # type: ignore[no-any-return]


def _names_among_examples(vectors: Floats, labelled: LabelledDocuments) -> Floats:
    """The vectors, with those of label words moved to where examples are, by how far the two are apart: words are not texts."""
    present = vectors.any(axis=1)
    names = labelled.names & present
    words = _class_means(vectors, labelled.targets, names * np.float32(1))  # (classes, dim)
    examples = _class_means(vectors, labelled.targets, labelled.weights * (~labelled.names & present))
    both = words.any(axis=1) & examples.any(axis=1)
    moved = vectors.copy()
    if both.sum() > 1:
        moved[names] += (examples[both] - words[both]).mean(axis=0)
    return moved


# Unlabelled texts


def _near(texts: Floats, examples: Floats) -> Bools:
    """Which texts are as near to an example as examples are to each other: the others may belong to no class at all."""
    step = max(1, -(-len(examples) // MOST_COMPARED))
    examples = examples[examples.any(axis=1)][::step]
    if len(examples) < 2:
        return np.asarray(texts.any(axis=1))
    cosines = examples @ examples.T
    np.fill_diagonal(cosines, -1)
    least = np.percentile(cosines.max(axis=1), NEAR_EXAMPLES)
    parts = (texts[first : first + TEXTS_COMPARED_AT_ONCE] for first in range(0, len(texts), TEXTS_COMPARED_AT_ONCE))
    return np.concatenate([(part @ examples.T).max(axis=1) >= least for part in parts]) & texts.any(axis=1)


def _likeness(texts: Floats, examples: Floats) -> float:
    """From 1 to 0: how near the mean of the texts is to that of the examples, apart from chance."""
    examples = examples[examples.any(axis=1)]
    if len(examples) < 2:
        return 1.0
    variance = float(examples.var(axis=0, ddof=1).sum())
    distance = float(((texts.mean(axis=0) - examples.mean(axis=0)) ** 2).sum()) - variance / len(examples)
    return 1 / (1 + max(0.0, distance) / max(DISTANT * variance, TINY))


def _moved_to(texts: Floats, known: _Known, head: ReadyHead) -> tuple[_Known, float]:
    """Label words moved to where the texts are, and how far: as far as they answer the texts with certainty.

    Without examples, nothing else says where the texts to be answered are, and whether these ones are like them.
    """
    step = (texts.mean(axis=0) - known.vectors.mean(axis=0)).astype(np.float32)
    moved = replace(known, vectors=known.vectors + step)
    certainty = float(_certainties(softmax(moved.scorer(head)(texts))).mean())
    trust = float(np.clip((certainty - head.doubt) / CERTAIN, 0, 1))
    return replace(known, vectors=known.vectors + np.float32(trust) * step), trust


def _certainties(shares: Floats) -> Floats:
    """From 0 to 1: how far each text's probabilities (texts, classes) are from being equal, (texts,)."""
    return np.maximum(0, 1 - entropy(shares) / np.log(shares.shape[1]))  # type: ignore[no-any-return]


def _with_pool(head: ReadyHead, known: _Known, texts: Floats, trust: float) -> CentredScorer:
    """Assign the texts to classes, add each class's mean text to its examples, and repeat with the scorer learned so.

    The less certain the first assignment is, and the less the texts are trusted, the less they count: they may belong to
    other classes. For the same reason a text counts as far as it is more certain than others.
    """
    scorer = known.scorer(head)
    classes = known.targets.shape[1]
    shares = softmax(scorer(texts))  # (texts, classes)
    most = POOL_STRENGTH * max(1.0, classes / FEW_CLASSES) ** 0.5 * float(_certainties(shares).mean()) ** 3 * trust
    for _ in range(POOL_ROUNDS):
        certainties = _certainties(shares)
        shares *= (certainties / max(float(certainties.mean()), TINY))[:, None]
        shares[shares < LEAST_SHARE * shares.max(axis=1, keepdims=True)] = 0
        sizes = shares.sum(axis=0)
        found = sizes > LEAST_TEXTS
        if not found.any():
            return scorer
        means = (shares.T @ texts)[found] / sizes[found, None]
        means += scorer.centre - means.mean(axis=0)  # what the texts have in common says nothing about classes
        reliable = sizes[found] / (sizes[found] + FEW_TEXTS)  # the mean of few texts may be that of wrong ones
        weights = np.minimum(POOL_TEXT_WEIGHT * sizes[found] * reliable, most)
        weights *= np.minimum(1, sizes[found] / (FAIR_SHARE * sizes.mean()))
        scorer = known.joined(means, np.eye(classes, dtype=np.float32)[found], weights).scorer(head)
        shares = softmax(scorer(texts))
    return scorer
