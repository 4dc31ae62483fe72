"""Open episodes: class names, unlabelled texts, unbalanced queries, queries of no class; and the heads that use them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score

from handful.analysis import InspectedRun, NotApplicableError, attention, robustness
from handful.cli import main
from handful.data.corpus import Texts
from handful.data.datasets import load_corpus
from handful.data.episodes import Episode, EpisodeSampler, EpisodeSpec
from handful.data.open_episodes import OpenSampler
from handful.errors import DataError, ModelError, SettingError
from handful.meta.evaluation import area_under_curve, evaluate, measure_episodes
from handful.meta.experiment import evaluate_run, load_run, train_run
from handful.meta.inputs import ExperimentData, load_experiment_data
from handful.meta.presets import ABOUT, load_preset
from handful.meta.settings import RunSettings, settings_from_options
from handful.models.components import HEADS
from handful.models.examples import LabelledDocuments
from handful.models.few_shot import FewShotModel
from handful.models.learning import learn
from handful.models.metric_heads import Discriminant, Matching, OpenHead, SoftKMeans
from handful.models.representations import SENTENCE_SHARE
from handful.models.sentence_encoder import PHRASINGS, SENTENCE_HEAD, EncodedTexts, SentenceEncoder
from handful.models.settings import ModelSettings
from handful.utils.functional import one_hot, unit_length, weighted_bag

PLAIN = EpisodeSpec(3, 2, 4)
NAMED = np.array([96, 97, -1, 98, 99, 100, 101, 102])  # the third class has no name


def pair(random_corpus, **more: object) -> tuple[EpisodeSampler, OpenSampler]:
    """The same episodes, plain and open."""
    arguments = random_corpus, range(6), range(8)
    return EpisodeSampler(*arguments, PLAIN, 3), OpenSampler(NAMED, *arguments, replace(PLAIN, **more), 3)


def test_only_what_is_asked_for_makes_an_episode_open() -> None:
    assert not EpisodeSpec(3, 2, 4).is_open
    assert all(EpisodeSpec(**{name: 1}).is_open for name in ("class_names", "unlabelled", "transductive", "unbalanced"))
    assert EpisodeSpec(none_share=0.5, unbalanced=True, class_names=True).for_training == EpisodeSpec(class_names=True)


def test_names_come_before_the_examples(random_corpus) -> None:
    plain, named = pair(random_corpus, class_names=True)
    for index in range(10):
        before, after = plain[index], named[index]
        assert after.names == (before.classes != 2).sum()
        assert (after.support[: after.names] == NAMED[before.classes[before.classes != 2]]).all()
        assert (NAMED[after.classes[after.support_labels[: after.names]]] == after.support[: after.names]).all()
        assert (after.support[after.names :] == before.support).all()
        assert (after.query == before.query).all()


def test_unlabelled_texts_are_of_the_episodes_classes_and_of_nothing_else(random_corpus) -> None:
    plain, more = pair(random_corpus, unlabelled=3)
    for index in range(10):
        episode = more[index]
        assert (episode.query == plain[index].query).all()
        assert len(episode.unlabelled) == 9
        assert not set(episode.unlabelled) & {*episode.support, *episode.query}
        assert set(random_corpus.labels[episode.unlabelled]) == set(episode.classes)
    assert len(pair(random_corpus, unlabelled=100)[1][0].unlabelled) == 3 * (12 - 2 - 4)  # all that there are


def test_queries_of_no_class_come_last_and_are_learned_from_too(random_corpus) -> None:
    plain, strange = pair(random_corpus, none_share=0.4, transductive=True)
    for index in range(10):
        episode = strange[index]
        known = len(episode.query_labels)
        assert (episode.query[:known] == plain[index].query).all()
        assert len(episode.query) == known + 8  # 8 of 20 are 40 %
        assert not set(random_corpus.labels[episode.query[known:]]) & set(episode.classes)
        assert (episode.unlabelled == episode.query).all()


def test_unbalanced_queries_are_some_of_the_balanced_ones(random_corpus) -> None:
    plain, uneven = pair(random_corpus, unbalanced=True)
    counts = np.array([np.bincount(uneven[index].query_labels, minlength=3) for index in range(200)])
    assert all(set(uneven[index].query) <= set(plain[index].query) for index in range(10))
    assert (counts.max(axis=1) == 4).all()
    assert counts.min() == 0
    assert 6 < counts.sum(axis=1).mean() < 10


def test_impossible_episodes_are_refused(random_corpus) -> None:
    with pytest.raises(DataError, match=r"^All 6 classes are in every episode, .*lower the way"):
        OpenSampler(NAMED, random_corpus, range(6), range(8), EpisodeSpec(6, 1, 2, none_share=0.5), 3)
    for wrong in ({"none_share": 1.0}, {"none_share": -0.1}, {"unlabelled": -1}):
        with pytest.raises(SettingError, match="--none-share"):
            EpisodeSpec(**wrong)


# Measures


def test_the_area_under_the_curve_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    higher, lower = rng.integers(0, 8, 60), rng.integers(0, 6, 40)  # with many ties
    truth = [1] * 60 + [0] * 40
    assert area_under_curve(higher, lower) == pytest.approx(roc_auc_score(truth, np.concatenate([higher, lower])))


def test_queries_of_no_class_change_the_area_and_not_the_accuracy(random_corpus, random_table) -> None:
    plain, strange = pair(random_corpus, none_share=0.4)
    texts, model = random_corpus.texts(random_table), FewShotModel.initial(ModelSettings("mean", "nearest"), 16)
    measured = measure_episodes(model, texts, strange, 50, quiet=True)
    assert (measured[:, 0] == evaluate(model, texts, plain, 50, quiet=True)).all()
    assert 0.3 < measured[:, 1].mean() < 0.8  # random texts: a stranger looks like any other
    assert np.isnan(measure_episodes(model, texts, plain, 3, quiet=True)[:, 1]).all()


# Heads


def clusters(spread: float = 0.2, each: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Vectors around three orthogonal directions, and their classes."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), each)
    return (np.eye(8)[labels] + spread * rng.normal(size=(len(labels), 8))).astype(np.float32), labels


def test_matching_is_attention_over_the_examples() -> None:
    vectors, labels = clusters()
    support, targets, queries = vectors[::4], one_hot(labels[::4], 3), vectors[1::4]
    cosines = unit_length(queries) @ unit_length(support).T
    attention = np.exp(10 * cosines) / np.exp(10 * cosines).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(Matching().fit({}, support, targets)(queries)), attention @ targets, rtol=1e-4)


def test_the_discriminant_agrees_with_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    vectors, labels = clusters(each=40)
    vectors = (vectors @ rng.normal(size=(8, 8))).astype(np.float32)  # directions of unequal variance
    within = vectors - np.repeat([vectors[labels == label].mean(axis=0) for label in range(3)], 40, axis=0)
    apart = vectors - vectors.mean(axis=0)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.3, priors=[1 / 3] * 3).fit(vectors, labels)
    added = 0.3 / 0.7 * (within**2).sum() / 8  # what they add to each variance, with 0.7 of the covariance
    ours = Discriminant(added / (apart**2).sum()).fit({}, vectors, one_hot(labels, 3))(vectors)
    expected = theirs.decision_function(vectors)
    gaps = ours / 0.7 - expected  # the same for every class
    np.testing.assert_allclose(gaps - gaps.mean(axis=1, keepdims=True), 0, atol=1e-3)


def test_the_discriminant_of_single_examples_is_the_nearest() -> None:
    vectors, labels = clusters(spread=0.6)
    chosen = np.array([0, 12, 24])
    scores = Discriminant().fit({}, vectors[chosen], one_hot(labels[chosen], 3))(vectors)
    apart = np.linalg.norm(vectors[:, None] - vectors[chosen], axis=2)
    assert (scores.argmax(axis=1) == apart.argmin(axis=1)).all()


def test_soft_k_means_finds_the_classes_among_texts_without_labels() -> None:
    vectors, labels = clusters(spread=0.15)
    examples = np.array(
        [[1.0, 0.4, 0.4, 0, 0, 0, 0, 1], [0.4, 1, 0.4, 0, 0, 0, 1, 0], [0.4, 0.4, 1, 0, 0, 1, 0, 0]], np.float32
    )
    nothing, targets = vectors[:0], np.eye(3, dtype=np.float32)
    alone = SoftKMeans().fit({}, examples, targets)(vectors)
    assert (alone == SoftKMeans().fit_open({}, examples, targets, 0, nothing)(vectors)).all()
    refined = SoftKMeans().fit_open({}, examples, targets, 0, vectors)(vectors)

    def margin(scores: np.ndarray) -> float:
        others = np.where(one_hot(labels, 3) > 0, -np.inf, scores).max(axis=1)
        return float((scores[np.arange(len(labels)), labels] - others).mean())

    assert margin(refined) > 2 * margin(alone)


def test_which_heads_tell_names_from_examples() -> None:
    assert {name for name in HEADS.names() if issubclass(HEADS.load(name), OpenHead)} == {"soft-kmeans", "label-words"}


def logits(model: FewShotModel, texts: Texts, episode: Episode) -> np.ndarray:
    return np.asarray(model.logits(model.prepare(texts, [episode])))[0]


@pytest.mark.parametrize("head", [name for name in HEADS.names() if name != "finetune"])
def test_every_head_takes_names_and_only_some_take_texts_without_labels(head: str, random_corpus, random_table) -> None:
    extended = random_corpus.with_documents([["w1", "w2"], ["w3"], *[["w4"]] * 5])
    texts, model = extended.texts(random_table), FewShotModel.initial(ModelSettings("mean", head), 16)
    plain, named = pair(random_corpus, class_names=True)
    assert len(evaluate(model, texts, named, 3, quiet=True)) == 3
    changes = [np.abs(logits(model, texts, named[i]) - logits(model, texts, plain[i])).max() for i in range(8)]
    assert max(changes) > 1e-4  # random names may be contradicted by the examples, and then count for nothing
    transductive = pair(random_corpus, transductive=True)[1]
    if head in ("soft-kmeans", "label-words", "unit-ridge", "refined-ridge"):
        assert len(evaluate(model, texts, transductive, 3, quiet=True)) == 3
    else:
        with pytest.raises(SettingError, match=f"^The head {head} cannot learn from texts without labels: .*--transductive"):
            evaluate(model, texts, transductive, 3, quiet=True)


@pytest.mark.parametrize("head", ["soft-kmeans", "label-words", "refined-ridge"])
def test_open_episodes_together_and_alone_and_in_torch(head: str, random_corpus, random_table) -> None:
    texts = random_corpus.with_documents([["w1"]] * 7).texts(random_table)
    sampler = pair(random_corpus, class_names=True, transductive=True)[1]
    model = FewShotModel.initial(ModelSettings("mean", head), 16)
    episodes = [episode for index in range(20) if (episode := sampler[index]).names == 3][:4]
    together = model.logits(model.prepare(texts, episodes))
    alone = [model.logits(model.prepare(texts, [episode]))[0] for episode in episodes]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    np.testing.assert_allclose(together, np.asarray(model.to_torch().logits(model.prepare(texts, episodes))), atol=1e-4)


def test_names_and_pools_are_used_as_in_the_classifier(random_corpus, random_table) -> None:
    texts = random_corpus.with_documents([["w1", "w5"], ["w2", "w6"], ["w3"], *[["w4"]] * 4]).texts(random_table)
    sampler = pair(random_corpus, class_names=True, unlabelled=4)[1]
    model = FewShotModel.initial(ModelSettings("mean", "refined-ridge"), 16)
    episode = sampler[0]
    prepared = model.prepare(texts, [episode])
    vectors, examples = model.represent(prepared.batch), len(episode.support)
    first = np.arange(examples) < episode.names
    targets = one_hot(episode.support_labels, 3)
    labelled = LabelledDocuments(EncodedTexts(vectors[:examples]), targets, np.ones(examples, np.float32), True, first)
    encoder = SentenceEncoder("vectors", model=None, named=False)  # type: ignore[arg-type]
    learned = learn(encoder, model.ready_head, labelled, EncodedTexts(vectors[-len(episode.unlabelled) :]))
    queries = vectors[examples : examples + len(episode.query)]
    np.testing.assert_allclose(model.logits(prepared)[0], learned.scorer(queries), atol=1e-5)


# Sentence vectors in runs


def letters(texts: list[str]) -> np.ndarray:
    """A sentence encoder: how often each letter occurs."""
    return np.array([[text.count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts], np.float32)


def sentence_settings(**more: object) -> RunSettings:
    return settings_from_options({"representation": "sentence", "vectors": "sentence:letters", "way": 3, "queries": 5, **more})


@pytest.fixture(scope="module")
def lettered() -> ExperimentData:
    return load_experiment_data(sentence_settings(class_names=True), encode=letters)


def phrased(label: str) -> np.ndarray:
    """The vector of a label's words, as the classifier reads them."""
    words = label.replace("_", " ").lower()
    return unit_length(letters([phrasing.format(words) for phrasing in PHRASINGS])).mean(axis=0)


