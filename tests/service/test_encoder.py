"""A project with a sentence encoder: its texts are encoded in the background."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from handful import FewShotClassifier
from handful.embeddings.encoders import KNOWN_ENCODERS

from .studio import TEXTS, MakeStudio

pytestmark = pytest.mark.service


def test_a_project_with_a_sentence_encoder(
    make_studio: MakeStudio, bge_small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(bge_small.parents[1]))
    studio = make_studio()
    here = {one["name"]: one["here"] for one in studio.get("encoders")}
    assert set(here) == {"words", *KNOWN_ENCODERS}
    assert here["words"]
    assert here["bge-small"]
    path = studio.project(encoder="bge-small")
    rows = "".join(f"{text},{label}\n" for label, texts in TEXTS.items() for text in texts if "," not in text)
    assert studio.upload(path, f"text,label\n{rows}".encode())["state"] == "done"
    encode = next(one for one in studio.get("jobs") if one["kind"] == "encode")
    assert studio.job(encode)["result"] == {"texts": 11}
    assert (studio.settings.folder / "vectors.sqlite").exists()
    asked = ["where is my suitcase"]
    answer = studio.post(f"{path}/predict", {"texts": asked, "top_k": 1})["answers"][0]["classes"][0]
    assert answer["label"] == "travel"
    zipfile.ZipFile(io.BytesIO(studio.request("GET", f"{path}/model").content)).extractall(tmp_path)
    assert FewShotClassifier.load(tmp_path / "model").predict_proba(asked).max() == pytest.approx(
        answer["probability"], abs=1e-5
    )
    assert studio.get(f"{path}/accuracy", params={"wait": True})["estimate"]["texts"] == 11
    assert studio.ask("PATCH", path, json={"encoder": "words"})["encoder"] == "words"
    assert studio.post(f"{path}/predict", {"texts": asked})["answers"][0]["label"]
