"""How well people agree: Cohen's kappa for two, Krippendorff's alpha for any number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

Values = Mapping[int, Any]  # what a person said of each text


def cohen_kappa(one: Values, other: Values) -> float | None:
    """Agreement of two people on the texts that both labelled, beyond chance (Cohen, 1960); None without such texts.

    >>> cohen_kappa({1: "a", 2: "a", 3: "b", 4: "b"}, {1: "a", 2: "b", 3: "b", 4: "b"})
    0.5
    """
    both = sorted(one.keys() & other.keys())
    if not both:
        return None
    observed = sum(one[text] == other[text] for text in both) / len(both)
    first, second = (Counter(person[text] for text in both) for person in (one, other))
    expected = sum(first[value] * second[value] for value in first) / len(both) ** 2
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)


def krippendorff_alpha(people: Sequence[Values]) -> float | None:
    """Agreement of any number of people on names of classes (Krippendorff, 2011); None where no text has two labels.

    >>> krippendorff_alpha([{1: "a", 2: "a", 3: "b"}, {1: "a", 2: "b", 3: "b"}])
    0.4444444444444444
    """
    by_text: dict[int, list[Any]] = defaultdict(list)
    for person in people:
        for text, value in person.items():
            by_text[text].append(value)
    units = [Counter(values) for values in by_text.values() if len(values) > 1]
    total = sum(unit.total() for unit in units)
    if not total:
        return None
    differing = sum((unit.total() ** 2 - sum(n * n for n in unit.values())) / (unit.total() - 1) for unit in units)
    counts = sum(units, Counter[Any]())
    by_chance = (total**2 - sum(n * n for n in counts.values())) / (total - 1)
    return 1.0 if by_chance == 0 else 1 - differing / by_chance


def agreement_facts(labels: Sequence[Any]) -> dict[str, Any]:
    """Agreement from rows of labels (text, annotator, mark, label); "none of these" counts as a class of its own."""
    people: dict[str, dict[int, Any]] = defaultdict(dict)
    for row in labels:
        if row.mark in ("class", "none"):
            people[row.annotator][row.text] = row.label if row.mark == "class" else "none"
    pairs = [
        {
            "annotators": [one, other],
            "texts": len(people[one].keys() & people[other].keys()),
            "same": sum(people[one][text] == people[other][text] for text in people[one].keys() & people[other].keys()),
            "cohen_kappa": cohen_kappa(people[one], people[other]),
        }
        for one, other in combinations(sorted(people), 2)
    ]
    counts = Counter(text for person in people.values() for text in person)
    return {
        "annotators": [{"annotator": name, "texts": len(people[name])} for name in sorted(people)],
        "texts_labelled_twice": sum(count > 1 for count in counts.values()),
        "krippendorff_alpha": krippendorff_alpha(list(people.values())),
        "pairs": pairs,
    }
