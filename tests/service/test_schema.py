"""Property-based tests of both APIs against their OpenAPI descriptions: typed answers and no 5xx, whatever is sent."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from handful import FewShotClassifier

from .running import Server
from .studio import TEXTS

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: make test-all installs it")
from schemathesis.checks import (  # noqa: E402
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

pytestmark = pytest.mark.service

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
TOKEN = {"HANDFUL_TOKEN": "secret"}
HEADERS = {"authorization": "Bearer secret"}
BOUNDED = settings(
    max_examples=int(os.environ.get("HANDFUL_TEST_EXAMPLES", "20")),  # requests per route
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory, new_store: Callable[[], str | None]) -> Iterator[tuple[Server, str]]:
    """A server with a project that random requests are sent to."""
    store = new_store()
    folder = str(tmp_path_factory.mktemp("schema"))
    server = Server(["studio", folder, "--no-browser", "--port", "0", *(["--database", store] if store else [])], TOKEN)
    project = server.ask("POST", "/projects", 201, json={"name": "p"})["id"]
    rows = [{"text": text, "label": label} for label, texts in TEXTS.items() for text in texts]
    rows += [{"text": f"open {i}"} for i in range(4)]
    server.ask("POST", f"/projects/{project}/texts", 201, json={"texts": rows})
    yield server, project
    server.kill()


@pytest.fixture(scope="module")
def studio_schema(opened: tuple[Server, str]) -> Any:
    return schemathesis.openapi.from_url(f"{opened[0].address}/openapi.json")


@pytest.fixture(scope="module")
def serving_schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("serving")
    texts = [text for label in TEXTS for text in TEXTS[label]]
    FewShotClassifier().fit(texts, [label for label in TEXTS for _ in TEXTS[label]]).save(folder / "triage", keep_examples=True)
    server = Server(["serve", str(folder / "triage"), "--port", "0", "--folder", str(folder)], TOKEN)
    yield schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    server.kill()


def try_everything(schema: Any, send: Callable[[Any], None]) -> int:
    """Send random requests to each route; gives the number of routes."""
    count = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        BOUNDED(given(operation.as_strategy())(send))()
        count += 1
    return count


def test_the_studio_answers_whatever_is_sent(studio_schema: Any, opened: tuple[Server, str]) -> None:
    server, project = opened

    def send(case: Any) -> None:
        path = case.path_parameters or {}
        removes = case.method == "DELETE" and case.operation.path.endswith("/projects/{project}")
        if "project" in path and not removes:
            path["project"] = project
        if isinstance(path.get("number"), int) and case.method != "DELETE":
            path["number"] %= 4
        case.call_and_validate(headers=HEADERS, checks=CHECKS)

    assert try_everything(studio_schema, send) > 45
    assert server.ask("GET", f"/projects/{project}")["texts"] >= 16


def test_a_served_model_answers_whatever_is_sent(serving_schema: Any) -> None:
    def send(case: Any) -> None:
        if "name" in (case.path_parameters or {}):
            case.path_parameters["name"] = "triage"
        case.call_and_validate(headers=HEADERS, checks=CHECKS)

    assert try_everything(serving_schema, send) > 10
