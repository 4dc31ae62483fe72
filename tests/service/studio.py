"""A studio in this process, for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.testclient import TestClient

from handful.service.context import Service
from handful.service.settings import ServiceSettings
from handful.service.store.keys import add_key
from handful.service.studio import studio_app

API = "/api/v1"
TEXTS = {
    "food": ["the soup was tasty", "a lovely dinner", "we had fresh bread", "this cake is delicious"],
    "travel": ["my train came late", "a delayed flight", "they lost my luggage", "the bus was full"],
    "money": ["the bank charged a fee", "my card was refused", "send me the invoice", "a refund, please"],
}


class Studio:
    """A client of a studio; every answer is checked for the security headers and against 5xx."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        app = studio_app(settings)
        self.service: Service = app.state.service
        self._client = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=False)
        self._client.__enter__()
        self._closed = False

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._client.__exit__(None, None, None)

    def request(self, method: str, path: str, key: str | None = "secret", name: str | None = None, **given: Any) -> Any:
        headers = dict(given.pop("headers", {}))
        if key:
            headers["authorization"] = f"Bearer {key}"
        if name:
            headers["x-handful-annotator"] = name
        path = path if path.startswith("/") else f"{API}/{path}"
        answer = self._client.request(method, path, headers=headers, **given)
        assert answer.status_code < 500, answer.text
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        if answer.status_code >= 400:
            error = answer.json()["error"]
            assert error["code"]
            assert error["message"].strip().endswith((".", "?")) or error["message"]
        return answer

    def ask(self, method: str, path: str, status: int = 200, **given: Any) -> Any:
        """The JSON of an answer with this status."""
        answer = self.request(method, path, **given)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content and "json" in answer.headers["content-type"] else answer

    def get(self, path: str, **given: Any) -> Any:
        return self.ask("GET", path, **given)

    def post(self, path: str, body: Any = None, status: int = 200, **given: Any) -> Any:
        return self.ask("POST", path, status, json={} if body is None else body, **given)

    def error(self, method: str, path: str, status: int, **given: Any) -> str:
        """The sentence of an answer that is an error."""
        message: str = self.ask(method, path, status, **given)["error"]["message"]
        return message

    # Projects

    def project(self, classes: list[str] | None = None, key: str = "secret", **given: Any) -> str:
        """The path of a new project with these classes."""
        body = {"name": "p", "classes": [{"name": name} for name in classes or []], **given}
        return f"projects/{self.post('projects', body, 201, key=key)['id']}"

    def labelled(self, per_class: int = 4, unlabelled: int = 0) -> str:
        """The path of a project with labelled texts of three classes, and then some without a label."""
        path = self.project()
        rows = [{"text": text, "label": label} for label, texts in TEXTS.items() for text in texts[:per_class]]
        rows += [{"text": f"{TEXTS['food'][i % 4]} number {i}"} for i in range(unlabelled)]
        self.post(f"{path}/texts", {"texts": rows}, 201)
        return path

    def add(self, path: str, *texts: str, **given: Any) -> None:
        self.post(f"{path}/texts", {"texts": [{"text": text} for text in texts]}, 201, **given)

    def label(self, path: str, text: int, number: int | None, status: int = 200, name: str | None = None, **given: Any) -> Any:
        """Give a text a class; None clears it."""
        body = {"texts": [text], **({"class": number} if number is not None else {"mark": "clear"}), **given}
        return self.post(f"{path}/labels", body, status, name=name)

    def text(self, path: str, number: int) -> Any:
        return self.get(f"{path}/texts/{number}")

    def job(self, facts: Any, key: str = "secret") -> Any:
        """A job when it is done."""
        self.service.jobs.wait(facts["id"])
        return self.get(f"jobs/{facts['id']}", key=key)

    def upload(self, path: str, content: bytes, form: str = "csv", **query: Any) -> Any:
        """The job of an import, when it is done."""
        return self.job(self.ask("POST", f"{path}/import", 202, params={"format": form, **query}, content=content))

    def add_key(self, account: str, role: Any = "admin") -> str:
        with self.service.database.writing() as connection:
            return add_key(connection, account, role)


MakeStudio = Callable[..., Studio]