def test_a_text_is_the_vector_of_its_words_in_one_line(lettered: ExperimentData) -> None:
    model = FewShotModel.initial(sentence_settings().model, 26)
    chosen = np.array([5, 0, 17])
    batch = model.prepare(lettered.texts, [replace(lettered.sampler("test", PLAIN, 0)[0], support=chosen[:0], query=chosen)])
    expected = letters([" ".join(lettered.corpus.words(document)) for document in chosen])
    assert (model.represent(batch.batch) == expected).all()


def test_the_names_of_classes_are_documents_after_the_texts(lettered: ExperimentData) -> None:
    assert len(lettered.corpus) == len(load_corpus("demo"))
    for name, document in zip(lettered.corpus.classes, lettered.names, strict=True):
        assert document >= len(lettered.corpus)
        row = lettered.texts.rows[lettered.texts.offsets[document]]
        np.testing.assert_allclose(lettered.texts.table[row], phrased(name), atol=1e-6)


@pytest.mark.parametrize("head", ["nearest", "matching", "discriminant", "soft-kmeans", "label-words"])
def test_a_method_without_parameters_is_tested_without_training(head: str, lettered: ExperimentData, tmp_path: Path) -> None:
    settings = sentence_settings(head=head, class_names=True)
    assert train_run(settings, tmp_path / "run", lettered, quiet=True) == []
    assert evaluate_run(tmp_path / "run", episodes=20, inputs=lettered, quiet=True).score.mean > 0.34


