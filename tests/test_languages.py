"""Languages that wordfreq does not have, or has only with another package."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from bundles import ENCODER, part, rewrite
from click.testing import CliRunner

from handful import FewShotClassifier
from handful.cli import main
from handful.errors import HandfulError, ModelError, SettingError

TEXTS, LABELS = ["the soup was tasty", "my train came late"], ["food", "travel"]
ABSURD = ["", " ", "xx", "x" * 1000, "--", "a b", "\ud800", "en\n", "\x00", "../en"]


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    path = tmp_path / "examples.csv"
    path.write_text("text,label\nthe soup was tasty,food\nmy train came late,travel\n")
    return path


def sentence(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), repr(result)
    assert len(result.stderr) < 300
    return result.stderr


@pytest.mark.parametrize("language", [language for language in ABSURD if language not in ("xx", "\ud800", "\x00")])
def test_absurd_languages_at_the_command_line(examples: Path, tmp_path: Path, language: str) -> None:
    said = sentence("fit", examples, "--out", tmp_path / "m", "--language", language)
    assert "There are no word frequencies for the language" in said
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("language", [pytest.param(one, id=one[:9]) for one in ABSURD])
def test_absurd_languages_in_python(language: str) -> None:
    with pytest.raises(SettingError, match="There are no word frequencies for the language"):
        FewShotClassifier(language=language).fit(TEXTS, LABELS)


@pytest.mark.parametrize(("language", "module"), [("zh", "jieba"), ("ja", "MeCab"), ("ko", "MeCab"), ("zh-TW", "jieba")])
def test_languages_that_need_another_package(
    examples: Path, tmp_path: Path, language: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for name in ("chinese", "mecab"):
        monkeypatch.delitem(sys.modules, f"wordfreq.{name}", raising=False)
    monkeypatch.setattr("wordfreq._wf_cache", {})
    said = sentence("fit", examples, "--out", tmp_path / "m", "--language", language)
    assert f"language '{language}' need {module}" in said
    assert "pip install 'wordfreq[cjk]', or choose another language" in said
    with pytest.raises(HandfulError, match=r"wordfreq\[cjk\]"):
        FewShotClassifier(language=language).fit(TEXTS, LABELS)


@pytest.mark.parametrize("language", ["", "xx", "x" * 1000, "\ud800"])
def test_a_saved_classifier_with_an_absurd_language_is_refused(tmp_path: Path, language: str) -> None:
    folder = tmp_path / "m"
    FewShotClassifier().fit(TEXTS, LABELS).save(folder)
    facts = json.loads(part(folder, ENCODER).read_bytes())
    rewrite(folder, encoder=json.dumps({**facts, "language": language}).encode())
    with pytest.raises(ModelError, match="no word frequencies for the language"):
        FewShotClassifier.load(folder)
    for command in (("explain", folder, "soup"), ("inspect", folder)):
        assert str(folder) in sentence(*command)
