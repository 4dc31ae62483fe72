"""A served classifier: Hugging Face, Text Embeddings Inference, Label Studio and KServe."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from errno import ENOSPC
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from handful import FewShotClassifier
from handful.errors import HandfulError
from handful.service.errors import BusyError
from handful.service.serving.app import serving_app
from handful.service.serving.batcher import Batcher
from handful.service.serving.learning import Annotation, ServedModel
from handful.service.settings import Limits, ServiceSettings

from .studio import TEXTS

CONFIG = """<View><Text name="body" value="$message"/>
<Choices name="topic" toName="body"><Choice value="food"/><Choice value="travel"/><Choice value="weather"/></Choices></View>"""
Serve = Callable[..., TestClient]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves a model of three classes, saved with its examples."""
    texts = [text for label in TEXTS for text in TEXTS[label]]
    labels = [label for label in TEXTS for _ in TEXTS[label]]
    FewShotClassifier().fit(texts, labels).save(tmp_path / "triage", keep_examples=True)
    opened: list[TestClient] = []

    def start(folder: str = "triage", limits: Limits | None = None, key: str = "secret", **given: Any) -> TestClient:
        settings = ServiceSettings(tmp_path, token="secret", limits=limits or Limits())
        app = serving_app(ServedModel(tmp_path / folder, **given), settings, None)
        headers = {"authorization": f"Bearer {key}"}
        opened.append(TestClient(app, base_url="http://127.0.0.1:8000", headers=headers, raise_server_exceptions=False))
        return opened[-1].__enter__()

    yield start
    for one in opened:
        one.__exit__(None, None, None)


def annotate(client: TestClient, number: int, text: str, label: str | None, action: str = "ANNOTATION_CREATED") -> Any:
    result = [] if label is None else [{"type": "choices", "value": {"choices": [label]}}]
    body = {"action": action, "annotation": {"id": number, "result": result}, "task": {"id": 1, "data": {"message": text}}}
    return client.post("/webhook", json=body)


def task(client: TestClient, text: str, **given: Any) -> Any:
    answer = client.post("/predict", json={"tasks": [{"id": 1, "data": {"message": text}}], **given})
    assert answer.status_code == 200, answer.text
    return answer.json()["results"][0]


# Hugging Face and Text Embeddings Inference


def test_one_text_several_texts_and_lists_of_one(serve: Serve, tmp_path: Path) -> None:
    client, clf = serve(), FewShotClassifier.load(tmp_path / "triage")
    asked = ["where is my train", "a slice of cake"]
    expected = clf.predict_proba(asked)
    one = client.post("/predict", json={"inputs": asked[0]}).json()
    assert [row["label"] for row in one] == clf.classes_[np.argsort(-expected[0])].tolist()
    assert one[0]["score"] == pytest.approx(expected[0].max())
    several = client.post("/predict", json={"inputs": asked, "parameters": {"top_k": 1}}).json()
    assert [[row["label"] for row in rows] for rows in several] == [["travel"], ["food"]]
    assert client.post("/predict", json={"inputs": [[text] for text in asked], "parameters": {"top_k": 1}}).json() == several
    assert client.post("/", json={"inputs": asked[0]}).json() == one
    raw = client.post("/predict", json={"inputs": asked[0], "raw_scores": True}).json()
    assert raw[0]["score"] == pytest.approx(float(clf.fitted_.scores([asked[0]]).max()), rel=1e-5)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"inputs": []}, 422),
        ({"inputs": 3}, 422),
        ({"inputs": "x", "parameters": {"top_k": 0}}, 422),
        ({"inputs": [["a", "b"]]}, 422),
        ({"inputs": ["x"] * 6}, 413),
        ({"inputs": "x" * 51}, 422),
        ({"tasks": [{"data": {"other": 1}}]}, 422),
        ({"tasks": [{"data": {"text": "x"}}] * 6}, 413),
    ],
)
def test_requests_that_cannot_be_answered_get_a_typed_error(serve: Serve, body: dict, status: int) -> None:
    client = serve(limits=Limits(texts_per_request=5, characters_per_text=50))
    answer = client.post("/predict", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]["message"]


def test_facts_health_and_metrics(serve: Serve) -> None:
    client = serve()
    info = client.get("/info").json()
    assert info["model_id"] == "triage"
    assert info["model_type"]["classifier"]["id2label"] == {"0": "food", "1": "money", "2": "travel"}
    client.post("/predict", json={"inputs": ["a", "b"]})
    assert client.get("/health").json()["status"] == "UP"
    assert client.get("/ready").status_code == 200
    metrics = client.get("/metrics").text
    assert "handful_texts_total 2.0" in metrics
    assert 'handful_requests_total{method="POST",route="/predict",status="200"} 1.0' in metrics


