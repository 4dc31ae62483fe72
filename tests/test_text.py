from __future__ import annotations

import itertools
import json
import lzma

import pytest
from conftest import REAL_DATA, needs_real_data
from hypothesis import given
from hypothesis import strategies as st

from handful.data.text import Vocabulary, tokenize, words_of


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
