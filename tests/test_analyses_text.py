"""Attention, words, mismatch and overview: numbers that can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import needs_real_data

from handful.analysis import InspectedRun, NotApplicableError, attention, mismatch, overview, words
from handful.analysis.attention import EpisodeReading, attention_table
from handful.analysis.shaded_texts import Shaded, ShadedTable, flow
from handful.data.corpus import make_corpus
from handful.data.datasets import load_dataset
from handful.data.episodes import EpisodeSpec
from handful.data.splits import ClassSplit
from handful.errors import SettingError
from handful.models.few_shot import FewShotModel
from handful.models.signatures import local_mutual_information
from handful.utils.functional import softmax


@pytest.fixture(scope="module")
def inspected(demo_run, demo) -> InspectedRun:
    made = InspectedRun(demo_run)
    made.__dict__["inputs"] = demo  # loaded once for all tests
    return made


@pytest.fixture(scope="module")
def names(inspected) -> list[str]:
    return [inspected.corpus.classes[number] for number in inspected.inputs.dataset.split.test]


# Words and classes


def test_local_mutual_information_by_hand():
    counts = np.array([[3, 1, 0], [1, 2, 1]])  # of 8 words
    found = local_mutual_information(counts)
    assert found[0, 0] == pytest.approx(3 / 8 * np.log((3 / 8) / (4 / 8 * 4 / 8)))
    assert found[1, 0] == pytest.approx(1 / 8 * np.log((1 / 8) / (4 / 8 * 4 / 8)))
    assert found[1, 2] == pytest.approx(1 / 8 * np.log(2))
    assert found[0, 2] == 0


def test_words_of_classes():
    texts = ["the ball and the goal goal", "the vote and the bill 's", "the goal of the vote x"]
    corpus = make_corpus(texts, ["sport", "politics", "mixed"])
    (sport, politics, mixed), scores = words.class_words(corpus)
    assert sport == ["goal", "ball"]  # neither function words, endings nor single letters
    assert set(politics) == {"vote", "bill"}
    assert "x" not in mixed
    figure = words.word_map("data", corpus, [sport, politics, mixed], scores)
    ball = next(row for row in figure.rows if row["word"] == "ball" and row["class"] == "sport")
    assert ball["lmi (millionths)"] == pytest.approx(1e6 / 18 * np.log((1 / 18) / (6 / 18 * 1 / 18)))
    assert next(row for row in figure.rows if row["word"] == "ball" and row["class"] == "politics")["lmi (millionths)"] == 0


def test_words_of_the_paper_stand_beside_its_classes():
    listed = words.paper_words()
    assert len(listed) == 20
    assert {len(several) for several in listed.values()} == {words.MOST}
    figure = words._listing("20newsgroups", list(listed), list(listed.values()))
    assert "10.0 of ten on average" in figure.caption
    assert all(row["word"] == row["paper"] for row in figure.rows)
    other = words._listing("data", ["a<b"], [["x"]])
    assert "paper" not in other.rows[0]
    assert "a&lt;b" in other.html


# Mismatch


def test_mismatch_by_hand():
    corpus = make_corpus(["a b c d", "b c e", "d f g h i"], ["train", "val", "test"])
    found = mismatch.lexical_mismatch(corpus, ClassSplit((0,), (1,), (2,)))
    assert found == mismatch.Mismatch(train_only=3, train=4, test_only=4, test=5)
    assert found.shares == (3 / 4, 4 / 5)


def test_mismatch_of_the_paper():
    shares = {name: mismatch.Mismatch(*numbers).shares for name, numbers in mismatch.PAPER_MISMATCH.items()}
    assert shares["amazon"] == pytest.approx((0.528, 0.609), abs=5e-4)
    assert shares["reuters"] == pytest.approx((0.566, 0.473), abs=5e-4)


@needs_real_data
def test_mismatch_of_reuters_is_the_papers():
    dataset = load_dataset("reuters")
    found = mismatch.lexical_mismatch(dataset.corpus, dataset.split)
    assert found.shares == pytest.approx(mismatch.Mismatch(*mismatch.PAPER_MISMATCH["reuters"]).shares, abs=0.01)


@needs_real_data
@pytest.mark.parametrize(("data", "split"), [("reuters", "granularity"), ("huffpost", "fifty-seen")])
def test_splits_that_ship_by_name(data, split):
    plain, other = load_dataset(data), load_dataset(data, split)
    sizes = [tuple(len(getattr(d.split, part)) for part in ("train", "val", "test")) for d in (plain, other)]
    assert sizes[0] == sizes[1]
    trained = {other.corpus.classes[number] for number in other.split.train}
    if split == "granularity":
        assert not trained & {*attention.FINE, *attention.COARSE}
    else:
        assert attention.MIDDLE_AGED in trained


# Episodes of named classes


def test_episode_of_named_classes(inspected, names):
    spec = EpisodeSpec(3, 2, 4)
    first, second = inspected.episode_of(names[:3], spec), inspected.episode_of([names[4], names[0]], spec)
    assert first.support[:2].tolist() == second.support[2:].tolist()  # the same examples in any company
    document = int(first.support[0])
    moved = inspected.episode_of(names[:3], spec, document)
    assert moved.query[0] == document
    assert document not in moved.support
    assert moved.support[2:].tolist() == first.support[2:].tolist()
    labels = inspected.corpus.labels
    assert (labels[moved.query] == moved.classes[moved.query_labels]).all()


def test_a_class_the_run_was_trained_on_leaves_the_pool(inspected, names):
    trained = [inspected.corpus.classes[number] for number in inspected.inputs.dataset.split.train[:2]]
    episode = inspected.episode_of(trained, EpisodeSpec(2, 1, 2))
    counts = inspected.corpus.word_counts()
    gone = counts[inspected.class_numbers(trained)].sum(axis=0)
    assert (episode.pool.counts == inspected.pool.counts - gone).all()
    assert (inspected.episode_of(names[:2], EpisodeSpec(2, 1, 2)).pool.counts == inspected.pool.counts).all()


def test_wrong_wishes_are_named(inspected, names):
    with pytest.raises(SettingError, match="There is no class wrong"):
        inspected.episode_of(["wrong"], EpisodeSpec())
    with pytest.raises(SettingError, match="There is no document -1"):
        inspected.episode_of(names[:2], EpisodeSpec(), -1)
    other = int(np.flatnonzero(inspected.corpus.labels == inspected.class_numbers(names[2:3])[0])[0])
    with pytest.raises(SettingError, match="which the episode lacks"):
        inspected.episode_of(names[:2], EpisodeSpec(), other)


# Attention


def test_shades_are_the_models_numbers(inspected, names):
    asked = replace(inspected, classes=tuple(names[:3]))
    asked.__dict__["inputs"] = inspected.inputs
    table = attention_table(asked, 6)
    assert list(table.columns) == [attention.S, attention.T, attention.OURS]
    episode = asked.episode_of(names[:3], asked.settings.episode)
    document = int(episode.query[0])
    s, t, alpha = table.rows[0][1]
    ids = inspected.corpus.ids[inspected.corpus.offsets[document] : inspected.corpus.offsets[document + 1]]
    epsilon = inspected.settings.model.signature.epsilon
    assert s.weights == pytest.approx(epsilon / (epsilon + inspected.pool.counts[ids] / inspected.pool.total), rel=1e-5)
    assert t.weights.min() >= 1 / np.log(3) - 1e-4  # the least, for a word that falls evenly
    assert alpha.weights.sum() == pytest.approx(1, abs=1e-5)
    assert alpha.weights == pytest.approx(
        inspected.task(episode).weights(inspected.texts.select(np.array([document]))), rel=1e-5
    )
    rows = [row for row in table.numbers() if row["shown by"] == attention.OURS and row["class"] == table.rows[0][0]]
    assert [row["weight"] for row in rows[: len(alpha.words)]] == pytest.approx(alpha.weights.tolist())


def test_a_word_without_a_vector_weighs_nothing(inspected, names):
    document = int(inspected.episode_of(names[:2], EpisodeSpec(2, 1, 1)).query[0])
    missing = inspected.corpus.words(document)[1]
    known = np.array([word != missing for word in inspected.corpus.vocabulary.words])
    fewer = replace(inspected, seed=1)
    corpus = inspected.corpus.keep_words(known)
    fewer.__dict__["inputs"] = replace(inspected.inputs, corpus=corpus, texts=corpus.texts(inspected.texts.table))
    shaded = EpisodeReading(fewer, fewer.episode_of(names[:2], EpisodeSpec(2, 1, 1))).shaded(
        document, np.ones(len(corpus.words(document)))
    )
    assert list(shaded.words) == inspected.corpus.words(document)
    assert shaded.weights.tolist() == [float(word != missing) for word in shaded.words]


def test_importance_is_what_leaving_out_costs(inspected, names):
    episode = inspected.episode_of(names[:3], EpisodeSpec(3, 2, 2))
    reader, document = EpisodeReading(inspected, episode), int(episode.query[0])
    found = reader.importance(document)
    text = inspected.texts.select(np.array([document]))
    keep = np.arange(1, len(text.ids))
    shorter = replace(
        text, ids=text.ids[keep], rows=text.rows[keep], positions=text.positions[keep], offsets=np.array([0, len(keep)])
    )
    whole, less = (softmax(np.asarray(reader.task.score(texts)))[0, 0] for texts in (text, shorter))
    assert len(found) == len(text.ids)
    assert found[0] == pytest.approx(whole - less, abs=1e-6)


def test_importance_compares_runs(inspected, names):
    with pytest.raises(NotApplicableError, match="--against"):
        attention.importance(inspected)
    asked = replace(inspected, classes=(names[0],), against=(inspected,))
    asked.__dict__["inputs"] = inspected.inputs
    (figure,) = attention.importance(asked)
    assert {row["run"] for row in figure.rows} == {
        "attention + ridge, class not seen in training: by leaving words out",
        "attention + ridge, class not seen in training: its weights",
    }


def test_attention_is_for_models_that_generate_it(inspected):
    other = replace(inspected)
    settings = replace(inspected.settings, model=replace(inspected.settings.model, representation="idf"))
    model = FewShotModel.initial(settings.model, 256)
    other.__dict__["_run"] = replace(inspected._run, settings=settings, model=model)
    for analysis in (attention.figures, attention.granularity, overview.figures):
        with pytest.raises(NotApplicableError, match="generates no attention"):
            analysis(other)


def test_granularity_wants_its_classes(inspected):
    with pytest.raises(NotApplicableError, match="give a run with --data reuters"):
        attention.granularity(inspected)


# Words on paper


def test_shading_escapes_and_cuts():
    long = Shaded(["<b>"] + ["word"] * 99, np.arange(100.0))
    assert len(long.shown().words) == 61
    assert "&lt;b&gt;" in long.shown().html()
    table = ShadedTable("class", ["<i>"], [("<u>", [long])])
    assert "<u>" not in table.html()
    assert "<i>" not in table.html()
    assert len(table.numbers()) == 100
    with pytest.raises(ValueError, match=r"words \(1\) and weights \(2\) differ"):
        Shaded(["a"], np.zeros(2))


def test_words_flow_into_lines():
    placed = list(flow(["aa"] * 10, 9, 60))
    assert placed[0][1:3] == (0.0, 0)
    assert placed[-1][2] > 0
    assert all(left + width <= 60 for _, left, _, width in placed)


# The overview


def test_overview_tells_a_real_episode(inspected):
    (figure,) = overview.figures(inspected)
    story = overview.tell(inspected)
    assert set(story.classes) <= {inspected.corpus.classes[number] for number in inspected.inputs.dataset.split.test}
    assert list(story.pool_classes) == [inspected.corpus.classes[number] for number in inspected.inputs.dataset.split.train]
    assert story.pool_words == inspected.pool.total
    shown = [row for row in figure.rows if "word" in row]
    assert [row["word"] for row in shown] == list(story.words)
    assert len(story.words) <= overview.MOST_QUERY_WORDS
    assert story.probabilities.sum() == pytest.approx(1, abs=1e-5)
    if story.whole:
        assert sum(row["attention"] for row in shown) == pytest.approx(1, abs=1e-5)
    assert figure.png.startswith(b"\x89PNG")
    with pytest.raises(SettingError, match="six classes"):
        overview.figures(replace(inspected, classes=tuple("abcdefg")))


def test_heaviest_words_each_once():
    assert overview._heaviest(["a", "b", "a", *"cdefghij"], np.array([1, 9, 3, *[2] * 8])) == [1, 2, 3, 4, 5, 6, 7, 8]
