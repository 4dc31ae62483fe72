"""Fine-tuning the word vectors during meta-training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from handful.data.episodes import EpisodeSpec
from handful.errors import ModelError
from handful.meta.checkpoints import load_vectors_over
from handful.meta.experiment import evaluate_run, load_run, train_run
from handful.meta.settings import RunSettings
from handful.meta.training import TrainingSettings, meta_train
from handful.models.few_shot import VECTOR_TABLE, FewShotModel
from handful.models.settings import ModelSettings, VectorSettings

QUICK = TrainingSettings(episodes=4, validation_episodes=2, epochs=2, learning_rate=0.01)


@pytest.mark.parametrize(
    ("representation", "head"),
    [
        ("mean", "ridge"),
        ("idf", "logistic"),
        ("cnn", "prototype"),
        ("attention", "ridge"),
        ("lstm", "induction"),
        ("mean", "maml"),
    ],
)
def test_every_kind_of_model_moves_the_vectors_it_sees(representation, head, random_corpus, random_table, sampler) -> None:
    model = FewShotModel.initial(ModelSettings(representation=representation, head=head), 16).with_vectors(random_table)
    trained, _ = meta_train(model, random_corpus.texts(random_table), sampler, sampler, QUICK, quiet=True)
    assert not np.allclose(trained.parameters[VECTOR_TABLE], random_table)
    assert np.array_equal(model.parameters[VECTOR_TABLE], random_table)


def test_trained_vectors_are_saved_by_word_and_used(tmp_path: Path, demo) -> None:
    settings = RunSettings(
        episode=EpisodeSpec(3, 1, 3),
        training=QUICK,
        model=ModelSettings(representation="mean", vectors=VectorSettings(trained=True)),
    )
    train_run(settings, tmp_path / "run", demo, quiet=True)
    table = load_vectors_over(tmp_path / "run", demo.corpus.vocabulary, demo.texts.table)
    moved = (table != demo.texts.table).any(axis=1)
    seen = demo.sampler("test", EpisodeSpec(), 0).training_pool.counts > 0
    assert moved.any()
    assert not moved[~seen].any()
    model = load_run(tmp_path / "run").model
    assert VECTOR_TABLE not in model.parameters
    first, second = (evaluate_run(tmp_path / "run", episodes=8, inputs=demo, quiet=True).accuracies for _ in range(2))
    assert np.array_equal(first, second)
    (tmp_path / "run" / "vectors.safetensors").unlink()
    with pytest.raises(ModelError, match="is missing"):
        evaluate_run(tmp_path / "run", episodes=8, inputs=demo, quiet=True)
