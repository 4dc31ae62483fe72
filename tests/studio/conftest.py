"""One server and one browser for the tests of the page; each person has a browser profile of their own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from service.running import Server

from .person import Api, People, Person

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


@pytest.fixture
def api(server: Server) -> Api:
    return Api(server)
