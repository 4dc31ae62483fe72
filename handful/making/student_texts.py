"""Unlabelled English texts that an encoder learns from: sentences of corpora, a dictionary's glosses, phrases, requests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypedDict

import numpy as np

SHORTEST, LONGEST = 3, 36  # words of a sentence
PASSAGE = (50, 110)  # fewest and most words of a long text
LETTERS = 0.7  # share of letters and spaces, below which a line is no sentence
WORDNET = Path("/usr/share/wordnet")  # of the Debian package wordnet-base
REQUEST_DOMAINS = Path(__file__).with_name("request_domains.json")
KINDS = {  # shares of the kinds of sensible requests, of which some are two in one text
    ("actions",): 0.38,
    ("problems",): 0.22,
    ("questions",): 0.12,
    ("problems", "actions"): 0.18,
    ("problems", "questions"): 0.05,
    ("actions", "questions"): 0.05,
}
DATED = 0.12  # share of actions that are meant for some time
PARTS_OF_SPEECH = ("noun", "verb", "adj", "adv")
QUOTED = re.compile(r"^\s*([>|:#]|--|.*\b(writes|wrote|says)\s*:|In article )")
CONTRACTED = re.compile(r" (n't|'s|'re|'ve|'ll|'d|'m)\b")
MARKED = re.compile(r"\((a|p|ip)\)$")  # how an adjective may be used
REQUESTS = (
    "how do i {verb} my {noun}",
    "how can I {verb} the {noun}?",
    "I want to {verb} a {noun}",
    "i would like to {verb} my {noun} please",
    "could you {verb} the {noun} for me",
    "please {verb} my {noun}",
    "can i still {verb} the {noun}?",
    "what does {noun} mean",
    "what is the best {noun}",
    "tell me about {noun}",
    "where can I find a {noun}?",
    "is there a {noun} near here",
    "my {noun} is not working",
    "why is my {noun} so {adj}?",
    "the {noun} has not arrived yet",
    "how much does the {noun} cost",
    "when will my {noun} be ready?",
    "do you have any {adj} {noun}",
    "i lost my {noun}, what now?",
    "I have a question about the {noun} and the {noun2}",
    "there is something wrong with the {noun}",
    "who do I ask about a {adj} {noun}?",
    "which {noun} goes with the {noun2}",
    "remind me to {verb} the {noun} tomorrow",
    "i did not {verb} this {noun}",
    "will the {noun} {verb} by itself",
    "don't {verb} the {noun}",
    "need help to {verb} {noun}",
)


# Corpora


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that consist mostly of words, without lines quoted from other texts.

    >>> list(sentences("> Is it so?\\nIt is n't so today . Really ! #+*~ 12 34 = 46"))
    ["It isn't so today ."]
    """
    own = " ".join(line for line in text.splitlines() if not QUOTED.match(line))
    for part in re.split(r"(?<=[.!?])\s+", CONTRACTED.sub(r"\1", " ".join(own.split()))):
        words = part.split()
        if SHORTEST <= len(words) <= LONGEST and _is_prose(part):
            yield part


def _is_prose(text: str) -> bool:
    return sum(c.isalpha() or c == " " for c in text) >= LETTERS * len(text) and max(map(len, text.split())) <= 25


def passages(text: str, rng: np.random.Generator) -> Iterator[str]:
    """One long stretch of a text, if it is long enough."""
    words = " ".join(sentences(text)).split()
    if len(words) >= PASSAGE[0]:
        yield " ".join(words[: int(rng.integers(PASSAGE[0], PASSAGE[1]))])


