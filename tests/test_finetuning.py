from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from handful.data.episodes import EpisodeSpec
from handful.meta.training import TrainingSettings, meta_train
from handful.models.few_shot import FewShotModel
from handful.models.finetuning import NotConvergedWarning
from handful.models.settings import FinetuneSettings, ModelSettings
from handful.utils.functional import cross_entropy

SETTINGS = ModelSettings(representation="cnn", head="finetune", finetune=FinetuneSettings(classes=8))


def test_fine_tuning_ends_where_the_gradient_is_small(random_corpus, random_table, sampler) -> None:
    """The support set is learned by heart, without a warning that it was not."""
    model = FewShotModel.initial(SETTINGS, 16).to_torch()
    texts, episode = random_corpus.texts(random_table), sampler[0]
    support = texts.select(episode.support)
    task = model.fit(support, episode.support_labels, episode.pool)
    targets = torch.eye(3)[torch.from_numpy(episode.support_labels)]
    assert cross_entropy(task.score(support), targets) < 0.01


def test_a_cap_that_is_reached_is_reported(random_corpus, random_table, sampler) -> None:
    model = FewShotModel.initial(SETTINGS, 16).to_torch()
    model.head = replace(model.head, most_steps=2)
    prepared = model.prepare(random_corpus.texts(random_table), [sampler[0], sampler[1]])
    with pytest.warns(NotConvergedWarning, match="2 of 2 tasks did not converge in 2 steps"):
        model.logits(prepared)


@pytest.mark.parametrize("pretraining_head", ["cosine", "perceptron"])
def test_pre_training_learns_the_training_classes(demo, pretraining_head: str) -> None:
    """On real messages: after two short epochs it tells fifteen classes apart far better than chance."""
    outputs = tuple(demo.dataset.split.train)
    settings = replace(SETTINGS, finetune=FinetuneSettings(30, outputs, pretraining_head))
    train, val = (demo.sampler(part, EpisodeSpec(5, 1, 8), 0) for part in ("train", "val"))
    quick = TrainingSettings(episodes=60, tasks=3, validation_episodes=2, epochs=2)
    _, history = meta_train(FewShotModel.initial(settings, 256), demo.texts, train, val, quick, quiet=True)
    assert history[-1]["train_accuracy"] > 0.4  # chance is 1 in 15


def test_pre_training_predicts_only_its_outputs(random_corpus, random_table, sampler) -> None:
    """Texts of a class that is not among them have no target, and no class has a direction in vain."""
    model = FewShotModel.initial(replace(SETTINGS, finetune=FinetuneSettings(8, (1, 6))), 16)
    assert model.parameters["head.directions"].shape[0] == 2
    assert model.head.class_targets(np.array([6, 1, 3])).tolist() == [[0, 1], [1, 0], [0, 0]]