def test_a_token_is_needed_as_bearer_or_basic_auth(serve: Serve) -> None:
    client = serve(key="wrong")
    ask = {"json": {"inputs": "x"}}
    assert client.post("/predict", **ask).status_code == 401
    basic = base64.b64encode(b"anyone:secret").decode()
    assert client.post("/predict", headers={"authorization": f"Basic {basic}"}, **ask).status_code == 200
    assert client.post("/predict", headers={"authorization": "Basic ???"}, **ask).status_code == 401
    assert client.get("/health").status_code == 200
    assert client.get("/info").status_code == 401


# Label Studio


def test_label_studio_learns_inside_the_webhook(serve: Serve) -> None:
    client = serve()
    assert client.post("/setup", json={"project": "3.1", "schema": CONFIG}).json()["model_version"].startswith("triage-")
    first = task(client, "a storm is coming", label_config=CONFIG)
    choice = first["result"][0]
    assert (choice["from_name"], choice["to_name"], choice["type"]) == ("topic", "body", "choices")
    annotate(client, 1, "zorgle zorgle frumps", "travel")
    before = task(client, "zorgle zorgle frumps")
    assert before["result"][0]["value"]["choices"] == ["travel"]
    answer = annotate(client, 1, "zorgle zorgle frumps", "weather", "ANNOTATION_UPDATED")
    assert (answer.status_code, answer.json()["result"]) == (201, "learned")
    after = task(client, "zorgle zorgle frumps")
    assert after["result"][0]["value"]["choices"] == ["weather"]
    assert after["model_version"] != before["model_version"]


def test_names_of_choices_are_predicted_before_there_are_examples(serve: Serve) -> None:
    client = serve()
    assert task(client, "the weather tomorrow", label_config=CONFIG)["result"][0]["value"]["choices"] == ["weather"]


def test_annotations_survive_a_restart_and_a_torn_line(serve: Serve, tmp_path: Path) -> None:
    client = serve()
    annotate(client, 1, "zorgle frumps", "weather")
    annotate(client, 2, "blick blick", "weather")
    annotate(client, 2, "blick blick", None, "ANNOTATION_UPDATED")
    client.__exit__(None, None, None)
    file = tmp_path / "triage.annotations.jsonl"
    file.write_bytes(file.read_bytes() + b'{"id": "3", "text": "cut o')
    model = ServedModel(tmp_path / "triage")
    assert model.require().predict(["zorgle frumps"]).tolist() == ["weather"]
    model.teach(Annotation("4", "new line", "food"))
    model.close()
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == ["1", "2", "2", "4"]
    assert FewShotClassifier.load(tmp_path / "triage").classes_.tolist() == ["food", "money", "travel"]


