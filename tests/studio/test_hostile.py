"""Texts, classes, notes, names and files that try to be more than text are shown as text, in every view."""

from __future__ import annotations

import pytest

from .person import VIEWS, Api, People
from .trips import pairs

EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"`${window.hacked=1}'
NAMES = [EVIL[:190], "</option><b>bold</b>", "javascript:window.hacked=1//", "ملف {{7*7}} \u202eevil\u202c"]
TEXTS = [
    EVIL,
    "</textarea><iframe srcdoc='x'></iframe>",
    '=HYPERLINK("http://x")',
    "🙂🙂 {{constructor.constructor('x')()}} 🙂 late train",
]


@pytest.fixture
def project(api: Api) -> str:
    rows = [(text, NAMES[place % 4]) for place, text in enumerate([*TEXTS, *(text for text, _ in pairs()[:20])])]
    made = api.project(NAMES, [*rows, *TEXTS, EVIL + "!"], name=f"Evil {EVIL}"[:190])
    api.label(made, [0], 2, f"bert{EVIL}".replace("\n", "")[:100].encode("ascii", "ignore").decode())
    return made


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_shows_text_as_text(person: People, project: str, view: str) -> None:
    anna = person("<b>anna</b>")
    anna.open(project, view)
    if view == "use":
        anna.page.get_by_label("A text to try").fill(EVIL)
    anna.page.get_by_text(NAMES[1]).first.wait_for(state="attached")
    anna.page.wait_for_timeout(500)
    assert anna.page.evaluate("window.hacked") is None
    assert anna.page.evaluate("document.querySelectorAll('main b, main script, main iframe, main img, nav b').length") == 0
    assert NAMES[1] in anna.page.locator("main").text_content()
    assert anna.page.locator("#where").inner_text().startswith("Evil <img src=x")
    assert "<b>anna</b>" in anna.page.locator("#you").inner_text()


def test_hostile_texts_are_labelled_and_shaded_at_the_right_letters(person: People, project: str, api: Api) -> None:
    anna = person("anna")
    for number in (24, 25, 26, 27):
        anna.open(project, "label", f"text={number}")
        anna.shows(TEXTS[number - 24])
    anna.page.wait_for_selector("mark.spoke")
    assert set(anna.page.locator("mark.spoke").all_inner_texts()) <= {"🙂🙂", "🙂", "constructor", "x", "late", "train"}
    assert anna.page.evaluate("window.hacked") is None
    anna.press("2")
    anna.saved()
    assert api.labels_of(project, "anna") == {27: 2}


def test_hostile_messages_of_the_server_are_text(person: People, api: Api) -> None:
    anna = person("anna")
    project = api.project(["a", "b"], ["x"])
    anna.open(project, "data")
    anna.page.get_by_label("New classes, one per line").fill(EVIL)
    anna.button("Add these classes").click()
    anna.button(f"Change class {EVIL}").wait_for()
    anna.button(f"Change class {EVIL}").click()
    anna.page.get_by_text("Merge or delete").click()
    anna.button("Delete this class").click()
    anna.see(f"{EVIL} was deleted")
    assert anna.page.evaluate("window.hacked") is None


def test_the_policy_forbids_inline_scripts_and_styles(person: People) -> None:
    anna = person("anna")
    policy = anna.server.client.get(anna.server.address + "/").headers["content-security-policy"]
    assert "unsafe" not in policy
    anna.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked=1\">')")
    anna.page.wait_for_timeout(300)
    assert anna.page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in one for one in anna.troubles)
    anna.troubles = []
