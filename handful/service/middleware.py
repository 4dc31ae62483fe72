"""The gate that every request passes: names and origins, keys, limits, security headers, a line in the log, and metrics."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from anyio.to_thread import run_sync

from .errors import NO_ROOM, ApiError, BusyError, FailureError, FullError, NotFoundError, TooLargeError, is_full
from .logs import log, log_failure
from .metrics import Metrics
from .security import (
    SAFE_METHODS,
    SECURITY_HEADERS,
    Headers,
    check_host,
    check_origin,
    given_key,
    is_token,
    person_of_key,
)
from .settings import ServiceSettings
from .store.database import Database

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

UPLOADS = re.compile(r".*/(?:import|restore|from-model|predict-file)")
PUBLIC = re.compile(r"/(?:health|ready|docs|openapi\.json|v2/health/(?:live|ready))?|/page/[\w./-]*")
API = "/api/v1"
ALLOWED_HEADERS = "authorization, content-type, x-api-key, x-handful-annotator"


class Gate:
    """Lets a request in, or answers it with a sentence; nothing of the body is read before."""

    def __init__(self, app: App, settings: ServiceSettings, database: Database | None, metrics: Metrics) -> None:
        self._app, self._settings, self._database, self._metrics = app, settings, database, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        answer = _Answer(send, self._headers(headers))
        start = time.perf_counter()
        self._metrics.active += 1
        try:
            await self._admit(scope, headers)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                await answer.empty()
                return
            limited = _Limited(receive, answer, self._body_limit(scope), headers)
            await self._app(scope, limited.receive, answer.send)
        except ApiError as error:
            if answer.status:
                raise
            await answer.error(error)
        except Exception as error:
            if is_full(error) and not answer.status:
                await answer.error(FullError(NO_ROOM))
                return
            log_failure("request", route=getattr(scope.get("route"), "path", None))
            if not answer.status:
                await answer.error(FailureError())
        finally:
            self._metrics.active -= 1
            self._record(scope, answer.status, time.perf_counter() - start)

    async def _admit(self, scope: Scope, headers: Headers) -> None:
        settings, method = self._settings, scope["method"]
        check_host(settings, headers)
        key, by_cookie = given_key(settings, headers)
        check_origin(settings, headers, method, by_cookie)
        if self._metrics.active > settings.limits.concurrent_requests:
            raise BusyError(f"{settings.limits.concurrent_requests} requests are being answered: send this one again later.")
        path = scope["path"].removeprefix(settings.root_path) or "/"
        is_page = method in SAFE_METHODS and bool(PUBLIC.fullmatch(path))
        preflight = method == "OPTIONS" and headers.get("origin") in settings.origins
        if is_page or preflight or (path == "/api/v1/session" and method in ("POST", "DELETE")):
            return
        local = key is None or settings.open_to_all or is_token(settings, key)  # needs no look into the store
        arguments = settings, self._database, key, headers
        person = person_of_key(*arguments) if local else await run_sync(person_of_key, *arguments)
        scope.setdefault("state", {})["person"] = person

    def _body_limit(self, scope: Scope) -> int:
        limits = self._settings.limits
        return limits.upload_bytes if UPLOADS.fullmatch(scope["path"]) else limits.body_bytes

    def _headers(self, headers: Headers) -> dict[str, str]:
        origin = headers.get("origin")
        if origin not in self._settings.origins or origin is None:
            return SECURITY_HEADERS
        allowed = {"access-control-allow-origin": origin, "vary": "origin"}
        return (
            SECURITY_HEADERS | allowed | {"access-control-allow-headers": ALLOWED_HEADERS, "access-control-allow-methods": "*"}
        )

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        path = getattr(scope.get("route"), "path", "other")  # the pattern: a path or a query may hold words of somebody
        if scope["path"].startswith(API) and not path.startswith(API) and path != "other":
            path = API + path
        self._metrics.request(scope["method"], path, status, seconds)
        person = scope.get("state", {}).get("person")
        facts = {"method": scope["method"], "route": path, "status": status, "ms": round(1000 * seconds, 1)}
        log("request", **facts, account=person.account if person else None)


class _Limited:
    """A body that is counted while it arrives."""

    def __init__(self, receive: Receive, answer: _Answer, most: int, headers: Headers) -> None:
        self._receive, self._answer, self._most, self._seen = receive, answer, most, 0
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > most:
            raise self._error()

    def _error(self) -> TooLargeError:
        return TooLargeError(f"The body is larger than {self._most:,} bytes: send less at once.")

    async def receive(self) -> Message:
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > self._most:
            self._answer.refusal = self._error()
            raise self._answer.refusal
        return message


class _Answer:
    """A response with the security headers; it knows whether it has begun."""

    def __init__(self, send: Send, headers: dict[str, str]) -> None:
        self._send, self._headers, self.status = send, headers, 0
        self.refusal: ApiError | None = None  # replaces whatever the application answers to a body that it could not read

    async def send(self, message: Message) -> None:
        if self.refusal:
            if not self.status:
                await self.error(self.refusal)
            return
        await self._pass(message)

    async def _pass(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            there = {name.lower() for name, _ in message.get("headers", [])}
            more = {"cache-control": "no-store", **self._headers}
            extra = [(name.encode(), value.encode()) for name, value in more.items() if name.encode() not in there]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await self._send(message)

    async def error(self, error: ApiError) -> None:
        body = json.dumps(error_body(error)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        headers += [(name.encode(), value.encode()) for name, value in error_headers(error).items()]
        await self._pass({"type": "http.response.start", "status": error.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})

    async def empty(self) -> None:
        await self._pass({"type": "http.response.start", "status": 204, "headers": []})
        await self._send({"type": "http.response.body", "body": b""})


def error_body(error: ApiError, details: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """The body of every answer that is an error."""
    return {"error": {"code": error.code, "message": str(error), **({"details": details} if details else {})}}


def error_headers(error: ApiError) -> dict[str, str]:
    """Headers that go with a status."""
    if error.status == 401:
        return {"www-authenticate": 'Bearer realm="handful"'}
    return {"retry-after": "1"} if error.status in (429, 503) else {}


def missing_route() -> NotFoundError:
    """The error about an address that is not there."""
    return NotFoundError("There is nothing at this address: see /docs for what there is.")
