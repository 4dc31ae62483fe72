"""Making a sentence encoder: texts of a small dictionary, a few steps of training, and the 8-bit file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from handful.embeddings.onnx_encoder import OnnxEncoder
from handful.errors import DataError
from handful.making import student_texts
from handful.utils.functional import Floats

torch = pytest.importorskip("torch", reason="the extra make-encoder is not installed")
pytest.importorskip("onnx", reason="the extra make-encoder is not installed")
pytest.importorskip("transformers", reason="the extra make-encoder is not installed")

from handful.making import student as making  # noqa: E402
from handful.making.student import (  # noqa: E402
    Student,
    StudentTraining,
    best_layers,
    centred,
    encode,
    narrow,
    teacher_vectors,
    train,
    widen,
)
from handful.making.student_export import export  # noqa: E402

TEXTS = [
    *("where is my parcel", "the soup was cold", "I was charged twice", "cancel my order please", "a small Asiatic bird"),
    *("credit card", "how do i reset the password", "the match ended in a draw", "rain is expected in the north", "lost keys"),
]
ENTRIES = (
    '00001740 03 n 02 credit_card 0 plastic 0 000 | a card that lets you buy on credit; "he paid with a credit card"  ',
    "00001930 03 n 01 card 0 000 | a small stiff piece of paper  ",
)


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wordnet")
    for kind in student_texts.PARTS_OF_SPEECH:
        lines = ["  1 the licence", *(line.replace("credit_card", f"good_{kind}(a)") for line in ENTRIES)]
        (folder / f"data.{kind}").write_text("\n".join(lines) + "\n")
    return folder


def test_a_dictionary_gives_glosses_usages_and_phrases(dictionary: Path) -> None:
    assert list(student_texts.glosses(dictionary))[:2] == ["a card that lets you buy on credit", "a small stiff piece of paper"]
    assert set(student_texts.usages(dictionary)) == {"he paid with a credit card"}
    assert list(student_texts.phrases(dictionary)) == ["good noun", "good verb", "good adj", "good adv"]
    requests = list(student_texts.made_up_requests(30, np.random.default_rng(0), dictionary))
    assert len(set(requests)) > 10
    assert not any("{" in request for request in requests)


def test_texts_are_drawn_once_each() -> None:
    rng = np.random.default_rng(0)
    assert student_texts.distinct(["Red", "blue", "red"]) == ["blue", "Red"]
    assert sorted(student_texts.some(["a", "b", "c", "b"], 9, rng)) == ["a", "b", "c"]
    assert len(list(student_texts.fragments(TEXTS, 5, rng))) == 5
    passage = next(student_texts.passages("The cat sat on the mat. " * 40, rng))
    assert student_texts.PASSAGE[0] <= len(passage.split()) <= student_texts.PASSAGE[1]
    assert not list(student_texts.passages("Too short to be a passage.", rng))


def test_batches_hold_every_text_once() -> None:
    lengths = np.random.default_rng(0).integers(3, making.LONGEST, 500)
    for rng in (None, np.random.default_rng(1)):
        found = making.batches(lengths, 64, rng)
        assert sorted(np.concatenate(found)) == list(range(500))
        assert max(len(part) for part in found) <= 64
        assert max(len(part) * lengths[part].max() for part in found) <= making.PIECES


def test_rates_rise_and_fall() -> None:
    training = StudentTraining(steps=100, warm_up=10, falling=0.5)
    factors = [training.factor(step) for step in range(100)]
    assert factors[0] == pytest.approx(0.1)
    assert set(factors[10:50]) == {1.0}
    assert factors[-1] == pytest.approx(0.02)


class CountingTeacher:
    """bge-small, which counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.model = OnnxEncoder(folder, "cls", threads=1)
        self.dim, self.identity, self.calls = self.model.dim, self.model.identity, 0

    def encode(self, texts: Sequence[str]) -> Floats:
        self.calls += 1
        return self.model.encode(texts)


def test_a_student_with_all_layers_is_the_teacher(bge_small: Path) -> None:
    alike = (encode(Student(bge_small), TEXTS) * OnnxEncoder(bge_small, "cls", threads=1).encode(TEXTS)).sum(axis=1)
    assert alike.min() > 0.99
    assert not any(parameter.requires_grad for parameter in Student(bge_small, [0]).transformer.embeddings.parameters())


def test_layers_are_left_out_that_matter_least(bge_small: Path) -> None:
    targets = centred(OnnxEncoder(bge_small, "cls", threads=1).encode(TEXTS))
    kept = best_layers(bge_small, TEXTS, targets, 10)
    student = Student(bge_small, kept)
    near, far = (float((centred(encode(one, TEXTS)) * targets).sum()) for one in (student, Student(bge_small, range(10))))
    assert len(kept) == 10
    assert near > far
    with pytest.raises(DataError, match="give some of 0 to 11"):
        Student(bge_small, [12])


def test_units_that_are_left_out_are_made_up_for(bge_small: Path) -> None:
    student = Student(bge_small, [0, 5, 11])
    before = encode(student, TEXTS)
    lost = narrow(student, [1536, 400, 200], TEXTS)
    assert lost[0] < lost[1] < 0.5
    assert [layer.intermediate.dense.out_features for layer in student.layers] == [1536, 400, 200]
    assert (encode(student, TEXTS) * before).sum(axis=1).min() > 0.95
    other = Student(bge_small, [0, 5, 11])
    widen(other, [1536, 400, 200])
    other.load_state_dict(student.state_dict())
    np.testing.assert_array_equal(encode(other, TEXTS), encode(student, TEXTS))


def test_a_student_learns_is_resumed_and_exported(bge_small: Path, tmp_path: Path) -> None:
    teacher = CountingTeacher(bge_small)
    taught = teacher_vectors(teacher, TEXTS, tmp_path / "teacher")
    np.testing.assert_array_equal(taught, teacher_vectors(teacher, TEXTS, tmp_path / "teacher"))
    assert teacher.calls == 1
    training = StudentTraining(steps=6, batch=5, warm_up=2, rate=3e-4)
    student = Student(bge_small, [0, 11])
    train(student, TEXTS, taught, training, tmp_path, lambda vectors: {"shape": vectors(TEXTS[:2]).shape}, 0)
    curve = [json.loads(line) for line in (tmp_path / making.CURVE).read_text().splitlines()]
    assert [line["step"] for line in curve] == [*range(7)]
    assert (curve[-1]["texts"], curve[-1]["shape"]) == (30, [2, teacher.dim])
    again = train(Student(bge_small, [0, 11]), TEXTS, taught, replace(training, steps=10), tmp_path)
    assert json.loads((tmp_path / making.CURVE).read_text().splitlines()[-1])["step"] == 10
    new, learned = (
        (centred(encode(one, TEXTS)) * centred(taught)).sum(axis=1).mean() for one in (Student(bge_small, [0, 11]), again)
    )
    assert learned > new + 0.1
    export(again, tmp_path / "encoder")
    small = OnnxEncoder(tmp_path / "encoder", "", threads=1).encode(TEXTS)
    assert (small * encode(again, TEXTS)).sum(axis=1).min() > 0.95
    assert (tmp_path / "encoder" / "model.onnx").stat().st_size < 17e6
