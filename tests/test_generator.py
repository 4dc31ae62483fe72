"""The generator for any texts: mixed episodes, signals without a scale of their own, making it, and the one that ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import needs_real_data

from handful.data.corpus import Corpus, make_corpus
from handful.data.datasets import Dataset, load_dataset
from handful.data.episodes import MixedSampler
from handful.data.frequencies import SourcePool, background_frequencies, background_pool
from handful.data.splits import ClassSplit
from handful.embeddings.words import TokenizedTexts, WordLookup
from handful.errors import SettingError
from handful.making.generator import (
    CLASSES,
    GENERATOR_SETTINGS,
    calibrate_scale,
    distract,
    in_use,
    load_generator_data,
    make_generator,
)
from handful.meta.checkpoints import load_checkpoint, save_checkpoint
from handful.meta.training import TrainingSettings
from handful.models.few_shot import FewShotModel
from handful.models.generator import DEFAULT_VECTORS, SHIPPED_GENERATOR, load_generator
from handful.models.heads import RefinedRidge, UnitRidge
from handful.models.representations import Batch
from handful.models.settings import AttentionSettings, ModelSettings
from handful.models.signatures import Evidence, frequency_level, mean_vectors, unevenness
from handful.models.text_encoders import AttentionBag
from handful.utils.functional import (
    one_hot,
    ridge_weights,
    segment_sum,
    segments,
    softmax,
    softmax_refined,
    unit_length,
    weighted_bag,
)

# Mixed episodes


@pytest.fixture
def mixed(random_corpus: Corpus) -> MixedSampler:
    return MixedSampler(random_corpus, [range(3), range(3, 8)], background_pool(random_corpus.vocabulary), 4, shots=(1, 6))


def test_mixed_episodes_have_classes_of_one_group_and_any_shape(mixed: MixedSampler) -> None:
    shapes = set()
    for index in range(60):
        episode = mixed[index]
        assert len({label < 3 for label in episode.classes}) == 1
        assert not set(episode.support) & set(episode.query)
        assert (mixed.corpus.labels[episode.support] == episode.classes[episode.support_labels]).all()
        assert (mixed.corpus.labels[episode.query] == episode.classes[episode.query_labels]).all()
        shapes.add((len(episode.classes), len(episode.support) // len(episode.classes)))
    assert {way for way, _ in shapes} == {2, 3, 4, 5}
    assert {shot for _, shot in shapes} == {1, 2, 3, 4, 5, 6}


def test_a_mixed_episode_is_a_function_of_its_index(mixed: MixedSampler) -> None:
    assert np.array_equal(mixed[7].support, replace(mixed)[7].support)
    assert not np.array_equal(mixed[7].support, replace(mixed, seed=5)[7].support)


def test_signs_are_frequent_and_emoji_are_words() -> None:
    comma, the, unheard, emoji = background_frequencies([",", "the", "qwxyzzy", "😀"])
    assert comma > emoji > unheard == 0
    assert the > 0.01
    with pytest.raises(SettingError, match="no word frequencies"):
        background_frequencies(["a"], "xx")


# Signals


def test_unevenness_means_the_same_for_any_number_of_classes() -> None:
    for classes in (2, 5, 77):
        once = np.zeros((1, classes), np.float32)
        assert unevenness(once)[0] == pytest.approx(0, abs=1e-5)
        once[0, 0] = 1
        assert 0.2 < unevenness(once)[0] < 1.2
        assert unevenness(4 * once)[0] > unevenness(once)[0]


def test_the_scale_of_vectors_does_not_matter(random_corpus, random_table) -> None:
    labels = random_corpus.labels[::12] % 4
    small, large = (random_corpus.texts(random_table * factor) for factor in (1, 100))
    support = [texts.select(np.arange(0, 96, 12)) for texts in (small, large)]
    first, second = (Evidence.of(texts, one_hot(labels, 4)) for texts in support)
    one, other = (evidence.signal("reach", texts, np.zeros(0)) for evidence, texts in ((first, small), (second, large)))
    np.testing.assert_allclose(one, other, atol=1e-3)
    head = UnitRidge()
    parameters = head.initial(np.random.default_rng(0), 16)
    vectors, targets = random_table[:8], one_hot(labels, 4)
    scores = [head.fit(parameters, vectors * f, targets)(random_table * f) for f in (1, 100)]
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-3, atol=1e-4)


def test_a_word_that_the_support_set_lacks_falls_evenly(random_corpus, random_table) -> None:
    texts = random_corpus.texts(random_table).select(np.arange(0, 96, 12))
    evidence = Evidence.of(texts, one_hot(np.arange(8), 8))
    assert (evidence._uneven_of(evidence.words) == evidence.uneven).all()
    assert evidence._uneven_of(np.array([-1, 10_000])).tolist() == [0, 0]


def test_frequency_levels_are_small_numbers() -> None:
    levels = frequency_level(np.array([0, 1e-6, 0.05]))
    assert (np.abs(levels) < 3).all()
    assert (np.diff(levels) > 0).all()


# Making one

QUICK = TrainingSettings(episodes=4, validation_episodes=2, epochs=2)


@pytest.fixture
def small_data(demo, monkeypatch) -> None:
    """The demo corpus in place of the benchmarks."""
    split = ClassSplit(tuple(range(15)), tuple(range(15, 20)), ())
    dataset = Dataset("demo", demo.dataset.corpus, split)
    monkeypatch.setattr("handful.making.generator.load_dataset", lambda *arguments, **more: dataset)
    monkeypatch.setattr("handful.making.generator.CALIBRATION_EPISODES", 4)


@pytest.mark.usefixtures("small_data")
def test_making_a_generator_resumes_to_the_same_bits(tmp_path: Path, monkeypatch) -> None:
    whole = make_generator(tmp_path / "whole", ["demo"], training=QUICK, quiet=True)

    def killed(folder: Path, state) -> None:
        save_checkpoint(folder, state)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("handful.making.generator.save_checkpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            make_generator(tmp_path / "cut", ["demo"], training=QUICK, quiet=True)
    assert load_checkpoint(tmp_path / "cut", whole.parameters) is not None
    resumed = make_generator(tmp_path / "cut", ["demo"], training=QUICK, quiet=True)
    assert all(np.array_equal(whole.parameters[name], resumed.parameters[name]) for name in whole.parameters)
    loaded = load_generator(tmp_path / "cut")
    assert all(np.array_equal(loaded.parameters[name], resumed.parameters[name]) for name in whole.parameters)
    assert sorted(path.name for path in (tmp_path / "cut").iterdir()) == ["config.json", "history.jsonl", "model.safetensors"]


def test_calibration_lowers_the_loss_on_other_classes(demo) -> None:
    dataset = Dataset("demo", demo.dataset.corpus, ClassSplit(tuple(range(15)), tuple(range(15, 20)), ()))
    generator_data = load_generator_data([dataset], GENERATOR_SETTINGS)
    wrong = load_generator().with_parameters({**load_generator().parameters, "head.scale": np.array([5, 0, 0], np.float32)})
    right = calibrate_scale(wrong, generator_data, 12)

    def loss(model: FewShotModel) -> float:
        fast = model.to_torch()
        return sum(fast.loss(fast.prepare(generator_data.texts, [generator_data.validation[i]]))[0].item() for i in range(12))

    assert loss(right) < 0.9 * loss(wrong)


def test_distracting_words_come_before_or_after_a_text_and_change_nothing_else(demo) -> None:
    dataset, filler = demo.dataset, make_corpus(["zip zap zop"], ["noise"])
    again = distract(dataset, filler)
    assert (again.corpus.labels == dataset.corpus.labels).all()
    assert again.corpus.classes == dataset.corpus.classes
    sides = set()
    for document in range(len(dataset.corpus)):
        words, text = again.corpus.words(document), dataset.corpus.words(document)[:60]
        before = words[: len(words) - len(text)] + text == words
        sides.add(before)
        assert set(words[: -len(text)] if before else words[len(text) :]) <= {"zip", "zap", "zop"}
    assert sides == {True, False}
    assert again.corpus.words(5) == distract(dataset, filler).corpus.words(5)


# The one that ships


def test_it_is_small_and_says_what_it_is() -> None:
    assert sum(path.stat().st_size for path in SHIPPED_GENERATOR.iterdir()) < 100_000
    assert load_generator().settings == in_use(GENERATOR_SETTINGS)
    assert "## " in (SHIPPED_GENERATOR / "README.md").read_text("utf-8")


def accuracies(corpus: Corpus, classes, shot: int, episodes: int) -> dict[str, np.ndarray]:
    """Of the generator, and of frequency weights and plain means with the same vectors and a ridge head, episode by episode."""
    nothing = SourcePool(np.empty(0), np.empty(0), 0, 0.0)
    sampler = MixedSampler(corpus, [classes], nothing, 3, (5, 5), (shot, shot))
    encoder = AttentionBag(WordLookup(DEFAULT_VECTORS, "en", 150), load_generator())
    results: dict[str, list[float]] = {"generator": [], "frequency": [], "mean": []}
    for index in range(episodes):
        episode = sampler[index]
        raw = [" ".join(corpus.words(i)) for i in np.concatenate([episode.support, episode.query])]
        targets = one_hot(episode.support_labels, 5)
        words, weights = encoder.read(raw), np.ones(len(targets), np.float32)
        support, queries = np.split(np.arange(len(raw)), [len(targets)])
        fitted = encoder.fit(words.select(support), targets, weights)
        scorer = encoder.model.ready_head.fit(fitted.vectors(words.select(support)), targets, weights, exclusive=True)
        scores = {"generator": scorer(fitted.vectors(words.select(queries)))}
        frequencies = words.frequencies[words.texts.ids]
        scores["frequency"] = ridge_scores(words, 1e-3 / (1e-3 + frequencies), targets)
        scores["mean"] = ridge_scores(words, np.ones(len(frequencies)), targets)
        for name, values in scores.items():
            results[name].append((values.argmax(1) == episode.query_labels).mean())
    return {name: np.array(values) for name, values in results.items()}


def ridge_scores(words: TokenizedTexts, importance: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Scores of the texts behind the examples, by ridge regression on weighted means; 1 is the penalty that suits best."""
    texts = words.texts
    weights = (importance / segment_sum(importance, texts.offsets)[segments(texts.offsets)]).astype(np.float32)
    known, asked = np.split(weighted_bag(texts.table, texts.rows, weights, texts.offsets), [len(targets)])
    return asked @ ridge_weights(known, targets, np.mean(np.sum(known**2, axis=1)))


