"""Imports, exports, backups, models and answers to files."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from handful import FewShotClassifier
from handful.service.settings import Limits

from .studio import TEXTS, MakeStudio, Studio

OUTSIDE = {"file": "../../etc/passwd", "sha256": ""}
DOCCANO = b'{"id": 1, "text": "hello", "label": ["greeting"]}\n{"id": 2, "text": "bye", "label": []}\n'
ACTION = '{"client": "c", "annotator": "a", "kind": "label", "detail": "DETAIL", "made": 1.0, "state": "done", "changes": []}\n'
CHOICE = {"result": [{"type": "choices", "value": {"choices": ["greeting"]}}]}
TASKS = json.dumps(
    [{"data": {"text": "hello", "n": 1}, "annotations": [{"was_cancelled": True, **CHOICE}, CHOICE]}, {"data": {"text": "bye"}}]
).encode()


def parquet_bytes() -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": ["hello", "bye"], "label": ["greeting", None]}), stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("csv", b"text,label\nhello,greeting\nbye,\n"),
        ("csv", b"label;text\ngreeting;hello\n;bye\n"),
        ("tsv", b"text\tlabel\nhello\tgreeting\nbye\t\n"),
        ("jsonl", b'{"text": "hello", "label": "greeting"}\n{"text": "bye"}\n'),
        ("json", b'[{"text": "hello", "label": "greeting"}, {"text": "bye"}]'),
        ("parquet", parquet_bytes()),
        ("doccano", DOCCANO),
        ("label-studio", TASKS),
    ],
)
def test_files_of_every_format_are_imported(studio: Studio, form: str, content: bytes) -> None:
    path = studio.project()
    job = studio.upload(path, content, form)
    assert (job["state"], job["result"]["texts"], job["result"]["labelled"]) == ("done", 2, 1), job
    texts = studio.get(f"{path}/texts")["texts"]
    assert [(one["text"], one["class"]) for one in texts] == [("hello", 1), ("bye", None)]
    assert studio.get(path)["classes"][0]["name"] == "greeting"


def test_plain_lines_and_other_columns(studio: Studio) -> None:
    path = studio.project()
    assert studio.upload(path, b"one\n\ntwo\n", "txt")["result"]["empty"] == 1
    studio.upload(path, b"id,text,who\n7,three,anna\n", "csv")
    assert studio.text(path, 2)["extra"] == {"id": "7", "who": "anna"}
    assert studio.text(path, 2)["class"] is None


def test_the_preview_imports_nothing(studio: Studio) -> None:
    path = studio.project()
    query = {"format": "csv", "preview": True}
    found = studio.ask("POST", f"{path}/import", 202, params=query, content=b"a,text,category\n1,hello,x\n")
    assert (found["columns"], found["text"], found["label"]) == (["a", "text", "category"], "text", "category")
    assert found["rows"] == [{"text": "hello", "label": "x", "extra": {"a": "1"}}]
    assert studio.get(path)["texts"] == 0


@pytest.mark.parametrize(
    ("form", "content", "words"),
    [
        ("csv", b"a,b,c\n1,2,3\n", "which one holds the texts"),
        ("csv", b"text,label\nx,y,z\n", "The file, line 2 has 3 fields"),
        ("jsonl", b'{"text": "x"}\nnonsense\n', "The file, line 2 is not JSON"),
        ("jsonl", b'{"text": "x", "label": ["a", "b"]}\n', "several labels"),
        ("parquet", b"not parquet", "The file"),
        ("label-studio", b'[{"id": 1}]', "no data"),
        ("csv", b"text\n" + b"x" * 100_001 + b"\n", "100,001 characters"),
    ],
)
def test_a_broken_file_leaves_nothing_and_says_where(studio: Studio, form: str, content: bytes, words: str) -> None:
    path = studio.project()
    job = studio.upload(path, content, form)
    assert job["state"] == "failed"
    assert words in job["message"]
    assert str(studio.settings.folder) not in job["message"]
    assert (studio.get(path)["texts"], studio.get(path)["importing"]) == (0, False)


def test_broken_rows_can_be_skipped(studio: Studio) -> None:
    path = studio.project()
    job = studio.upload(path, b"text,label\none,a\ntwo,b,c\nthree,d\n", skip_broken=True)
    assert (job["result"]["texts"], job["result"]["skipped"]) == (2, 1)
    assert job["result"]["problem"].startswith("The file, line 3")


def test_what_a_database_cannot_hold_is_replaced_and_counted(studio: Studio) -> None:
    path = studio.project()
    job = studio.upload(path, b'{"text": "a\\u0000b \\ud800"}\n', "jsonl")
    assert job["result"]["replaced"] == 1
    assert studio.text(path, 0)["text"] == "a\ufffdb ?"


def test_a_failed_import_leaves_no_text_class_or_label(make_studio: MakeStudio) -> None:
    studio = make_studio(Limits(texts_per_project=700))
    path = studio.project()
    rows = "".join(f"text {i},class {i % 7}\n" for i in range(1000))
    assert studio.upload(path, f"text,label\n{rows}".encode())["state"] == "failed"
    assert (studio.get(path)["texts"], studio.get(path)["classes"]) == (0, [])
    studio.upload(path, b"text,label\nhello,greeting\n")
    assert [one["text"] for one in studio.get(f"{path}/texts")["texts"]] == ["hello"]


def test_an_import_is_cancelled(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handful.service.jobs.REPORT", 0.0)
    monkeypatch.setattr("handful.service.files.importing.BREATH", 0.05)
    path = studio.project()
    content = ("text\n" + "some text\n" * 20_000).encode()
    job = studio.ask("POST", f"{path}/import", 202, params={"format": "csv"}, content=content)
    while not studio.get(path)["importing"]:
        assert studio.get(f"jobs/{job['id']}")["state"] in ("waiting", "running")
    assert "Another import" in studio.error("POST", f"{path}/texts", 409, json={"texts": [{"text": "x"}]})
    studio.post(f"jobs/{job['id']}/cancel")
    assert studio.job(job)["state"] == "cancelled"
    assert studio.get(path)["texts"] == 0
    studio.add(path, "one")


def test_an_empty_upload_and_an_unknown_format(studio: Studio) -> None:
    path = studio.project()
    assert "empty" in studio.error("POST", f"{path}/import", 422, params={"format": "csv"})
    assert "no format" in studio.error("POST", f"{path}/import", 422, params={"format": "doc"}, content=b"x")


# Out


@pytest.fixture(scope="module")
def path(studio: Studio) -> str:
    path = studio.project(["food", "=cmd()"])
    studio.add(path, "=1+1", 'tasty soup, "really"', "open")
    studio.label(path, 0, 2, name="anna")
    studio.label(path, 1, 1, name="anna")
    studio.label(path, 1, 1, name="bob")
    return path


def export(studio: Studio, path: str, form: str, **query: Any) -> bytes:
    answer = studio.request("GET", f"{path}/export", params={"format": form, **query})
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    return answer.content


def test_formulas_are_escaped_in_csv_and_tsv(studio: Studio, path: str) -> None:
    assert export(studio, path, "csv").decode().splitlines()[:2] == [
        "id,text,label,state,annotators",
        "0,'=1+1,'=cmd(),labelled,anna",
    ]
    assert export(studio, path, "tsv").decode().splitlines()[1].startswith("0\t'=1+1\t'=cmd()")


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet", "label-studio", "doccano"])
def test_an_export_can_be_imported_again(studio: Studio, path: str, form: str) -> None:
    again = studio.project()
    job = studio.upload(again, export(studio, path, form), form)
    assert job["state"] == "done", job
    names = {one["number"]: one["name"] for one in studio.get(again)["classes"]}
    texts = studio.get(f"{again}/texts")["texts"]
    assert [(one["text"], names[one["class"]]) for one in texts] == [("=1+1", "=cmd()"), ('tasty soup, "really"', "food")]
    assert export(studio, path, form, all=True) != export(studio, path, form)


def test_predictions_are_downloaded(studio: Studio, path: str) -> None:
    for form in ("csv", "jsonl", "parquet"):
        answer = studio.request("GET", f"{path}/predictions", params={"format": form})
        assert answer.status_code == 200
        if form == "jsonl":
            rows = [json.loads(line) for line in answer.text.splitlines()]
            assert [row["id"] for row in rows] == [0, 1, 2]
            assert all(row["label"] in ("food", "=cmd()") and 0 < row["probability"] <= 1 for row in rows)
        if form == "parquet":
            assert parquet.read_table(io.BytesIO(answer.content)).column_names == ["id", "text", "label", "probability"]


def test_the_model_is_downloaded_used_and_becomes_a_project(studio: Studio, tmp_path: Path) -> None:
    path = studio.labelled()
    content = studio.request("GET", f"{path}/model").content
    zipfile.ZipFile(io.BytesIO(content)).extractall(tmp_path)
    clf = FewShotClassifier.load(tmp_path / "model")
    asked = ["the soup came by train"]
    answer = studio.post(f"{path}/predict", {"texts": asked, "top_k": 1})["answers"][0]["classes"][0]
    assert clf.predict(asked).tolist() == [answer["label"]]
    assert clf.predict_proba(asked).max() == pytest.approx(answer["probability"])
    made = studio.ask("POST", "projects/from-model", 201, params={"name": "again"}, content=content)
    assert made["texts"] == 12
    again = studio.post(f"projects/{made['id']}/predict", {"texts": asked, "top_k": 1})["answers"][0]["classes"][0]
    assert again["probability"] == pytest.approx(answer["probability"])


def zipped(**files: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), content)
    return stream.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"no zip",
        zipped(),
        zipped(config_json="{}"),
        zipped(config_json=json.dumps({"kind": "classifier", "format": 2, "files": {"model.safetensors": OUTSIDE}})),
    ],
)
def test_a_model_that_is_none_is_refused(studio: Studio, content: bytes) -> None:
    message = studio.error("POST", "projects/from-model", 422, content=content)
    assert str(studio.settings.folder) not in message


def test_a_model_without_examples_has_nothing_to_label(studio: Studio, tmp_path: Path) -> None:
    FewShotClassifier().fit(["a b", "c d"], ["x", "y"]).save(tmp_path / "m")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for file in (tmp_path / "m").iterdir():
            archive.write(file, f"m/{file.name}")
    assert "without its examples" in studio.error("POST", "projects/from-model", 422, content=stream.getvalue())


# Backup


def test_a_backup_restores_everything(studio: Studio) -> None:
    path = studio.labelled(3, unlabelled=3)
    studio.label(path, 0, 2, name="anna")
    studio.label(path, 1, 2, name="anna")
    studio.post(f"{path}/undo", name="anna")
    studio.ask("DELETE", f"{path}/classes/3")
    studio.post(f"{path}/test-set", {"size": 2}, 201)
    studio.post(f"{path}/dismissals", {"kind": "duplicates", "item": "9:10"}, 204)
    content = studio.request("GET", f"{path}/backup").content
    job = studio.job(studio.ask("POST", "projects/restore", 202, content=content))
    assert job["state"] == "done", job
    again = f"projects/{job['result']['project']}"
    for route in ("", "/texts", "/agreement", "/actions", "/texts/0", "/cleaning/contradictions"):
        one, other = (studio.get(f"{where}{route}", name="anna") for where in (path, again))
        for facts in (one, other):
            if isinstance(facts, dict):
                [facts.pop(name, None) for name in ("id", "created", "version", "prediction", "prediction_version")]
                [
                    text.pop("prediction") for text in facts.get("texts", []) if isinstance(text, dict)
                ] if route == "/texts" else None
            else:
                [(row.pop("id"), row.pop("action", None)) for row in facts]
        assert one == other, route
    studio.post(f"{again}/redo", name="anna")
    assert studio.text(again, 1)["labels"][-1]["annotator"] == "anna"
    studio.post(f"{again}/undo")
    assert len(studio.get(f"{again}/classes")) == 3


def spoiled(content: bytes, name: str, change: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
        for one in old.namelist():
            new.writestr(one, change if one == name else old.read(one))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("project.json", "{}"),
        (
            "project.json",
            '{"format": 99, "name": "x", "encoder": "words", "language": "en", "use_class_names": true, "visible": 1}',
        ),
        (
            "project.json",
            '{"format": 1, "name": "x", "encoder": "/etc", "language": "en", "use_class_names": true, "visible": 1}',
        ),
        ("texts.jsonl", '{"number": 99, "text": "x", "extra": null, "state": "open", "label": null, "test": false}\n'),
        ("texts.jsonl", '{"number": 0, "text": "x", "extra": null, "state": "odd", "label": null, "test": false}\n'),
        ("labels.jsonl", '{"text": 0, "annotator": "a", "mark": "class", "label": 77, "final": false, "made": 1.0}\n'),
        ("texts.jsonl", '{"number": 0, "text": "x", "extra": "[]", "state": "open", "label": null, "test": false}\n'),
        ("texts.jsonl", 2 * '{"number": 0, "text": "x", "extra": null, "state": "open", "label": null, "test": false}\n'),
        ("actions.jsonl", ACTION.replace("DETAIL", "nonsense")),
        ("actions.jsonl", ACTION.replace("[]", '[[0, "a"]]')),
        ("classes.jsonl", "nonsense\n"),
        ("other.jsonl", ""),
    ],
)
def test_a_spoiled_backup_restores_nothing(studio: Studio, name: str, change: str) -> None:
    path = studio.labelled(2)
    before = studio.get("projects")
    content = studio.request("GET", f"{path}/backup").content
    content = spoiled(content, name, change) if name != "other.jsonl" else zipped(other="x")
    job = studio.job(studio.ask("POST", "projects/restore", 202, content=content))
    assert job["state"] == "failed"
    assert job["message"].endswith(".")
    assert studio.get("projects") == before


# Answers to files


def test_a_file_is_answered_by_a_job(studio: Studio) -> None:
    path = studio.labelled()
    content = ("text,x\n" + "".join(f"{text},1\n" for text in [*TEXTS["food"], "=1+1"])).encode()
    job = studio.job(studio.ask("POST", f"{path}/predict-file", 202, params={"format": "csv"}, content=content))
    assert job["result"] == {"texts": 5, "skipped": 0, "file": "csv"}
    lines = studio.request("GET", f"jobs/{job['id']}/result").text.splitlines()
    assert lines[0] == "text,label,probability"
    assert lines[1].startswith("the soup was tasty,food,")
    assert lines[5].startswith("'=1+1,")
    assert studio.get("jobs")[0]["id"] == job["id"]


def test_jobs_beyond_the_limit_wait_outside(make_studio: MakeStudio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handful.service.files.importing.BREATH", 0.3)
    studio = make_studio(Limits(jobs=1))
    path, other = studio.project(), studio.project()
    content = ("text\n" + "some text\n" * 2_000).encode()
    job = studio.ask("POST", f"{path}/import", 202, params={"format": "csv"}, content=content)
    assert "1 jobs" in studio.error("POST", f"{other}/import", 429, params={"format": "csv"}, content=content)
    assert studio.job(job)["result"]["texts"] == 2_000
    assert list(studio.service.jobs.uploads.iterdir()) == []
