"""Use it: try a text, download everything, and call it from a shell and from Python."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from .person import Api, People
from .trips import CLASSES, pairs, texts


@pytest.fixture
def project(api: Api) -> str:
    return api.project(CLASSES, pairs())


def test_a_text_is_tried(person: People, project: str) -> None:
    anna = person("anna")
    anna.open(project, "use")
    anna.page.get_by_label("A text to try").fill("My train was late")
    anna.page.locator(".verdict .chip").get_by_text("travel").wait_for()
    assert anna.page.locator(".answer mark.spoke").count() >= 1
    assert anna.page.locator(".ranked li").count() == 3
    anna.page.get_by_label("Below this probability").fill("100")
    anna.page.locator(".verdict").get_by_text("None of these").wait_for()


@pytest.mark.parametrize(
    ("group", "name", "ending"),
    [
        ("Model", "Model", "model.zip"),
        ("Labelled texts", "CSV", "labels.csv"),
        ("Labelled texts", "JSON lines", "labels.jsonl"),
        ("Labelled texts", "Parquet", "labels.parquet"),
        ("Labelled texts", "Label Studio", "labels.json"),
        ("Labelled texts", "doccano", "labels.jsonl"),
        ("Predictions", "CSV", "predictions.csv"),
        ("Backup", "Backup", "backup.zip"),
    ],
)
def test_everything_is_downloaded(person: People, project: str, tmp_path: Path, group: str, name: str, ending: str) -> None:
    anna = person("anna")
    anna.open(project, "use")
    with anna.page.expect_download() as download:
        anna.page.locator(".group").filter(has=anna.page.get_by_role("heading", name=group)).get_by_role(
            "link", name=name
        ).click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.name == f"Trips.{ending}"
    if file.suffix in (".csv", ".json", ".jsonl"):
        assert sum(text in file.read_text() for text in texts()) == 36
    else:
        assert file.stat().st_size > 500


def test_the_curl_line_and_the_python_lines_work_as_they_are(person: People, project: str, tmp_path: Path) -> None:
    anna = person("anna")
    anna.open(project, "use")
    copied = []
    for title in ("curl", "Python"):
        anna.button(f"Copy the {title} lines").click()
        copied.append(anna.page.evaluate("navigator.clipboard.readText()"))
    with anna.page.expect_download() as download:
        anna.page.get_by_role("link", name="Model", exact=True).click()
    zipfile.ZipFile(download.value.path()).extractall(tmp_path)
    curl, python = copied
    environment = os.environ | {"HANDFUL_KEY": anna.server.token, "PYTHONWARNINGS": "ignore"}
    answer = subprocess.run(["bash", "-c", curl], env=environment, capture_output=True, text=True, check=True)
    assert '"probability"' in answer.stdout
    assert len(python.splitlines()) == 3
    ran = subprocess.run(
        [sys.executable, "-c", python], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert any(name in ran.stdout for name in (*CLASSES, "None"))


def test_a_whole_file_is_classified(person: People, project: str, tmp_path: Path) -> None:
    anna = person("anna")
    anna.open(project, "use")
    rows = "text\n" + "\n".join(texts())
    anna.page.get_by_label("File to classify").set_input_files(
        {"name": "inbox.csv", "mimeType": "text/csv", "buffer": rows.encode()}
    )
    with anna.page.expect_download() as download:
        anna.page.get_by_role("button", name="Classify", exact=True).click()
    download.value.save_as(tmp_path / "answers.csv")
    lines = (tmp_path / "answers.csv").read_text().splitlines()
    assert lines[0] == "text,label,probability"
    assert len(lines) == 37
    anna.see("36 texts classified")


def test_a_backup_becomes_the_same_project_again(person: People, api: Api, project: str, tmp_path: Path) -> None:
    anna = person("anna")
    anna.open(project, "use")
    with anna.page.expect_download() as download:
        anna.page.get_by_role("link", name="Backup", exact=True).click()
    download.value.save_as(tmp_path / "backup.zip")
    anna.page.goto(f"{anna.server.address}/#/")
    with anna.page.expect_file_chooser() as chooser:
        anna.button("Restore a backup").click()
    chooser.value.set_files(tmp_path / "backup.zip")
    anna.until("location.hash.startsWith('#/p/')")
    restored = api.facts(anna.project)
    assert restored["states"] == api.facts(project)["states"]
    assert anna.project != project
