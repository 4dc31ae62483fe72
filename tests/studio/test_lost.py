"""A lost connection: it is shown, labels made meanwhile are kept, sent again, and made once."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from service.running import Server

from .person import Api, People
from .trips import CLASSES, texts


@pytest.fixture
def restarting(tmp_path: Path):
    """Starts a server, and starts it again on the same port and folder."""
    started: list[Server] = []

    def start() -> Server:
        port = str(urlsplit(started[-1].address).port) if started else "0"
        started.append(Server(["studio", str(tmp_path / "projects"), "--port", port, "--no-browser"]))
        return started[-1]

    yield start
    for one in started:
        one.kill()


def _label(anna, key: str) -> str:
    text = anna.text
    anna.press(key)
    anna.shows_another(text)
    return text


def test_the_server_is_killed_and_comes_back_in_the_middle(person: People, restarting) -> None:
    first = restarting()
    project = Api(first).project(CLASSES, texts())
    anna = person("anna", first)
    anna.lost_is_fine = True
    anna.open(project, "label")
    anna.wait_for_text()
    seen = [_label(anna, "1") for _ in range(3)]
    anna.saved()
    first.kill()
    seen += [_label(anna, "2") for _ in range(5)]
    anna.see("The server cannot be reached. 5 labels are kept in this browser")
    undone = seen.pop()
    anna.press("z")
    anna.shows(undone)
    anna.see("6 labels waiting")
    second = restarting()
    anna.saved()
    anna.see("The server is back")
    said = Api(second).labels_of(project, "anna")
    assert [said.get(texts().index(text)) for text in seen] == [1, 1, 1, 2, 2, 2, 2]
    assert len(said) == 7
    kinds = [one["kind"] for one in Api(second).actions(project, "anna")]
    assert (kinds.count("label"), kinds.count("undo")) == (8, 1)
    seen.append(_label(anna, "3"))
    anna.saved()
    assert len(Api(second).labels_of(project, "anna")) == 8
    assert anna.page.locator("#lost").is_hidden()


def test_labels_that_wait_survive_a_reload(person: People, restarting) -> None:
    first = restarting()
    project = Api(first).project(CLASSES, texts())
    anna = person("anna", first)
    anna.lost_is_fine = True
    anna.open(project, "label")
    anna.wait_for_text()
    first.kill()
    for _ in range(4):
        _label(anna, "1")
    anna.page.goto("about:blank")
    second = restarting()
    anna.page.goto(f"{second.address}/#/p/{project}/label")
    anna.wait_for_text()
    anna.saved()
    assert list(Api(second).labels_of(project, "anna").values()) == [1, 1, 1, 1]


def test_a_label_whose_answer_was_lost_is_made_once(person: People, api: Api) -> None:
    project, anna = api.project(CLASSES, texts()), person("anna")
    anna.lost_is_fine = True
    anna.open(project, "label")
    anna.wait_for_text()
    broken: list[str] = []

    def lose_answers(route) -> None:
        if len(broken) < 3:
            broken.append(route.fetch().text())  # the server stores it, and the page never hears of it
            route.abort()
        else:
            route.continue_()

    anna.page.route("**/labels", lose_answers)
    _label(anna, "1")
    anna.saved()
    assert len(broken) == 3
    assert '"repeated":true' in broken[1]
    assert len(api.actions(project, "anna")) == 1
    assert list(api.labels_of(project, "anna").values()) == [1]


def test_two_tabs_send_each_label_once(person: People, api: Api) -> None:
    project, anna = api.project(CLASSES, texts()), person("anna")
    anna.open(project, "label", "strategy=order")
    anna.wait_for_text()
    other = anna.context.new_page()
    other.goto(f"{anna.server.address}/#/p/{project}/table")
    other.wait_for_selector(".grid-row")
    sent: list[str] = []
    for page in (anna.page, other):
        page.on("request", lambda request: sent.append(request.post_data) if request.url.endswith("/labels") else None)
    for _ in range(5):
        _label(anna, "2")
    anna.saved()
    assert len(sent) == len(set(sent)) == 5
    assert len(api.labels_of(project, "anna")) == 5
