"""Keys, roles, owners, hosts, origins and limits."""

from __future__ import annotations

import logging
import stat
import threading
from typing import Any

import pytest
from sqlalchemy import select

from handful.service.logs import JsonLines
from handful.service.security import kept_token
from handful.service.settings import Limits
from handful.service.store.keys import revoke_key
from handful.service.store.tables import KEYS

from .studio import MakeStudio, Studio


@pytest.mark.parametrize("key", [None, "", "wrong", "handful_00000000_x", "handful__", "sécret"])
def test_without_a_valid_key_there_is_nothing(studio: Studio, key: str | None) -> None:
    answer = studio.request(
        "GET", "projects", key=None, headers={"authorization": f"Bearer {key}".encode()} if key is not None else {}
    )
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert studio.request("POST", "projects", key=None, content=b"not even JSON").status_code == 401


@pytest.mark.parametrize("path", ["/health", "/ready", "/", "/docs", "/page/docs.js", "/openapi.json"])
def test_pages_and_health_need_no_key(studio: Studio, path: str) -> None:
    assert studio.request("GET", path, key=None).status_code == 200


@pytest.mark.parametrize("path", ["/metrics", "/page/../studio.py", "/page/%2e%2e/studio.py", "/page//etc/passwd", "/nope"])
def test_nothing_else_is_open(studio: Studio, path: str) -> None:
    assert studio.request("GET", path, key=None).status_code in (401, 404)


def test_keys_are_stored_hashed_and_work_until_revoked(studio: Studio) -> None:
    key = studio.add_key("anna", "label")
    _, name, secret = key.split("_", 2)
    with studio.service.database.reading() as connection:
        row = connection.execute(select(KEYS).where(KEYS.c.id == name)).one()
    assert secret not in str(row)
    for headers in ({"authorization": f"Bearer {key}"}, {"x-api-key": key}):
        me = studio.get("me", key=None, headers=headers)
        assert (me["account"], me["role"], me["annotator"]) == ("anna", "label", "anna")
    assert studio.request("GET", "me", key=key, name="bob").status_code == 403
    with studio.service.database.writing() as connection:
        revoke_key(connection, name)
    assert studio.request("GET", "me", key=key).status_code == 401


def test_the_token_is_kept_and_only_its_owner_reads_it(tmp_path: Any) -> None:
    token = kept_token(tmp_path)
    assert kept_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert len(token) > 40


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("localhost", 200),
        ("[::1]:9", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("", 403),
    ],
)
def test_only_names_of_this_machine_are_answered(studio: Studio, host: str, status: int) -> None:
    assert studio.request("GET", "me", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://127.0.0.1:8000", 200), ("http://127.0.0.1:9000", 403), ("https://evil.example", 403), ("null", 403)],
)
def test_requests_of_other_pages_are_refused(studio: Studio, origin: str, status: int) -> None:
    answer = studio.request("GET", "me", headers={"origin": origin})
    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers


def test_another_page_can_be_allowed(make_studio: MakeStudio) -> None:
    studio = make_studio(origins=("https://ok.example",))
    headers = {"origin": "https://ok.example", "access-control-request-method": "POST"}
    answer = studio.request("OPTIONS", "projects", key=None, headers=headers)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, "https://ok.example")
    assert studio.request("GET", "me", headers={"origin": "https://ok.example"}).status_code == 200


def test_a_session_is_a_cookie_that_scripts_cannot_read(studio: Studio) -> None:
    answer = studio.request("POST", "session", key=None, json={"key": "secret"})
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie.lower() for part in ("httponly", "samesite=strict", "path=/"))
    name, value = cookie.split(";")[0].split("=")
    studio._client.cookies.clear()
    mine = {"cookie": f"{name}={value}"}
    try:
        assert studio.get("me", key=None, headers=mine)["account"] == "local"
        body = {"json": {"name": "x"}, "key": None}
        assert studio.request("POST", "projects", headers=mine, **body).status_code == 403
        assert studio.request("POST", "projects", headers=mine | {"origin": "https://evil.example"}, **body).status_code == 403
        assert studio.request("POST", "projects", headers=mine | {"origin": "http://127.0.0.1:8000"}, **body).status_code == 201
        studio._client.cookies.clear()
        assert studio.request("POST", "session", key=None, json={"key": "wrong"}).status_code == 401
    finally:
        studio._client.cookies.clear()


