"""One server and one browser for the tests of the page; each person has a browser profile of their own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from person import Person
from running import Server

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
People = Callable[..., Person]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("studio")


def _chromium() -> str:
    found = next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)
    if not found:
        pytest.skip("There is no Chromium here: install it (apt-get install chromium).")
    return found


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'handful[browser]'")
    program = _chromium()
    with api.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = Server(["studio", str(tmp_path_factory.mktemp("studio")), "--port", "0", "--no-browser"])
    yield running
    running.kill()


@pytest.fixture
def person(browser: Any, server: Server) -> Iterator[People]:
    """Gives people, each with a browser profile; at the end nothing may have gone wrong on any of their pages."""
    people: list[Person] = []

    def make(name: str | None = None, at: Server = server, **options: Any) -> Person:
        settings = {"viewport": {"width": 1280, "height": 900}, "accept_downloads": True} | options
        context = browser.new_context(**settings)
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=at.address)
        people.append(Person(context, at, name))
        return people[-1]

    yield make
    troubles = [trouble for one in people for trouble in one.troubles]
    for one in people:
        one.context.close()
    assert troubles == []


class Api:
    """What the server says, asked without a browser."""

    def __init__(self, server: Server) -> None:
        self.server = server

    def project(self, classes: list[str] | None = None, texts: list[Any] | None = None, name: str = "Trips") -> str:
        """A project with classes and texts: strings, or pairs of a text and its label."""
        wanted = [{"name": one, "note": f"all about {one}"} for one in classes or []]
        made = self.server.ask("POST", "/projects", 201, json={"name": name, "classes": wanted})
        pairs = [(one, None) if isinstance(one, str) else one for one in texts or []]
        for start in range(0, len(pairs), 1_000):
            rows = [{"text": text, "label": label} for text, label in pairs[start : start + 1_000]]
            self.server.ask("POST", f"/projects/{made['id']}/texts", 201, json={"texts": rows})
        return str(made["id"])

    def facts(self, project: str) -> Any:
        return self.server.ask("GET", f"/projects/{project}")

    def texts(self, project: str, **query: Any) -> Any:
        return self.server.ask("GET", f"/projects/{project}/texts", params={"limit": 1000, **query})["texts"]

    def label(self, project: str, texts: list[int], number: int, name: str) -> None:
        headers = {"x-handful-annotator": name}
        self.server.ask("POST", f"/projects/{project}/labels", json={"texts": texts, "class": number}, headers=headers)

    def labels_of(self, project: str, name: str) -> dict[int, Any]:
        """What a person said of each text: the number of a class, or a mark."""
        found = {}
        for text in self.texts(project):
            for one in text["labels"]:
                if one["annotator"] == name:
                    found[text["id"]] = one["class"] if one["mark"] == "class" else one["mark"]
        return found

    def actions(self, project: str, name: str) -> list[Any]:
        headers = {"x-handful-annotator": name}
        answer: httpx.Response = self.server.client.get(f"/projects/{project}/actions", params={"limit": 1000}, headers=headers)
        found: list[Any] = answer.json()
        return found


@pytest.fixture
def api(server: Server) -> Api:
    return Api(server)
