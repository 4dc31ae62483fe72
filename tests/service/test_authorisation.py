"""For every route: no key gets nothing, a read key cannot write, and nobody reads or changes another's project."""

from __future__ import annotations

from typing import Any

import pytest

from .studio import Studio

pytestmark = pytest.mark.service

WRITES = ("POST", "PUT", "PATCH", "DELETE")
READS_BY_POST = ("/predict", "/explain", "/predict-file")  # a read key may classify
OPEN = ("/health", "/ready", "/api/v1/session")
BODIES: dict[str, Any] = {
    "/labels": {"texts": [0], "class": 1},
    "/classes": {"name": "new"},
    "/merge": {"into": 2},
    "/texts": {"texts": [{"text": "new"}]},
    "/dismissals": {"kind": "duplicates", "item": "0:1"},
    "/test-set": {"size": 1},
    "/predict": {"texts": ["x"]},
    "/explain": {"text": "x"},
    "/members/{account}": {"role": "read"},
    "/classes/{number}": {"name": "renamed"},
    "/projects/{project}": {"name": "renamed"},
    "/projects": {"name": "new"},
    "/session": {"key": "x"},
}
QUERIES = {"/dismissals": {"kind": "duplicates", "item": "0:1"}}


def routes(studio: Studio) -> list[tuple[str, str]]:
    paths = studio.get("/openapi.json")["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def filled(path: str, project: str, job: str) -> str:
    values = {"project": project, "number": "1", "account": "bob", "kind": "mistakes", "job": job}
    for name, value in values.items():
        path = path.replace("{" + name + "}", value)
    return path


def arguments(method: str, path: str) -> dict[str, Any]:
    body = next((value for ending, value in BODIES.items() if path.endswith(ending)), {})
    query = next((value for ending, value in QUERIES.items() if path.endswith(ending) and method == "DELETE"), {})
    if path.endswith(("/import", "/restore", "/from-model", "/predict-file")):
        return {"content": b"text\nhello\n", "params": query}
    return {"params": query, **({"json": body} if method in ("POST", "PUT", "PATCH") else {})}


def facts(studio: Studio, project: str, key: str) -> Any:
    """All of a project that could change."""
    found = [studio.get(f"projects/{project}{part}", key=key) for part in ("", "/texts", "/members", "/classes")]
    for text in found[1]["texts"]:
        text.pop("prediction")
    found[1].pop("prediction_version")
    return found


@pytest.fixture(scope="module")
def owned(studio: Studio) -> tuple[str, str, str]:
    """Anna's project, a job of hers, and her key."""
    anna = studio.add_key("anna")
    path = studio.project(["a", "b"], key=anna)
    studio.add(path, "hello", "hello again", key=anna)
    content = {"params": {"format": "csv"}, "content": b"text\nmore\n"}
    job = studio.ask("POST", f"{path}/predict-file", 202, key=anna, **content)["id"]
    studio.service.jobs.wait(job)
    return path.split("/")[1], job, anna


def test_without_a_key_every_route_gives_nothing(studio: Studio, owned: tuple) -> None:
    project, job, anna = owned
    before = facts(studio, project, anna)
    for method, path in routes(studio):
        if path in OPEN:
            continue
        for key in (None, "wrong", anna[:-1] + ("x" if anna[-1] != "x" else "y")):
            answer = studio.request(method, filled(path, project, job), key=key, **arguments(method, path))
            assert answer.status_code == 401, (method, path)
    assert facts(studio, project, anna) == before


@pytest.mark.parametrize("role", ["read", "label", "admin"])
def test_nobody_reads_or_changes_anothers_project(studio: Studio, owned: tuple, role: str) -> None:
    project, job, anna = owned
    bob = studio.add_key("bob", role)
    before = facts(studio, project, anna)
    tried = 0
    for method, path in routes(studio):
        if "{project}" in path or "{job}" in path:
            answer = studio.request(method, filled(path, project, job), key=bob, **arguments(method, path))
            assert answer.status_code == 404, (method, path, answer.text)
            assert "hello" not in answer.text
            tried += 1
    assert tried > 35
    assert project not in str(studio.get("projects", key=bob)) + str(studio.get("jobs", key=bob))
    assert facts(studio, project, anna) == before


def test_a_read_key_cannot_write_even_to_its_own_project(studio: Studio, owned: tuple) -> None:
    project, job, anna = owned
    reader = studio.add_key("anna", "read")
    before = facts(studio, project, anna)
    for method, path in routes(studio):
        if path in OPEN or "/jobs" in path:
            continue
        answer = studio.request(method, filled(path, project, job), key=reader, **arguments(method, path))
        if method in WRITES and not path.endswith(READS_BY_POST):
            assert answer.status_code == 403, (method, path, answer.text)
        elif path.endswith("/next"):
            assert answer.status_code == 403
        else:
            assert answer.status_code in (200, 202, 404, 409, 422), (method, path, answer.text)
    assert facts(studio, project, anna) == before


def test_a_label_key_labels_and_no_more(studio: Studio, owned: tuple) -> None:
    project, job, _ = owned
    labeller = studio.add_key("anna", "label")
    refused = ("/import", "/test-set", "/members/{account}", "/projects", "/restore", "/from-model", "/example")
    for method, path in routes(studio):
        whole = path in (
            "/api/v1/projects/{project}",
            "/api/v1/projects/{project}/texts",
            "/api/v1/projects/{project}/texts/{number}",
        )
        if method in WRITES and (path.endswith(refused) or whole):
            answer = studio.request(method, filled(path, project, job), key=labeller, **arguments(method, path))
            assert answer.status_code == 403, (method, path, answer.text)
    assert studio.post(f"projects/{project}/labels", {"texts": [0], "class": 1}, key=labeller)["changed"] == 1
    assert studio.get(f"projects/{project}/next", key=labeller)["texts"]
