from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handful.data.frequencies import background_frequencies
from handful.data.text import Vocabulary, tokenize
from handful.embeddings import lexicon
from handful.embeddings.lexicon import Lexicon
from handful.embeddings.words import WordLookup, cached_table
from handful.models.generator import DEFAULT_VECTORS
from handful.utils.functional import Floats


class Lengths:
    """A table that knows words of at most five letters, and counts how often it is asked."""

    dim = 2

    def __init__(self) -> None:
        self.asked: list[str] = []

    def lookup(self, words: Sequence[str]) -> Floats:
        self.asked += words
        return np.array([[len(word), 1] if len(word) <= 5 else [0, 0] for word in words], np.float32).reshape(-1, 2)


def spelled(book: Lexicon, tokens: list[str], max_words: int = 10) -> list[list[str]]:
    known, numbers = book.look_up(tokens, max_words)
    for number in {number for part in numbers for number in part}:
        word = known.words[number]
        assert known.vectors[number].tolist() == ([len(word), 1] if len(word) <= 5 else [0, 0])
        assert known.has_vector[number] == (len(word) <= 5)
        assert known.frequencies[number] == background_frequencies([word])[0]
    return [[known.words[number] for number in part] for part in numbers]


def test_words_are_looked_up_once() -> None:
    table = Lengths()
    book = Lexicon(table, "en")
    assert spelled(book, ["Don't", "stop!"]) == [["do", "n't"], ["stop", "!"]]
    assert spelled(book, ["stop!", "Stop", "now"]) == [["stop", "!"], ["stop"], ["now"]]
    assert sorted(table.asked) == sorted(["do", "n't", "stop", "!", "now"])
    assert spelled(book, []) == []


def test_long_tokens_are_not_remembered() -> None:
    book = Lexicon(Lengths(), "en")
    long = "!?" * 50
    assert spelled(book, [long, "a"], 3) == [["!", "?", "!"], ["a"]]
    assert spelled(book, [long, "a"], 5) == [["!", "?", "!", "?", "!"], ["a"]]


@pytest.mark.parametrize(("words", "tokens"), [(4, 100), (100, 3), (1, 1)])
def test_a_full_lexicon_starts_again(monkeypatch: pytest.MonkeyPatch, words: int, tokens: int) -> None:
    monkeypatch.setattr(lexicon, "MOST_WORDS", words)
    monkeypatch.setattr(lexicon, "MOST_TOKENS", tokens)
    book = Lexicon(Lengths(), "en")
    for round_ in range(20):
        batch = [f"w{(round_ * step) % 13}" for step in range(6)]
        assert spelled(book, batch) == [[word] for word in batch]


def test_threads_share_a_lexicon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "MOST_WORDS", 50)
    book = Lexicon(Lengths(), "en")

    def ask(number: int) -> bool:
        batch = [f"w{(number * step) % 97}" for step in range(20)]
        return spelled(book, batch) == [[word] for word in batch]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(400)))


@settings(deadline=None)  # the first text reads the tables
@given(
    st.lists(
        st.lists(st.sampled_from(["Don't", "top", "up!", "can", "cannot", "世界", "\u200b", "x" * 50, " ", "\n"])).map(" ".join)
    )
)
def test_texts_are_read_as_word_by_word(texts: list[str]) -> None:
    most = 4
    found = WordLookup(DEFAULT_VECTORS, "en", most).read(texts)
    documents = [[word.text for word in tokenize(text)] for text in texts]
    vocabulary = Vocabulary()
    ids = vocabulary.ids(word for words in documents for word in words[:most])
    table = cached_table(DEFAULT_VECTORS).lookup(vocabulary.words)
    assert found.words == vocabulary.words
    assert found.cut == sum(len(words) > most for words in documents)
    assert np.array_equal(found.texts.table, table)
    assert np.array_equal(found.texts.ids, ids[(table != 0).any(axis=1)[ids]])
    assert np.array_equal(found.frequencies, background_frequencies(vocabulary.words))
    known = [sum((table[vocabulary.find([word])] != 0).any() for word in words[:most]) for words in documents]
    assert found.texts.lengths.tolist() == known


def test_batches_are_the_texts_in_order() -> None:
    texts = [f"number {i} of many texts" for i in range(20_000)]
    parts = list(WordLookup(DEFAULT_VECTORS, "en", 500).batches(texts))
    assert len(parts) > 1
    assert sum(len(part) for part in parts) == len(texts)
    last = parts[-1]
    begin = last.texts.offsets[-2]
    assert [last.words[i] for i in last.texts.ids[begin:]] == ["number", "19999", "of", "many", "texts"]
