from __future__ import annotations

import numpy as np
import torch

from handful.meta.training import TrainingSettings, meta_train
from handful.models import maml
from handful.models.few_shot import FewShotModel
from handful.models.maml import Maml
from handful.models.settings import ModelSettings
from handful.utils.functional import cross_entropy

SETTINGS = ModelSettings(representation="cnn", head="maml")


def test_the_second_order_gradient_agrees_with_finite_differences() -> None:
    """Double precision, two tasks, ten inner steps; the first-order gradient is another one."""
    rng = np.random.default_rng(0)
    support, queries = (torch.from_numpy(rng.normal(size=(2, n, 4))) for n in (3, 6))
    targets = torch.eye(3).double().expand(2, 3, 3)
    truths = torch.eye(3).double().repeat(2, 2, 1).reshape(2, 6, 3)
    names = ["head.weight0", "head.bias0", "head.weight1", "head.bias1"]
    shapes = [(4, 5), (5,), (5, 1), (1,)]
    start = [torch.from_numpy(rng.normal(size=shape) / 2).requires_grad_() for shape in shapes]

    def meta_loss(kind: Maml, *values: torch.Tensor) -> torch.Tensor:
        def vectors(parameters, batch, noise=None):
            return batch.reshape(-1, 4)

        adapted = kind.adapt(vectors, dict(zip(names, values, strict=True)), support, targets)
        return cross_entropy(adapted(queries), truths)

    second, first = Maml(hidden=5, rate=0.3), Maml(hidden=5, rate=0.3, first_order=True)
    assert torch.autograd.gradcheck(lambda *values: meta_loss(second, *values), start)
    gradients = [torch.autograd.grad(meta_loss(kind, *start), start) for kind in (second, first)]
    assert not torch.allclose(gradients[0][0], gradients[1][0], rtol=0.01)


def test_the_inner_loop_adapts_the_representation_too(random_corpus, random_table, sampler, monkeypatch) -> None:
    """With more steps the scores of a CNN change even when its network is frozen from the outside: its filters move."""
    model = FewShotModel.initial(SETTINGS, 16, seed=1).to_torch()
    prepared = model.prepare(random_corpus.texts(random_table), [sampler[0]])
    seen: list[dict[str, torch.Tensor]] = []
    real = maml.task_logits

    def spy(representation, parameters, *rest):
        seen.append(dict(parameters))
        return real(representation, parameters, *rest)

    monkeypatch.setattr(maml, "task_logits", spy)
    model.logits(prepared)
    assert len(seen) == 11  # ten inner steps, and the queries
    for name, value in seen[-1].items():
        assert not torch.equal(value[0], seen[0][name][0]), name
    assert not model.parameters["representation.filters3"].requires_grad


def test_adaptation_lowers_the_loss_of_the_support_set(random_corpus, random_table, sampler) -> None:
    model = FewShotModel.initial(ModelSettings(representation="mean", head="maml"), 16).to_torch()
    texts, episode = random_corpus.texts(random_table), sampler[0]
    support = texts.select(episode.support)
    task = model.fit(support, episode.support_labels, episode.pool)
    targets = torch.eye(3)[torch.from_numpy(episode.support_labels)]
    assert cross_entropy(task.score(support), targets) < np.log(3) - 0.01


def test_meta_training_on_several_tasks_an_update(random_corpus, random_table, sampler) -> None:
    texts = random_corpus.texts(random_table)
    settings = TrainingSettings(episodes=5, tasks=2, validation_episodes=2, epochs=3)
    states: list = []
    whole, history = meta_train(
        FewShotModel.initial(SETTINGS, 16), texts, sampler, sampler, settings, save=states.append, quiet=True
    )
    resumed, again = meta_train(
        FewShotModel.initial(SETTINGS, 16), texts, sampler, sampler, settings, state=states[0], quiet=True
    )
    assert history == again
    assert all(np.array_equal(whole.parameters[name], resumed.parameters[name]) for name in whole.parameters)