def test_on_the_demo_corpus_it_is_level_with_frequency_weights_and_far_above_the_mean(demo) -> None:
    found = accuracies(demo.dataset.corpus, demo.dataset.split.test, 1, 60)
    assert found["generator"].mean() > found["frequency"].mean() - 0.01
    assert found["generator"].mean() > found["mean"].mean() + 0.05


@needs_real_data
@pytest.mark.parametrize("shot", [1, 5])
def test_it_beats_frequency_weights_on_validation_classes(shot: int) -> None:
    dataset = load_dataset("reuters", SHIPPED_GENERATOR / CLASSES, 150, skip_empty=True)
    found = accuracies(dataset.corpus, dataset.split.val, shot, 25)
    assert found["generator"].mean() > found["frequency"].mean()


def test_signals_are_named_in_errors() -> None:
    with pytest.raises(SettingError, match="s, t, t-count, t-softmax, t-ridge, frequency, unevenness and reach"):
        AttentionSettings(signals=("q",))


# Its attention and its head


def with_rarity(settings: ModelSettings, share: float) -> ModelSettings:
    return replace(settings, attention=replace(settings.attention, rarity=share))


def test_half_of_the_attention_goes_by_rarity(random_corpus, random_table) -> None:
    texts = random_corpus.texts(random_table)
    signals = np.random.default_rng(0).normal(size=(len(texts.ids), 3)).astype(np.float32)
    settings = GENERATOR_SETTINGS
    model = FewShotModel.initial(settings, random_table.shape[1])
    generated, rare, half = (
        FewShotModel(with_rarity(settings, share), model.parameters).weights(Batch(texts, signals)) for share in (0, 1, 0.5)
    )
    np.testing.assert_allclose(half, (generated + rare) / 2, rtol=1e-5)
    frequencies = 10 ** (signals[:, 0] * 2 - 4.5)
    expected = 1e-3 / (1e-3 + frequencies)
    np.testing.assert_allclose(rare, expected / segment_sum(expected, texts.offsets)[segments(texts.offsets)], rtol=1e-4)