def test_projects_are_separate_until_they_are_shared(studio: Studio) -> None:
    anna, bob = studio.add_key("anna"), studio.add_key("bob")
    path = studio.project(["a", "b"], key=anna)
    assert studio.request("GET", path, key=bob).status_code == 404
    assert studio.request("GET", path).status_code == 404
    assert path.split("/")[1] not in str(studio.get("projects", key=bob))
    studio.ask("PUT", f"{path}/members/bob", 204, json={"role": "read"}, key=anna)
    assert studio.get(path, key=bob)["role"] == "read"
    assert studio.get(f"{path}/members", key=bob) == [{"account": "bob", "role": "read"}]
    studio.add(path, "hello", key=anna)
    label = {"texts": [0], "class": 1}
    assert studio.request("POST", f"{path}/labels", key=bob, json=label).status_code == 403
    studio.ask("PUT", f"{path}/members/bob", 204, json={"role": "label"}, key=anna)
    studio.post(f"{path}/labels", label, key=bob)
    assert studio.request("DELETE", path, key=bob).status_code == 403
    studio.ask("PUT", f"{path}/members/bob", 204, json={"role": "admin"}, key=anna)
    assert "Only the owner" in studio.error("DELETE", path, 409, key=bob)
    studio.ask("DELETE", f"{path}/members/bob", 204, key=anna)
    assert studio.request("GET", path, key=bob).status_code == 404


def test_a_key_may_not_do_more_than_its_role_even_with_its_own_project(studio: Studio) -> None:
    admin, reader = studio.add_key("carl"), studio.add_key("carl", "read")
    path = studio.project(["a", "b"], key=admin)
    assert studio.get(path, key=reader)["name"] == "p"
    assert "only read" in studio.error("PATCH", path, 403, key=reader, json={"name": "x"})
    assert studio.request("POST", "projects", key=reader, json={"name": "x"}).status_code == 403


# Limits


def test_bodies_are_refused_before_they_are_parsed(make_studio: MakeStudio) -> None:
    studio = make_studio(Limits(body_bytes=1_000, upload_bytes=2_000))
    path = studio.project()
    large = b'{"texts": [' + b" " * 2_000
    assert studio.request("POST", f"{path}/texts", content=large).status_code == 413

    def pieces() -> Any:
        for _ in range(30):
            yield b" " * 100

    assert studio.request("POST", f"{path}/texts", content=pieces()).status_code == 413
    assert studio.request("POST", f"{path}/import", params={"format": "csv"}, content=pieces()).status_code == 413
    assert studio.upload(path, b"text\n" + b"x" * 1_500)["state"] == "done"
    assert [one.name for one in studio.service.jobs.uploads.iterdir()] == []


def test_too_many_requests_at_once_are_told_to_wait(make_studio: MakeStudio, monkeypatch: pytest.MonkeyPatch) -> None:
    studio = make_studio(Limits(concurrent_requests=2))
    inside, go = threading.Barrier(3), threading.Event()

    def slow(*_: Any) -> list[Any]:
        inside.wait(10)
        go.wait(10)
        return []

    monkeypatch.setattr("handful.service.routes.projects.list_projects", slow)
    threads = [threading.Thread(target=studio.get, args=("projects",)) for _ in range(2)]
    [thread.start() for thread in threads]
    inside.wait(10)
    answer = studio.request("GET", "/health")
    go.set()
    [thread.join() for thread in threads]
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert studio.request("GET", "/health").status_code == 200


def test_logs_have_no_texts(studio: Studio, caplog: pytest.LogCaptureFixture) -> None:
    path = studio.project(["secretclass"])
    with caplog.at_level(logging.INFO, "handful.service"):
        studio.add(path, "secretword")
        studio.get(f"{path}/texts", params={"search": "secretword"})
        studio.error("POST", f"{path}/texts", 422, json={"texts": [{"text": "secretword", "x": "secretword"}]})
    lines = [JsonLines().format(record) for record in caplog.records]
    assert len(lines) >= 3
    assert "/api/v1/projects/{project}/texts" in "".join(lines)
    assert "secret" not in "".join(lines)


def test_an_error_of_ours_is_a_typed_answer_and_a_line_without_its_message(
    studio: Studio, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("secretword")

    monkeypatch.setattr("handful.service.routes.projects.list_projects", fail)
    answer = studio._client.get("/api/v1/projects", headers={"authorization": "Bearer secret"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "failure")
    assert "content-security-policy" in answer.headers
    lines = "".join(JsonLines().format(record) for record in caplog.records)
    assert "RuntimeError" in lines
    assert "secretword" not in lines + answer.text
