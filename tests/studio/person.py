"""People in front of the studio's page, each with a browser of their own; and what the server says, asked without one."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import httpx
from service.running import Server

VIEWS = ("data", "label", "table", "map", "watch", "clean", "together", "use")
WAIT = 15_000  # milliseconds for something to appear


class Person:
    """Opens the page and does things in it as a person would; `troubles` has every error of the console."""

    def __init__(self, context: Any, server: Server, name: str | None = None) -> None:
        self.server, self.troubles = server, list[str]()
        self.lost_is_fine = False
        self.context, self.page = context, context.new_page()
        self.page.set_default_timeout(WAIT)
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("dialog", lambda dialog: self.troubles.append(f"dialog: {dialog.message}"))
        self.page.on("request", self._check)
        if name:
            keep = f"localStorage.getItem('handful.name') ?? localStorage.setItem('handful.name', {json.dumps(name)})"
            context.add_init_script(f"if (location.protocol !== 'about:') {keep}")
        self.page.goto(f"{server.address}/#token={server.token}")
        self.until("document.getElementById('sync').textContent !== ''")

    def _note(self, message: Any) -> None:
        lost = message.text.startswith("Failed to load resource: net::ERR_")  # which of these depends on when the server died
        if message.type in ("error", "warning") and not (lost and self.lost_is_fine):
            self.troubles.append(message.text)

    def _check(self, request: Any) -> None:
        if not request.url.startswith((self.server.address, "blob:", "data:")):
            self.troubles.append(f"asked for {request.url}")

    def open(self, project: str, view: str = "label", query: str = "") -> None:
        self.page.goto(f"{self.server.address}/#/p/{project}/{view}{query and f'?{query}'}")
        self.page.wait_for_selector(f".view-{view}")

    @property
    def project(self) -> str:
        found = re.search(r"#/p/(\w+)/", self.page.url)
        assert found, self.page.url
        return found[1]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def see(self, text: str) -> None:
        """Wait until a text is seen somewhere."""
        self.page.get_by_text(text, exact=False).first.wait_for(state="visible")

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name)

    @property
    def text(self) -> str:
        """The text that is to be labelled."""
        return str(self.page.locator(".labelling .text").inner_text())

    def wait_for_text(self) -> str:
        """Wait until there is a text to label, with its prediction."""
        self.page.wait_for_selector(".labelling:not(.nothing) .text")
        self.page.wait_for_selector(".class .share")
        return self.text

    def saved(self) -> None:
        """Wait until the server has answered everything."""
        self.until("document.getElementById('sync').textContent === 'All saved'")

    def until(self, expression: str, given: Any = None) -> None:
        """Wait until an expression is true; the page's policy does not allow Playwright's own way to wait for one."""
        end = time.monotonic() + WAIT / 1000
        while not self.page.evaluate(expression, given):
            assert time.monotonic() < end, f"It never came true: {expression} ({given})"
            self.page.wait_for_timeout(30)

    def shows(self, text: str) -> None:
        """Wait until this is the text to label."""
        self.until("text => document.getElementById('text').textContent === text", text)

    def shows_another(self, text: str) -> None:
        """Wait until this is no longer the text to label."""
        self.until("text => document.getElementById('text').textContent !== text", text)


People = Callable[..., Person]


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