def test_rarity_needs_a_share_and_the_signal_of_frequency() -> None:
    with pytest.raises(SettingError, match=r"must be from 0 to 1, not 1\.5"):
        AttentionSettings(signals=("frequency",), rarity=1.5)
    with pytest.raises(SettingError, match="needs the signal f"):
        AttentionSettings(signals=("unevenness",), rarity=0.5)


def test_the_head_is_a_ridge_regression_with_an_intercept_on_unit_vectors() -> None:
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import normalize

    rng = np.random.default_rng(0)
    vectors, queries, targets = rng.normal(size=(12, 6)), rng.normal(size=(5, 6)), one_hot(np.arange(12) % 4, 4)
    unit = normalize(vectors)
    reference = Ridge(alpha=float(np.mean(np.sum((unit - unit.mean(axis=0)) ** 2, axis=1)))).fit(unit, targets)
    head = UnitRidge(scale=1.0)
    scores = head.fit(head.initial(rng, 6), vectors, targets)(queries)
    np.testing.assert_allclose(scores + targets.mean(axis=0), reference.predict(normalize(queries)), atol=1e-6)


@pytest.fixture
def crowded() -> tuple[np.ndarray, np.ndarray]:
    """Four examples of each of sixty classes in eight dimensions, some of them large, without their mean."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(60), 4)
    sizes = np.geomspace(1, 0.1, 8)  # of the directions: classes lie between others along the small ones
    vectors = (rng.normal(size=(60, 8))[labels] + 0.2 * rng.normal(size=(240, 8))) * sizes
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (unit - unit.mean(axis=0)).astype(np.float32), one_hot(labels, 60)


def test_refining_has_examples_right_that_ridge_regression_hides(crowded) -> None:
    vectors, targets = crowded
    head, right = RefinedRidge(), targets.argmax(axis=1)
    plain, refined = ((vectors @ weights).argmax(axis=1) == right for weights in (head.ridge(*crowded), head.weights(*crowded)))
    assert refined.mean() > plain.mean() + 0.1


def test_refining_is_softmax_regression_where_nothing_draws_it_back(crowded) -> None:
    from sklearn.linear_model import LogisticRegression

    vectors, targets = crowded
    head = RefinedRidge(anchor=0.0, pull=0.5, steps=3000)
    reference = LogisticRegression(C=1 / head.pull, fit_intercept=False, tol=1e-8, max_iter=5000)
    reference.fit(vectors, targets.argmax(axis=1))
    np.testing.assert_allclose(head.weights(vectors, targets), reference.coef_.T, atol=2e-3)


def test_refining_reaches_its_minimum_and_counts_shares_as_repetitions(crowded) -> None:
    vectors, targets = crowded
    twice, head = np.r_[vectors, vectors[:30]], RefinedRidge(steps=2000)
    shares = np.where(np.arange(240) < 30, 2, 1)[:, None].astype(np.float32)
    start = head.anchor * head.ridge(vectors, targets, shares)
    shared = softmax_refined(vectors, targets, shares, start, head.pull, head.steps)
    repeated = softmax_refined(twice, np.r_[targets, targets[:30]], 1.0, start, head.pull, head.steps)
    np.testing.assert_allclose(shared, repeated, atol=1e-3)
    slope = vectors.T @ (shares * (softmax(vectors @ shared) - targets)) + head.pull * (shared - start)
    assert np.abs(slope).max() < 1e-3


@pytest.fixture(scope="module")
def messages(demo) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of four messages of each of the demo corpus's classes, without their mean."""
    corpus = demo.dataset.corpus
    members = np.concatenate([np.flatnonzero(corpus.labels == label)[:4] for label in range(len(corpus.classes))])
    vectors = mean_vectors(WordLookup(DEFAULT_VECTORS, "en", 500).read([" ".join(corpus.words(i)) for i in members]).texts)
    unit = unit_length(vectors)
    return unit - unit.mean(axis=0), one_hot(corpus.labels[members], len(corpus.classes))


def test_a_few_steps_of_refining_are_enough(messages) -> None:
    few, many = (RefinedRidge(steps=steps).weights(*messages) for steps in (RefinedRidge.steps, 2000))
    assert np.abs(few - many).max() < 0.02 * np.abs(many).max()