def test_a_full_disk_leaves_no_half_of_an_annotation(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    client = serve()
    annotate(client, 1, "zorgle frumps", "weather")

    def full(_: int) -> None:
        raise OSError(ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("handful.service.serving.learning.os.fsync", full)
        answer = annotate(client, 2, "blick blick", "weather")
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "store_full")
    assert annotate(client, 3, "soup", "food").status_code == 201
    lines = (tmp_path / "triage.annotations.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["1", "3"]


def test_a_spoiled_file_of_annotations_gets_a_sentence(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "triage.annotations.jsonl").write_text("nonsense\n")
    with pytest.raises(HandfulError, match="line 1 is not an annotation"):
        ServedModel(tmp_path / "triage")


def test_deleted_annotations_are_forgotten(serve: Serve) -> None:
    client = serve()
    annotate(client, 7, "zorgle frumps", "weather")
    assert "weather" in client.get("/info").text
    client.post("/webhook", json={"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 7}]})
    assert "weather" not in client.get("/info").text
    assert client.post("/webhook", json={"action": "PROJECT_UPDATED"}).json()["result"] == "ignored"


def test_a_new_model_is_taught_from_nothing(serve: Serve) -> None:
    client = serve("fresh", new=True)
    assert client.get("/ready").status_code == 409
    assert client.get("/v2/health/ready").json() == {"ready": False}
    assert task(client, "soup")["result"] == []
    assert client.post("/predict", json={"inputs": "soup"}).status_code == 409
    annotate(client, 1, "soup and bread", "food")
    annotate(client, 2, "train and bus", "travel")
    assert task(client, "some soup")["result"][0]["value"]["choices"] == ["food"]


def test_a_model_without_examples_does_not_learn(serve: Serve, tmp_path: Path) -> None:
    FewShotClassifier().fit(["a b", "c d"], ["x", "y"]).save(tmp_path / "m")
    client = serve("m")
    assert annotate(client, 1, "text", "x").status_code == 409
    assert client.post("/predict", json={"inputs": "a"}).status_code == 200
    assert not list(tmp_path.glob("m.annotations*"))


@pytest.mark.parametrize("config", ["<View", "<View/>", '<!DOCTYPE a [<!ENTITY b "c">]><View>&b;</View>'])
def test_interfaces_that_cannot_be_used_are_refused(serve: Serve, config: str) -> None:
    assert serve().post("/setup", json={"schema": config}).status_code == 422


def test_two_servers_do_not_learn_into_one_file(serve: Serve, tmp_path: Path) -> None:
    serve()
    with pytest.raises(HandfulError, match="--no-learn"):
        ServedModel(tmp_path / "triage")
    ServedModel(tmp_path / "triage", learns=False).close()


# KServe


def test_open_inference_protocol(serve: Serve, tmp_path: Path) -> None:
    client, clf = serve(), FewShotClassifier.load(tmp_path / "triage")
    asked = ["where is my train", "a slice of cake"]
    tensor = {"name": "text", "shape": [2], "datatype": "BYTES", "data": asked}
    found = client.post("/v2/models/triage/infer", json={"id": "7", "inputs": [tensor]}).json()
    outputs = {one["name"]: one for one in found["outputs"]}
    assert (found["id"], found["model_name"]) == ("7", "triage")
    assert outputs["label"]["data"] == ["travel", "food"]
    assert outputs["probabilities"]["shape"] == [2, 3]
    np.testing.assert_allclose(np.reshape(outputs["probabilities"]["data"], (2, 3)), clf.predict_proba(asked))
    some = client.post("/v2/models/triage/infer", json={"inputs": [tensor], "outputs": [{"name": "score"}]}).json()
    assert [one["name"] for one in some["outputs"]] == ["score"]
    assert client.get("/v2/models/triage").json()["inputs"][0]["datatype"] == "BYTES"
    assert client.get("/v2/models/triage/ready").json() == {"ready": True}
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/models/other").status_code == 404


@pytest.mark.parametrize(
    "change", [{"datatype": "FP32"}, {"shape": [3]}, {"shape": [0], "data": []}, {"data": [1, 2]}, {"shape": [2**31]}]
)
def test_tensors_that_do_not_fit_are_refused(serve: Serve, change: dict) -> None:
    tensor = {"name": "text", "shape": [2], "datatype": "BYTES", "data": ["a", "b"], **change}
    assert serve().post("/v2/models/triage/infer", json={"inputs": [tensor]}).status_code == 422


# Answering together


def test_requests_that_wait_are_answered_together_and_each_gets_its_own() -> None:
    clf = FewShotClassifier().fit(["a good meal", "a late train"], ["food", "travel"])
    calls: list[int] = []
    inside, go = threading.Event(), threading.Event()

    def current() -> Any:
        calls.append(1)
        inside.set()
        go.wait(10)
        return clf.fitted_

    batcher = Batcher(current)
    first = batcher.submit(["soup"])
    inside.wait(10)
    futures = [batcher.submit([f"text {i}", "train"]) for i in range(20)]
    go.set()
    np.testing.assert_array_equal(first.result(10).scores, clf.fitted_.scores(["soup"]))
    for i, future in enumerate(futures):
        np.testing.assert_allclose(future.result(10).scores, clf.fitted_.scores([f"text {i}", "train"]), atol=1e-5)
    assert len(calls) == 2
    batcher.close()


def test_an_error_reaches_those_who_asked_and_the_thread_goes_on() -> None:
    clf = FewShotClassifier().fit(["a good meal", "a late train"], ["food", "travel"])
    results: list[Any] = [RuntimeError("once"), clf.fitted_]

    def current() -> Any:
        one = results.pop(0)
        if isinstance(one, Exception):
            raise one
        return one

    batcher = Batcher(current)
    with pytest.raises(RuntimeError, match="once"):
        batcher.submit(["x"]).result(10)
    assert len(batcher.submit(["x"]).result(10).scores) == 1
    batcher.close()


def test_too_many_texts_that_wait_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handful.service.serving.batcher.MOST_WAITING", 3)
    go = threading.Event()
    batcher = Batcher(lambda: go.wait(10) and None)  # type: ignore[arg-type, return-value]
    batcher.submit(["a", "b"])
    with pytest.raises(BusyError):
        batcher.submit(["c", "d"])
    go.set()
    batcher.close()
