"""One contract for every combination of representation, head and setting: a new component is a line in a table."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args, get_type_hints

import numpy as np
import pytest

from handful.data.corpus import Corpus, Texts
from handful.data.episodes import EpisodeSampler, EpisodeSpec
from handful.embeddings.contextual import Encoder
from handful.errors import DataError, SettingError
from handful.meta.evaluation import evaluate, prepare_batches, score_batch
from handful.models.attention import drop_out
from handful.models.components import HEADS, REPRESENTATIONS
from handful.models.few_shot import FewShotModel
from handful.models.heads import Distance
from handful.models.representations import Batch, Cnn
from handful.models.settings import (
    AttentionSettings,
    FinetuneSettings,
    MamlSettings,
    ModelSettings,
    Signal,
    SignatureSettings,
    VectorSettings,
)
from handful.models.signatures import ESTIMATORS, PORTABLE_SIGNALS, T_SIGNALS
from handful.utils.functional import cross_entropy, one_hot
from handful.utils.settings import settings_from_flat

SIGNALS = "s, t, t-count, t-softmax, t-ridge, frequency, unevenness and reach"
TINY = "contextual:tiny"  # the encoder of the fixture below
SENTENCE_DIM = 5
NEXT_TO_WORDS = VectorSettings("wordllama+sentence:any", sentence_dim=SENTENCE_DIM)
BACKGROUND = AttentionSettings(signals=PORTABLE_SIGNALS, word_frequencies="background")
MODELS = {
    "mean": ModelSettings("mean"),
    "idf": ModelSettings("idf"),
    "sif": ModelSettings("sif"),
    "sif-nearest": ModelSettings("sif", "nearest"),
    "sif-maml": ModelSettings("sif", "maml"),
    "attention": ModelSettings(),
    "attention-ridge": ModelSettings(signature=SignatureSettings(estimator="ridge", measure="entropy")),
    "attention-ridge-max": ModelSettings(signature=SignatureSettings(estimator="ridge", measure="max")),
    "attention-softmax": ModelSettings(signature=SignatureSettings(estimator="softmax", measure="entropy", penalty=0.01)),
    "background": ModelSettings(attention=AttentionSettings(word_frequencies="background")),
    "unit-ridge": ModelSettings(head="unit-ridge", attention=BACKGROUND),
    "refined-ridge": ModelSettings(head="refined-ridge", attention=BACKGROUND),
    "two-estimators": ModelSettings(attention=AttentionSettings(("s", "t-count", "t-ridge"))),
    "without-s": ModelSettings(attention=AttentionSettings(("t",))),
    "without-t": ModelSettings(attention=AttentionSettings(("s",))),
    "without-bilstm": ModelSettings(attention=AttentionSettings(network="mlp")),
    "pooled": ModelSettings(attention=AttentionSettings(network="pooled")),
    "with-embeddings": ModelSettings(attention=AttentionSettings(embeddings=True)),
    "positions": ModelSettings(positions=True),
    "cnn-positions": ModelSettings("cnn", positions=True),
    "cnn-ridge": ModelSettings("cnn"),
    "mean-nearest": ModelSettings("mean", "nearest"),
    "idf-nearest-cosine": ModelSettings("idf", "nearest", distance="cosine"),
    "attention-logistic": ModelSettings(head="logistic"),
    "cnn-prototype": ModelSettings("cnn", "prototype"),
    "mean-prototype": ModelSettings("mean", "prototype", distance="squared"),
    "attention-routing": ModelSettings(head="routing", distance="squared"),
    "routing-parameter-free": ModelSettings(head="routing", parameter_free=True),
    "centroid-parameter-free": ModelSettings(head="centroid", parameter_free=True),
    "mean-maml": ModelSettings("mean", "maml"),
    "cnn-maml": ModelSettings("cnn", "maml"),
    "cnn-positions-maml": ModelSettings("cnn", "maml", positions=True),
    "mean-maml-first-order": ModelSettings("mean", "maml", maml=MamlSettings(first_order=True)),
    "lstm-induction": ModelSettings("lstm", "induction"),
    "cnn-finetune": ModelSettings("cnn", "finetune", finetune=FinetuneSettings(classes=8)),
    "cnn-finetune-perceptron": ModelSettings(
        "cnn", "finetune", finetune=FinetuneSettings(8, (0, 1, 2, 3, 4, 5, 6, 7), "perceptron")
    ),
    "mean-induction": ModelSettings("mean", "induction"),
    "lstm-induction-squared": ModelSettings("lstm", "induction", loss="squared"),
    "attention-centroid": ModelSettings(head="centroid", distance="squared"),
    "cls-maml": ModelSettings(
        "cls", "maml", vectors=VectorSettings(TINY), maml=MamlSettings(first_order=True, hidden=0, inner_rate=0.001)
    ),
    "mean-matching": ModelSettings("mean", "matching"),
    "cnn-relation": ModelSettings("cnn", "relation"),
    "mean-discriminant": ModelSettings("mean", "discriminant"),
    "mean-soft-kmeans": ModelSettings("mean", "soft-kmeans"),
    "cnn-label-words": ModelSettings("cnn", "label-words"),
    "sentence-ridge": ModelSettings("sentence", vectors=VectorSettings("sentence:any")),
    "sentence-maml": ModelSettings("sentence", "maml", vectors=VectorSettings("sentence:any")),
    "attention-sentence": ModelSettings("attention-sentence", vectors=NEXT_TO_WORDS),
    "attention-sentence-refined": ModelSettings("attention-sentence", "refined-ridge", vectors=NEXT_TO_WORDS),
    "attention-sentence-prototype": ModelSettings("attention-sentence", "prototype", vectors=NEXT_TO_WORDS),
    "cls-ridge": ModelSettings("cls", vectors=VectorSettings(TINY)),
    "trained-encoder": ModelSettings(vectors=VectorSettings(TINY, trained=True)),
    "cnn-prototype-trained-encoder": ModelSettings("cnn", "prototype", vectors=VectorSettings(TINY, trained=True)),
    "cnn-maml-trained-encoder": ModelSettings("cnn", "maml", vectors=VectorSettings(TINY, trained=True)),
}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(autouse=True)
def _encoder(tiny_encoder: str, monkeypatch) -> None:
    monkeypatch.setattr(Encoder, "folder", tiny_encoder)


def readable(corpus: Corpus, table: np.ndarray) -> Texts:
    """Texts with a table of vectors, with vectors of whole texts, and with the pieces that an encoder reads."""
    sentences = np.random.default_rng(2).normal(size=(len(corpus), SENTENCE_DIM)).astype(np.float32)
    return replace(corpus.texts(table), pieces=Encoder("tiny").pieces(corpus.vocabulary.words), sentences=sentences)


def test_the_table_covers_every_component() -> None:
    assert {settings.representation for settings in MODELS.values()} == set(REPRESENTATIONS.own)
    assert {settings.head for settings in MODELS.values()} == set(HEADS.own)


def test_settings_take_the_names_that_there_is_something_for() -> None:
    model, signature = get_type_hints(ModelSettings), get_type_hints(SignatureSettings)
    assert set(get_args(signature["estimator"])) == set(ESTIMATORS)
    assert set(T_SIGNALS) == {"t", *(f"t-{name}" for name in ESTIMATORS)} < set(get_args(Signal))
    assert get_args(model["distance"]) == get_args(Distance)


def model_of(name: str) -> FewShotModel:
    model = FewShotModel.initial(MODELS[name], 16, seed=1)
    rng = np.random.default_rng(1)
    learned = {key: rng.normal(0, 0.3, np.shape(value)).astype("f") for key, value in model.fixed.items()}
    return model.with_parameters({**model.parameters, **learned})


def tolerance(name: str) -> float:
    """The vectors of an encoder nearly coincide: ridge regression loses digits on them, how many depends on the processor.

    Prototypes of unit vectors have larger logits, and so fewer digits.
    """
    return 5e-4 if MODELS[name].trains_encoder else 1e-4 if MODELS[name].head in ("soft-kmeans", "label-words") else 1e-5


@every_model
@pytest.mark.parametrize(("way", "shot"), [(2, 1), (3, 2), (4, 5)])
def test_any_way_and_shot(name: str, way: int, shot: int, random_corpus, random_table) -> None:
    sampler = EpisodeSampler(random_corpus, range(8), range(8), EpisodeSpec(way, shot, 4))
    prepared = model_of(name).prepare(readable(random_corpus, random_table), [sampler[0], sampler[1]])
    logits = model_of(name).logits(prepared)
    assert logits.shape == (2, way * 4, way)
    assert np.isfinite(logits).all()


@every_model
def test_unbalanced_support(name: str, random_corpus, random_table, sampler: EpisodeSampler) -> None:
    texts, pool = readable(random_corpus, random_table), sampler.training_pool
    support, labels = np.array([0, 1, 2, 3, 12, 24]), np.array([0, 0, 0, 0, 1, 2])
    task = model_of(name).fit(texts.select(support), labels, pool)
    assert task.score(texts.select(np.arange(5))).shape == (5, 3)
    wide = model_of(name).fit(texts.select(support), labels, pool, classes=4)
    assert wide.score(texts.select(np.arange(5))).shape == (5, 4)


@pytest.mark.parametrize(
    "name", [name for name, settings in MODELS.items() if settings.representation not in ("cnn", "lstm", "cls", "sentence")]
)
def test_weights_of_a_text_sum_to_one(name: str, random_corpus, random_table, sampler: EpisodeSampler) -> None:
    texts, episode = readable(random_corpus, random_table), sampler[0]
    task = model_of(name).fit(texts.select(episode.support), episode.support_labels, episode.pool)
    queries = texts.select(episode.query)
    weights = task.weights(queries)
    assert (weights >= 0).all()
    np.testing.assert_allclose(np.add.reduceat(weights, queries.offsets[:-1]), 1, rtol=1e-5)


@every_model
def test_a_task_and_a_batch_of_episodes_give_the_same_numbers(name, random_corpus, random_table, sampler) -> None:
    """Batching, and the company of other documents, never change a number."""
    texts, model = readable(random_corpus, random_table), model_of(name)
    episodes = [sampler[i] for i in range(4)]
    together = model.logits(model.prepare(texts, episodes))
    for episode, logits in zip(episodes, together, strict=True):
        task = model.fit(texts.select(episode.support), episode.support_labels, episode.pool, training=episode.training)
        alone = [task.score(texts.select(episode.query[[i]]))[0] for i in range(len(episode.query))]
        np.testing.assert_allclose(alone, logits, atol=tolerance(name))


@every_model
def test_torch_and_numpy_agree(name: str, random_corpus, random_table, sampler: EpisodeSampler) -> None:
    texts, model = readable(random_corpus, random_table), model_of(name)
    prepared = model.prepare(texts, [sampler[0], sampler[1]])
    np.testing.assert_allclose(model.logits(prepared), np.asarray(model.to_torch().logits(prepared)), atol=tolerance(name))
    back = model.to_torch().to_numpy()
    assert all(np.array_equal(model.parameters[key], back.parameters[key]) for key in model.parameters)


@every_model
def test_permuting_labels_permutes_logits_and_support_order_does_not_matter(name, random_corpus, random_table, sampler) -> None:
    texts, model, episode = readable(random_corpus, random_table), model_of(name), sampler[0]
    queries = texts.select(episode.query)
    first = model.fit(texts.select(episode.support), episode.support_labels, episode.pool).score(queries)
    order, relabel = np.array([4, 2, 0, 1, 5, 3]), np.array([2, 0, 1])
    support = texts.select(episode.support[order])
    second = model.fit(support, relabel[episode.support_labels[order]], episode.pool).score(queries)
    np.testing.assert_allclose(first, second[:, relabel], atol=1e-4)


@every_model
def test_gradients_are_finite_and_reach_every_parameter(name, random_corpus, random_table, sampler) -> None:
    model = model_of(name).to_torch()
    for parameter in model.trainable.values():
        parameter.requires_grad_()
    prepared = model.prepare(readable(random_corpus, random_table), [sampler[0]])
    loss, _ = model.loss(prepared, np.random.default_rng(0))
    assert loss.requires_grad == bool(model.trainable)
    if loss.requires_grad:
        loss.backward()
    for key, parameter in model.trainable.items():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert parameter.grad.abs().sum() > 0, key


@pytest.mark.parametrize("name", ["attention", "without-bilstm", "with-embeddings"])
def test_the_whole_gradient_agrees_with_finite_differences(name, random_corpus, random_table, sampler) -> None:
    """Along a random direction in the space of all parameters, in single precision."""
    model = model_of(name).to_torch()
    if name == "without-bilstm":
        model.parameters["representation.bias"] += 3  # away from the kink of the ReLU, where there is no derivative
    prepared = model.prepare(readable(random_corpus, random_table), [sampler[0]])
    rng = np.random.default_rng(0)
    start = {key: np.asarray(value) for key, value in model.parameters.items()}
    direction = {key: rng.normal(size=value.shape).astype("f") for key, value in start.items()}

    def loss(step: float):
        moved = model.with_parameters({k: v.new_tensor(start[k] + step * direction[k]) for k, v in model.parameters.items()})
        for parameter in moved.parameters.values():
            parameter.requires_grad_()
        logits = moved.logits(prepared)
        return moved, cross_entropy(logits.double(), logits.new_tensor(prepared.query_targets).double())

    moved, value = loss(0.0)
    value.backward()
    slope = sum(float((parameter.grad.numpy() * direction[key]).sum()) for key, parameter in moved.parameters.items())
    step = 1e-3
    assert slope == pytest.approx(float((loss(step)[1] - loss(-step)[1]).detach()) / (2 * step), rel=0.02, abs=1e-4)


def test_seeds_give_the_same_and_other_models() -> None:
    settings = MODELS["attention"]
    same, other = (FewShotModel.initial(settings, 16, seed).parameters for seed in (1, 2))
    first = model_of("attention").parameters
    assert all(np.array_equal(first[key], same[key]) for key in first)
    assert not np.array_equal(first["representation.query"], other["representation.query"])


def test_evaluation_is_the_same_for_any_number_of_workers(random_corpus, random_table, sampler, monkeypatch) -> None:
    texts, model = readable(random_corpus, random_table), model_of("attention")
    alone = evaluate(model, texts, sampler, 90, workers=1, quiet=True)
    assert np.array_equal(alone, evaluate(model, texts, sampler, 90, workers=2, quiet=True))
    assert len(alone) == 90
    monkeypatch.setattr("handful.models.few_shot.AT_ONCE", 1)
    one_by_one = [score_batch(model, b)[0][0] for b in prepare_batches(model, texts, sampler, range(90))]
    np.testing.assert_allclose(alone, one_by_one)


def test_episodes_with_different_numbers_of_queries_are_all_scored(random_table, random_corpus) -> None:
    kept = np.r_[0:12, 12:18, 24:36]  # the second class has half the documents
    texts = readable(random_corpus, random_table)
    part = texts.select(kept)
    small = replace(
        random_corpus, ids=part.ids, offsets=part.offsets, labels=random_corpus.labels[kept], positions=part.positions
    )
    sampler = EpisodeSampler(small, [0, 1, 2], [0], EpisodeSpec(2, 1, 10))
    assert len(evaluate(model_of("mean"), small.texts(random_table), sampler, 30, quiet=True)) == 30


def test_texts_without_words_get_uniform_logits(random_corpus, random_table, sampler) -> None:
    nothing = random_corpus.keep_words(np.zeros(len(random_corpus.vocabulary), bool)).texts(random_table)
    texts, episode = readable(random_corpus, random_table), sampler[0]
    for name in ("mean", "idf", "attention", "without-bilstm"):
        task = model_of(name).fit(texts.select(episode.support), episode.support_labels, episode.pool)
        assert not task.score(nothing.select(np.arange(3))).any()


def test_dropout_keeps_the_mean() -> None:
    mask = drop_out(np.ones((200, 50), np.float32), 0.1, np.random.default_rng(0))
    assert set(np.unique(mask)) == {np.float32(0), np.float32(1 / 0.9)}
    assert mask.mean() == pytest.approx(1, abs=0.02)


WHOLE_TEXTS = "Vectors of whole texts go with two representations and are not trained: .*"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"representation": "x"}, "--representation must be mean, .*, sentence or attention-sentence, not 'x'."),
        ({"head": "x"}, "--head must be ridge, .* or label-words, not 'x'."),
        ({"distance": "x"}, "--distance must be euclidean, squared or cosine, not 'x'."),
        ({"network": "x"}, "--network must be bilstm, mlp or pooled, not 'x'."),
        (
            {"signals": ""},
            f"--signals must be some of {SIGNALS}, not none.",
        ),
        (
            {"signals": "s,q"},
            f"--signals must be some of {SIGNALS}, not s, q.",
        ),
        ({"max_words": 0}, "--max-words must be at least 1, not 0."),
        ({"word_frequencies": "x"}, "--word-frequencies must be source or background, not 'x'."),
        ({"length": float("inf")}, "--length must be at least 0, not inf."),
        ({"length": float("nan")}, "--length must be at least 0, not nan."),
        ({"measure": "max"}, "--measure max works only with --estimator ridge, not count: choose entropy."),
        ({"representation": "sentence"}, WHOLE_TEXTS),
        ({"representation": "sentence", "vectors": "blend+sentence:bge-small"}, WHOLE_TEXTS),
        ({"representation": "attention-sentence"}, WHOLE_TEXTS),
        ({"representation": "attention-sentence", "vectors": "sentence:bge-small"}, WHOLE_TEXTS),
        ({"representation": "attention-sentence", "vectors": "blend+sentence:x", "train_vectors": True}, WHOLE_TEXTS),
        ({"vectors": "sentence:bge-small"}, WHOLE_TEXTS),
        ({"vectors": "blend+sentence:bge-small"}, WHOLE_TEXTS),
        ({"pool": "source"}, "There is no option pool: see handful train --help."),
    ],
)
def test_wrong_settings_are_refused_with_one_sentence(wrong: dict, sentence: str) -> None:
    with pytest.raises(SettingError, match=f"^{sentence}$"):
        settings_from_flat(ModelSettings, wrong)


@pytest.mark.parametrize("windows", [(2, 4), (1,), (3, 4, 5)])
def test_a_cnn_of_any_windows_is_the_largest_product_of_filter_and_window(windows, random_corpus, random_table) -> None:
    cnn, texts = Cnn(windows, maps=7), random_corpus.texts(random_table).select(np.arange(6))
    parameters = cnn.initial(np.random.default_rng(0), 16)
    batch = Batch(texts, np.empty((len(texts.ids), 0), np.float32))
    vectors, words = cnn(parameters, batch), random_table[texts.ids[: texts.offsets[1]]]  # (words, 16), of the first text
    padded = np.concatenate([words, np.zeros((max(windows), 16))])
    by_hand = [
        np.max([np.einsum("wd,wdm->m", padded[i : i + w], parameters[f"filters{w}"]) for i in range(len(words))], axis=0)
        + parameters[f"bias{w}"]
        for w in windows
    ]
    assert vectors.shape == (6, cnn.width(16))
    np.testing.assert_allclose(vectors[0], np.maximum(np.concatenate(by_hand), 0), atol=1e-6)
    own = {name: np.stack([value] * 2) for name, value in parameters.items()}
    np.testing.assert_allclose(cnn(own, batch), vectors, atol=1e-6)  # two tasks of three texts, each with parameters of its own


def test_positions_matter_and_need_entities(random_corpus, random_table, sampler) -> None:
    texts, episode = readable(random_corpus, random_table), sampler[0]
    moved = replace(texts, positions=texts.positions[::-1].copy())
    for name in ("positions", "cnn-positions"):
        model = model_of(name)
        here, there = (model.logits(model.prepare(t, [episode])) for t in (texts, moved))
        assert not np.allclose(here, there)
        with pytest.raises(DataError, match="need texts with head and tail"):
            model.logits(model.prepare(replace(texts, positions=texts.positions[:, :0]), [episode]))


def test_one_hot() -> None:
    assert one_hot(np.array([1, 0]), 2).tolist() == [[0, 1], [1, 0]]