def test_no_epochs_keep_the_initial_parameters(lettered: ExperimentData, tmp_path: Path) -> None:
    settings = sentence_settings(head="unit-ridge", epochs=0)
    assert train_run(settings, tmp_path / "run", lettered, quiet=True) == []
    assert evaluate_run(tmp_path / "run", episodes=20, inputs=lettered, quiet=True).score.mean > 0.34


def test_names_that_were_not_loaded_are_missed(demo: ExperimentData, demo_run: Path) -> None:
    with pytest.raises(DataError, match=r"^No class has a name that reads as words: remove --class-names"):
        evaluate_run(demo_run, spec=EpisodeSpec(class_names=True), episodes=1, inputs=demo, quiet=True)


def test_another_encoder_is_refused(lettered: ExperimentData, tmp_path: Path) -> None:
    train_run(sentence_settings(head="nearest"), tmp_path / "run", lettered, quiet=True)
    other = load_experiment_data(sentence_settings(), encode=swapped_letters)
    with pytest.raises(ModelError, match="other than the current ones"):
        evaluate_run(tmp_path / "run", episodes=2, inputs=other, quiet=True)


# Sentence vectors next to words


def joined_settings(**more: object) -> RunSettings:
    quick = {"way": 3, "queries": 5, "epochs": 1, "episodes": 4, "validation_episodes": 2}
    preset = {name: value for name, value in load_preset("our-sentence").items() if name != ABOUT}
    return settings_from_options({**preset, "vectors": "blend+sentence:letters", **quick, **more})


