"""Robustness (Theorem 1 in numbers): how attention and accuracy change when words are replaced by equally frequent ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ..data.corpus import Texts
from ..data.episodes import EpisodeSampler
from ..meta.inputs import ExperimentData
from ..meta.settings import RunSettings
from ..meta.training import TrainingSettings, meta_train
from ..models.few_shot import FewShotModel
from ..models.settings import SignatureSettings
from ..models.signatures import measure_signals
from ..utils.functional import Ints, segment_sum
from ..utils.progress import track
from ..utils.wording import counted
from .figures import COLOURS, HATCHES, Figure, panels
from .inspected_run import InspectedRun, NotApplicableError
from .weighting import check_attention, check_words_alone, data_title

COMPARED_ESTIMATORS = {
    "counts": SignatureSettings(estimator="count", measure="entropy"),
    "softmax": SignatureSettings(estimator="softmax", measure="entropy", penalty=0.03),
    "ridge, entropy": SignatureSettings(estimator="ridge", measure="entropy", penalty=0.001),
    "ridge, largest score": SignatureSettings(estimator="ridge", measure="max", penalty=0.01),
}
EPOCHS, QUICK_EPOCHS = 4, 1  # of training with each estimator
EPISODES, QUICK_EPISODES = 100, 20
TRAINED, VALIDATION = 100, 20  # episodes per epoch, and after it


@dataclass(frozen=True)
class Change:
    """The effect of the substitution, averaged over episodes."""

    attention: float  # total variation distance between the attention before and after: 0 if equal, 1 if disjoint
    t: float  # relative change
    before: float  # accuracy
    after: float


def substitution(counts: np.ndarray[Any, Any], present: Ints, rng: np.random.Generator) -> Ints:
    """A bijection of the vocabulary that randomly exchanges the words that are present with words of the same count."""
    image = np.arange(len(counts))
    for count in np.unique(counts[present]):
        group = present[counts[present] == count]
        image[group] = rng.permutation(group)
    return image


def substitute(texts: Texts, image: Ints) -> Texts:
    """The texts with every word replaced by its image and that word's vector."""
    return replace(texts, ids=image[texts.ids], rows=image[texts.rows])


def measure_change(model: FewShotModel, texts: Texts, sampler: EpisodeSampler, episodes: int, quiet: bool = True) -> Change:
    """Compare episodes as they are with episodes in which one bijection that preserves P(x) replaces all words.

    With P(y | x) from counts, a word's image has the same s and t as the word, so the attention is the same to the last bit
    (the paper's Theorem 1). With a classifier on word vectors, t changes, because the image has another vector.
    """
    image = substitution(sampler[0].pool.counts, np.unique(texts.ids), np.random.default_rng(sampler.seed))
    lines = [
        _episode_change(model, texts, sampler, index, image)
        for index in track(range(episodes), "Substituting words", episodes, quiet)
    ]
    return Change(*(float(value) for value in np.mean(lines, axis=0)))


def _episode_change(
    model: FewShotModel, texts: Texts, sampler: EpisodeSampler, index: int, image: Ints
) -> tuple[float, float, float, float]:
    episode = sampler[index]
    signature = model.settings.signature
    attention, t, right = [], [], []
    for changed in (lambda part: part, lambda part: substitute(part, image)):
        support, queries = changed(texts.select(episode.support)), changed(texts.select(episode.query))
        labels = episode.support_labels
        classes = len(episode.classes)
        task = model.fit(support, labels, episode.pool, classes, episode.training)
        attention.append(task.weights(queries))
        t.append(measure_signals(("t",), support, labels, classes, episode.pool, episode.training, queries, signature))
        right.append(float(np.mean(np.asarray(task.score(queries)).argmax(-1) == episode.query_labels)))
    moved = segment_sum(np.abs(attention[0] - attention[1]), queries.offsets) / 2
    return float(np.mean(moved)), float(np.mean(np.abs(t[0] - t[1]) / t[0])), right[0], right[1]


def estimator_changes(
    inputs: ExperimentData, run: RunSettings, seed: int, epochs: int, episodes: int, quiet: bool = False
) -> list[dict[str, Any]]:
    """For each estimator of P(y | x), the Change of a generator trained for a few epochs with the run's settings."""
    train, validation, test = (inputs.sampler(part, run.episode, seed) for part in ("train", "val", "test"))
    plain = replace(  # the case covered by the theorem
        run.model,
        attention=replace(run.model.attention, signals=("s", "t"), embeddings=False, rarity=0.0),
        vectors=replace(run.model.vectors, trained=False),
    )
    rows = []
    for name, signature in COMPARED_ESTIMATORS.items():
        model = FewShotModel.initial(replace(plain, signature=signature), inputs.texts.table.shape[1], seed)
        schedule = TrainingSettings(episodes=TRAINED, epochs=epochs, validation_episodes=VALIDATION)
        trained, _ = meta_train(model, inputs.texts, train, validation, schedule, quiet=quiet)
        change = measure_change(trained, inputs.texts, test, episodes, quiet)
        rows.append({"model": "trained here", "estimator": name, "epochs": epochs, "episodes": episodes, **asdict(change)})
    return rows