def fragments(texts: Sequence[str], number: int, rng: np.random.Generator) -> Iterator[str]:
    """The beginning of one text and the end of another, which are usually cut inside a sentence."""
    for first, second in rng.integers(len(texts), size=(number, 2)):
        one, other = texts[first].split(), texts[second].split()
        yield " ".join([*one[: max(2, len(one) // 2)], *other[len(other) // 2 :]])


# The dictionary


def glosses(folder: Path = WORDNET) -> Iterator[str]:
    """The definitions of all words."""
    for _, parts in _entries(folder):
        yield from (part for part in parts if not part.startswith('"') and len(part.split()) >= SHORTEST)


def usages(folder: Path = WORDNET) -> Iterator[str]:
    """The sentences and phrases that show how words are used."""
    for _, parts in _entries(folder):
        yield from (part.strip('"') for part in parts if part.startswith('"') and len(part.split()) >= SHORTEST)


def phrases(folder: Path = WORDNET) -> Iterator[str]:
    """The entries of two to four words, which resemble labels."""
    for entries, _ in _entries(folder):
        yield from (entry for entry in entries if 2 <= len(entry.split()) <= 4)


def _entries(folder: Path, kinds: Sequence[str] = PARTS_OF_SPEECH) -> Iterator[tuple[list[str], list[str]]]:
    """The words of each entry, and the parts of its gloss."""
    for kind in kinds:
        for line in (folder / f"data.{kind}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):  # the licence
                continue
            facts, _, gloss = line.partition(" | ")
            fields = facts.split()
            words = [MARKED.sub("", fields[4 + 2 * i]).replace("_", " ") for i in range(int(fields[3], 16))]
            yield words, [part.strip() for part in re.findall(r'"[^"]*"|[^";]+', gloss) if part.strip()]


# Requests


def made_up_requests(number: int, rng: np.random.Generator, folder: Path = WORDNET) -> Iterator[str]:
    """Requests as people type them, about anything: patterns with frequent words of the dictionary, mostly without sense."""
    known = {kind: np.array(_frequent(folder, kind)) for kind in ("noun", "verb", "adj")}  # a list would be copied at each draw
    for _ in range(number):
        chosen = {kind: str(rng.choice(words)) for kind, words in known.items()}
        yield str(rng.choice(REQUESTS)).format(**chosen, noun2=rng.choice(known["noun"]))


def _frequent(folder: Path, kind: str, least: float = 3.3) -> list[str]:
    """The words and phrases of a kind that are frequent: more than two in a million words."""
    from wordfreq import zipf_frequency

    found = {word.lower() for words, _ in _entries(folder, [kind]) for word in words[:2] if len(word) > 2}
    return sorted(word for word in found if zipf_frequency(word, "en") >= least)


# Sensible requests


Texts = Mapping[str, Sequence[str]]  # by kind


class RequestDomains(TypedDict):
    """Parts of requests: frames by kind, and the things, actions, problems and questions of each domain."""

    frames: Texts
    domains: Mapping[str, Texts]


@cache
def request_domains() -> RequestDomains:
    """The frames and domains of sensible requests."""
    known: RequestDomains = json.loads(REQUEST_DOMAINS.read_text(encoding="utf-8"))
    return known


def sensible_requests(number: int, rng: np.random.Generator) -> Iterator[str]:
    """Requests as people type them to everyday services: each makes sense in its domain."""
    known = request_domains()
    domains, kinds = list(known["domains"].values()), list(KINDS)
    for kind in rng.choice(len(kinds), size=number, p=list(KINDS.values())):
        domain = domains[int(rng.integers(len(domains)))]
        thing = _one(domain["things"], rng)  # the same in both parts of a request
        parts = [_framed(part, known["frames"], domain, rng).replace("{thing}", thing) for part in kinds[kind]]
        yield _as_typed(parts, known["frames"], rng)


def _one(texts: Sequence[str], rng: np.random.Generator) -> str:
    return texts[int(rng.integers(len(texts)))]


def _framed(kind: str, frames: Texts, domain: Texts, rng: np.random.Generator) -> str:
    said = _one(domain[kind], rng)
    if kind == "actions" and rng.random() < DATED:
        said = f"{said} {_one(frames['circumstances'], rng)}"
    return _one(frames[kind], rng).replace("{}", said)


def _as_typed(parts: list[str], frames: Texts, rng: np.random.Generator) -> str:
    """The parts as one text, with or without greeting, ending, last punctuation mark, capitals and apostrophes."""
    greeted, ended, unmarked, capitals, lower, bare = rng.random(6) < (0.08, 0.1, 0.5, 0.8, 0.4, 0.1)
    if greeted:
        parts = [f"{_one(frames['greetings'], rng)} {parts[0]}", *parts[1:]]
    if ended:
        parts = [*parts, _one(frames["endings"], rng)]
    elif unmarked:
        parts = [*parts[:-1], parts[-1].rstrip(".?")]
    text = " ".join(part[0].upper() + part[1:] if capitals else part for part in parts)
    if bare:
        text = text.replace("'", "")
    return text.lower() if lower else text


# All together


def distinct(texts: Iterable[str]) -> list[str]:
    """Each text once, whatever its case, in the order of their last occurrence."""
    return list({text.lower(): text for text in reversed(list(texts))}.values())[::-1]


def some(texts: Iterable[str], most: int, rng: np.random.Generator) -> list[str]:
    """At most this many texts, drawn at random."""
    every = distinct(texts)
    return [every[i] for i in rng.permutation(len(every))[:most]]