@pytest.fixture(scope="module")
def joined() -> ExperimentData:
    return load_experiment_data(joined_settings(class_names=True), encode=letters)


@pytest.fixture(scope="module")
def joined_run(joined: ExperimentData, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "joined"
    assert len(train_run(joined_settings(), folder, joined, quiet=True)) == 1
    return folder


def test_a_text_is_its_weighted_words_next_to_its_sentence_vector(joined: ExperimentData, joined_run: Path) -> None:
    model, episode = load_run(joined_run).model, joined.sampler("test", replace(PLAIN, class_names=True), 0)[0]
    batch = model.prepare(joined.texts, [episode]).batch
    vectors, weights, dim = model.represent(batch), model.weights(batch), joined.texts.table.shape[1]
    bags = weighted_bag(batch.texts.table, batch.texts.rows, weights, batch.texts.offsets)
    np.testing.assert_allclose(vectors[:, :dim], unit_length(bags) * (1 - SENTENCE_SHARE) ** 0.5, atol=1e-6)
    read = [" ".join(joined.corpus.words(document)) for document in [*episode.support[episode.names :], *episode.query]]
    named = [phrased(joined.corpus.classes[number]) for number in episode.classes]
    expected = unit_length(np.concatenate([named, letters(read)])) * SENTENCE_SHARE**0.5
    np.testing.assert_allclose(vectors[:, dim:], expected, atol=1e-6)


@pytest.mark.parametrize("preset", ["sentence-classifier", "our-sentence"])
def test_the_preset_has_the_head_of_the_classifier(preset: str) -> None:
    options = {name: value for name, value in load_preset(preset).items() if name != ABOUT}
    assert FewShotModel.initial(settings_from_options(options).model, 26).head == SENTENCE_HEAD


def test_a_run_with_sentence_vectors_next_to_words_is_read_again(joined: ExperimentData, joined_run: Path) -> None:
    for names in (False, True):
        options = {"episodes": 20, "spec": replace(joined_settings().episode, class_names=names), "quiet": True}
        first = evaluate_run(joined_run, inputs=joined, **options)
        again = load_experiment_data(joined_settings(class_names=True), encode=letters)
        assert (first.accuracies == evaluate_run(joined_run, inputs=again, **options).accuracies).all()
        assert first.score.mean > 0.34


@pytest.mark.parametrize("changed", ["encoder", "words"])
def test_other_vectors_than_those_of_words_and_texts_are_refused(joined_run: Path, changed: str) -> None:
    encode = swapped_letters if changed == "encoder" else letters
    words = "wordllama" if changed == "words" else "blend"
    other = load_experiment_data(joined_settings(vectors=f"{words}+sentence:letters"), encode=encode)
    with pytest.raises(ModelError, match="other than the current ones"):
        evaluate_run(joined_run, episodes=2, inputs=other, quiet=True)
    with pytest.raises(ModelError, match="other than the current ones"):
        evaluate_run(joined_run, episodes=2, inputs=replace(other, mark_sentences=None), quiet=True)


def test_texts_without_their_vectors_are_refused(joined: ExperimentData, joined_run: Path) -> None:
    bare, episode = replace(joined.texts, sentences=None), joined.sampler("test", PLAIN, 0)[0]
    model = load_run(joined_run).model
    with pytest.raises(DataError, match="attention-sentence needs texts with --vectors TABLES"):
        model.logits(model.prepare(bare, [episode]))


def test_analyses_show_the_attention_and_refuse_to_change_words(joined: ExperimentData, joined_run: Path) -> None:
    inspected = InspectedRun(joined_run, quick=True, quiet=True)
    inspected.__dict__["inputs"] = joined
    (figure,) = attention.figures(inspected)
    assert "also depends on a vector of the whole text" in figure.caption
    asked = replace(inspected, against=(inspected,), classes=(joined.corpus.classes[-1],))
    asked.__dict__["inputs"] = joined
    with pytest.raises(
        NotApplicableError, match=r"vectors of whole texts \(blend\+sentence:letters\), so words cannot be left out"
    ):
        attention.importance(asked)
    with pytest.raises(NotApplicableError, match="so words cannot be exchanged"):
        robustness.figures(inspected)


def swapped_letters(texts: list[str]) -> np.ndarray:
    """Another sentence encoder."""
    return letters([text.translate(SWAPPED) for text in texts])


SWAPPED = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")


def handful(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_evaluate_reports_what_the_episodes_had(demo_run: Path) -> None:
    options = ("--episodes", 4, "--class-names", "--none-share", 0.5, "--way", 3, "--quiet")
    spoken = handful("evaluate", demo_run, *options)
    assert "with class names, and 50% of no class." in spoken
    assert "Area under the ROC curve" in spoken
    report = json.loads(handful("evaluate", demo_run, *options, "--json"))
    assert report["class_names"] is True
    assert 0 <= report["auroc"] <= 1
    assert "transductive" not in report


def test_bge_small_in_a_run_reads_every_text_once(bge_small: Path, tmp_path: Path, monkeypatch) -> None:
    """Real headlines of the demo corpus: class names help, and a second run encodes nothing."""
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache" / "encoders").mkdir(parents=True)
    (tmp_path / "cache" / "encoders" / "bge-small").symlink_to(bge_small)
    corpus = load_corpus("demo")
    documents = [i for label in range(9) for i in np.flatnonzero(corpus.labels == label)[:8]]
    rows = [{"text": corpus.words(i), "label": corpus.classes[corpus.labels[i]]} for i in documents]
    (tmp_path / "few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parts = {part: list(corpus.classes[3 * i : 3 * i + 3]) for i, part in enumerate(("train", "val", "test"))}
    (tmp_path / "split.json").write_text(json.dumps(parts))
    shared = ("--data", tmp_path / "few.jsonl", "--split", tmp_path / "split.json", "--way", 3, "--queries", 5)
    run = tmp_path / "run"
    handful("train", *shared, "--preset", "sentence-label-words", "--out", run, "--quiet")
    monkeypatch.setattr("handful.embeddings.onnx_encoder.OnnxEncoder._pass", None)  # nothing is left to encode
    options = ("--episodes", 100, "--json", "--quiet")
    named, bare = (
        json.loads(handful("evaluate", run, *options, choice))["accuracy"] for choice in ("--class-names", "--no-class-names")
    )
    assert named > bare > 0.5
    quick = ("--epochs", 1, "--episodes", 10, "--validation-episodes", 10)
    handful("train", *shared, *quick, "--preset", "our-sentence", "--out", tmp_path / "both", "--quiet")
    assert json.loads(handful("evaluate", tmp_path / "both", *options))["accuracy"] > 0.5