def figures(inspected: InspectedRun) -> list[Figure]:
    """The figure with bars for each estimator and for the run itself."""
    check_attention(inspected)
    check_words_alone(inspected, "be exchanged")
    if inspected.settings.model.vectors.encoder:
        raise NotApplicableError(
            f"{inspected.name} has one vector per occurrence of a word, so words cannot be exchanged: give a run with a "
            "table of word vectors."
        )
    epochs, episodes = (QUICK_EPOCHS, QUICK_EPISODES) if inspected.quick else (EPOCHS, EPISODES)
    own = measure_change(inspected.model, inspected.texts, inspected.sampler("test"), episodes, inspected.quiet)
    name = _estimator_name(inspected.settings.model.signature)
    rows = [{"model": inspected.name, "estimator": name, "episodes": episodes, **asdict(own)}]
    rows += estimator_changes(inspected.inputs, inspected.settings, inspected.seed, epochs, episodes, inspected.quiet)
    spec = inspected.settings.episode
    labels = [f"this run\n({name})", *(f"{row['estimator']}" for row in rows[1:])]
    caption = (
        "Every word of the labelled texts and of the queries is replaced by another one that is equally frequent in the "
        "training texts, always by the same one: the words change, but the patterns stay. "
        f"{data_title(inspected)}, {spec.way}-way {spec.shot}-shot, classes that were not trained on, {episodes} tasks. Left: "
        "the share of attention that moves to other positions of a query. Right: accuracy before and after. If P(class | "
        "word), from which t(x) is computed, is estimated by counting, attention provably stays where it is. If it is "
        "estimated by a classifier on word vectors (softmax, as in the paper's experiments, or ridge regression), t(x) "
        "changes, because the new words have other vectors. Accuracy may fall even if attention stays, because the final "
        "classifier reads the new vectors. This run is shown as trained; the others were trained for "
        f"{counted(epochs, 'epoch')} with each estimator. "
        "The paper gives the proof but no numbers."
    )
    alt = "Bar charts by estimator. " + " ".join(
        f"{label.replace(chr(10), ' ')}: attention moved {row['attention']:.3f}, accuracy {row['before']:.1%} before and "
        f"{row['after']:.1%} after."
        for label, row in zip(labels, rows, strict=True)
    )
    title = f"When words are exchanged with equally frequent ones ({data_title(inspected)})"
    return [Figure("robustness", title, caption, alt, rows, lambda: draw(labels, rows))]


def _estimator_name(signature: SignatureSettings) -> str:
    kinds = {(known.estimator, known.measure): name for name, known in COMPARED_ESTIMATORS.items()}
    return kinds.get((signature.estimator, signature.measure), signature.estimator)


def draw(labels: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Draw attention on the left and accuracy on the right."""
    drawing, (left, right) = panels(7.2, 0.9 + 0.55 * len(rows), 1, 2, sharey=True)
    places = np.arange(len(rows))
    bars = left.barh(places, [row["attention"] for row in rows], 0.6, color=COLOURS[0], linewidth=0)
    left.bar_label(bars, [f"{row['attention']:.3f}" for row in rows], padding=3)
    left.set_xlim(0, 1.25 * max(0.01, *(row["attention"] for row in rows)))
    left.xaxis.get_major_locator().set_params(nbins=4)
    left.set_title("attention that moves")
    left.set_yticks(places, labels)
    left.set_xlabel("share (0: nothing moves)")
    for number, (column, shift) in enumerate({"before": -0.2, "after": 0.2}.items()):
        values = [100 * row[column] for row in rows]
        look = {"color": COLOURS[(2, 1)[number]], "hatch": HATCHES[number], "label": column}
        right.bar_label(right.barh(places + shift, values, 0.37, linewidth=0, **look), fmt="%.1f", padding=3)
    right.set_xlim(0, 118)
    right.set_xticks(range(0, 101, 20))
    right.set_title("accuracy, %")
    right.invert_yaxis()
    drawing.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=2)
    for axis in (left, right):
        axis.grid(axis="x")
        axis.grid(visible=False, axis="y")
    return drawing
