"""A text without a word that is known gets the classes' prior, and its explanation says so."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from handful import FewShotClassifier
from handful.classifier.explanation import Explanation
from handful.cli import main
from handful.errors import HandfulWarning

NOTE = "No word of this text is known, so the probabilities are the classes' prior."
TEXTS = ["the soup was tasty", "my train came late", "dinner on a train"]


@pytest.fixture(scope="module", params=["one", "several"])
def classifier(request: pytest.FixtureRequest) -> FewShotClassifier:
    labels = ["food", "travel", "travel"] if request.param == "one" else [["food"], ["travel"], ["food", "travel"]]
    return FewShotClassifier().fit(TEXTS, labels)


def few_words(folder: Path) -> FewShotClassifier:
    np.savez(folder / "few.npz", words=np.array(["bill", "flight"]), vectors=np.eye(2, 3, dtype=np.float32))
    with pytest.warns(HandfulWarning, match="have no vectors"):
        return FewShotClassifier(vectors=f"{folder / 'few.npz'}:raw").fit(["the bill", "a flight"], ["b", "f"])


def check(explained: Explanation) -> None:
    assert explained.words == ()
    assert explained.note == NOTE
    np.testing.assert_allclose(explained.scores, explained.constants, atol=1e-6)
    headline, note = str(explained).splitlines()
    assert "%" in headline
    assert note == NOTE
    assert NOTE.replace("'", "&#x27;") in explained._repr_html_()
    plain = json.loads(explained.to_json())
    assert (plain["words"], plain["note"]) == ([], NOTE)


@pytest.mark.parametrize("text", ["", " \n", "\t"])
def test_an_empty_text(classifier: FewShotClassifier, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    explained = classifier.explain(text)
    check(explained)
    explained.show()
    shown = capsys.readouterr().out
    assert NOTE in shown
    assert "attention" not in shown


def test_a_text_of_unknown_words(tmp_path: Path) -> None:
    classifier = few_words(tmp_path)
    check(classifier.explain("what a meal"))
    np.testing.assert_allclose(classifier.explain("what a meal").probabilities, [0.5, 0.5])


def test_a_text_with_a_known_word_has_no_note(classifier: FewShotClassifier, tmp_path: Path) -> None:
    for one, text in ((classifier, "a soup"), (few_words(tmp_path), "what a flight")):
        explained = one.explain(text)
        assert explained.note is None
        assert json.loads(explained.to_json())["note"] is None
        assert NOTE not in explained._repr_html_() + str(explained)
        assert len(explained.words) == len(text.split())


def test_at_the_command_line(classifier: FewShotClassifier, tmp_path: Path) -> None:
    classifier.save(tmp_path / "m")

    def printed(*options: object) -> str:
        result = CliRunner().invoke(main, ["explain", str(tmp_path / "m"), "", *map(str, options)])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert NOTE in printed()
    assert json.loads(printed("--json"))["note"] == NOTE
    printed("--html", tmp_path / "why.html")
    assert "No word of this text is known" in (tmp_path / "why.html").read_text()
