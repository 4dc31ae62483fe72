from __future__ import annotations

import itertools
import json
import lzma

import pytest
from conftest import REAL_DATA, needs_real_data
from hypothesis import given
from hypothesis import strategies as st

from handful.data.text import Vocabulary, tokenize, tokens_of, words_in, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't! It's", ["do", "n't", "!", "it", "'s"]),
        ("I can't, won’t, cannot", ["i", "ca", "n't", ",", "wo", "n’t", ",", "can", "not"]),
        ("they'll we've I'm you'd we're", ["they", "'ll", "we", "'ve", "i", "'m", "you", "'d", "we", "'re"]),
        ("O'Reilly's 3rd U.S. office", ["o'reilly", "'s", "3rd", "u.s.", "office"]),
        ("$5,000 on 04/09/87 at 10:30...", ["$", "5,000", "on", "04/09/87", "at", "10:30", "..."]),
        ("well-known -- really!!", ["well", "-", "known", "--", "really", "!!"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("İstanbul ☃", ["i̇stanbul", "☃"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text())
def test_offsets_are_the_words_and_nothing_visible_is_lost(text: str) -> None:
    words = tokenize(text)
    assert all(text[word.start : word.end].lower() == word.text for word in words)
    assert all(a.end <= b.start for a, b in itertools.pairwise(words))
    assert sum(word.end - word.start for word in words) == sum(not character.isspace() for character in text)


TRICKY = [*"aZéß'’._-,!?…/:%€$@#", *"0129", " ", "\n", "\u00a0", "\u2028", "\x1c", "\u200b", "\u200d", "\ufeff", "\u00ad"]
TRICKY += [
    "n't",
    "N’T",
    "'s",
    "can",
    "not",
    "cannot",
    "u.s.",
    "5,000",
    "04/09",
    "世界",
    "こん",
    "हिन्दी",
    "ﷺ",
    "İ",
    "ΣΑΣ",
    "👩‍🚀",
    "👍🏽",
    "x" * 150,
]


@given(st.lists(st.sampled_from(TRICKY)).map("".join) | st.text(), st.none() | st.integers(0, 8))
def test_words_token_by_token_are_those_of_the_whole_text(text: str, most: int | None) -> None:
    assert words_of(text, most) == [word.text for word in tokenize(text, most)]
    assert all(words_in(token) for token in tokens_of(text))


def test_only_the_beginning_of_a_long_text_is_split() -> None:
    assert tokens_of("a b  c d", 2) == ["a", "b"]
    assert words_in("!?" * 1000, 3) == ("!", "?", "!")
    assert words_of("!?" * 1000 + " a", 3) == ["!", "?", "!"]


def test_vocabulary_counts_without_taking_anything_away() -> None:
    vocabulary = Vocabulary(["a"])
    assert vocabulary.ids(["b", "a", "b"]).tolist() == [1, 0, 1]
    assert vocabulary.words == ["a", "b"]
    assert vocabulary.find(["b", "c"]).tolist() == [1, -1]


@needs_real_data
def test_contractions_are_split_as_in_the_benchmark_files() -> None:
    """Raw posts through our tokenizer, against the tokens of the benchmark file."""
    with (
        lzma.open(f"{REAL_DATA}/20newsgroups.raw.jsonl.xz", "rt") as raw,
        lzma.open(f"{REAL_DATA}/20newsgroups.json.xz", "rt") as done,
    ):
        pairs = [(json.loads(a)["body"], json.loads(b)["text"]) for a, b, _ in zip(raw, done, range(300), strict=False)]
    ours = [set(words_of(body)) for body, _ in pairs]
    shared = [len(mine & set(theirs)) / max(1, len(set(theirs))) for mine, (_, theirs) in zip(ours, pairs, strict=True)]
    assert sum(shared) / len(shared) > 0.9
    for contraction in ("n't", "'s", "'re", "'ll"):
        assert any(contraction in mine for mine in ours)
