"""Who may come in: names of the host, origins of pages, tokens and keys."""

from __future__ import annotations

import hmac
import os
import re
import secrets
from base64 import b64decode
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .errors import ForbiddenError, UnauthorizedError
from .settings import ServiceSettings
from .store.database import Database
from .store.keys import find_key
from .store.names import LOCAL
from .store.projects import Person

Headers = dict[str, str]
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
ANNOTATOR_HEADER = "x-handful-annotator"
LONGEST_NAME = 200
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def kept_token(folder: Path) -> str:
    """The token of the local account: made once, and readable only by the owner of the folder."""
    path = folder / "token"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(secrets.token_urlsafe(32))
    except FileExistsError:
        pass
    return path.read_text().strip()


def cookie_name(settings: ServiceSettings) -> str:
    """The name of the session's cookie; browsers share cookies between the ports of a machine."""
    return f"handful_{settings.port}"


def check_host(settings: ServiceSettings, headers: Headers) -> None:
    """Refuse requests for other names: a page elsewhere could have its own name lead to this machine."""
    name = _host_name(headers.get("host", ""))
    if name not in settings.names and "*" not in settings.names:
        raise ForbiddenError("This server is not reached under that name: start it with --allow-host NAME to allow it.")


def check_origin(settings: ServiceSettings, headers: Headers, method: str, by_cookie: bool) -> None:
    """Refuse requests of other pages."""
    origin = headers.get("origin")
    if origin is None:
        if by_cookie and method not in SAFE_METHODS and headers.get("sec-fetch-site", "none") not in ("same-origin",):
            raise ForbiddenError("This request does not say which page sent it: send the key in the header Authorization.")
        return
    own = origin != "null" and urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    if not own and origin not in settings.origins:
        raise ForbiddenError("This request comes from another page: start the server with --allow-origin to allow it.")


def _host_name(host: str) -> str:
    """The name in the header Host, without the port.

    >>> _host_name("[::1]:8000"), _host_name("LocalHost:80")
    ('::1', 'localhost')
    """
    match = re.fullmatch(r"(?:\[([0-9a-fA-F:.]+)\]|([^:\[\]/@]*))(?::\d+)?", host)
    return (match[1] or match[2] or "").lower() if match else ""


def given_key(settings: ServiceSettings, headers: Headers) -> tuple[str | None, bool]:
    """The key or token of a request, and whether it came as a cookie."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        return value.strip(), False
    if kind.lower() == "basic":
        try:
            return b64decode(value, validate=True).decode().partition(":")[2], False
        except ValueError:
            return None, False
    for part in headers.get("cookie", "").split(";"):
        name, _, content = part.strip().partition("=")
        if name == cookie_name(settings):
            return content, True
    return headers.get("x-api-key"), False


def is_token(settings: ServiceSettings, key: str) -> bool:
    """Whether this is the token of the local account."""
    return bool(settings.token) and hmac.compare_digest(key.encode(), (settings.token or "").encode())


def person_of_key(settings: ServiceSettings, database: Database | None, key: str | None, headers: Headers) -> Person:
    """The person that a key or token belongs to; labels made with the token are under the name that the request gives."""
    name = annotator_name(headers)
    if settings.open_to_all:
        return Person(LOCAL, name or LOCAL, "admin")
    if key is None:
        raise UnauthorizedError
    if is_token(settings, key):
        return Person(LOCAL, name or LOCAL, "admin")
    row = None
    if database is not None:
        with database.reading() as connection:
            row = find_key(connection, key)
    if row is None:
        raise UnauthorizedError
    if name not in (None, row.account):
        raise ForbiddenError(f"This key belongs to {row.account}: leave the header {ANNOTATOR_HEADER} out.")
    return Person(row.account, row.account, row.role)


def annotator_name(headers: Headers) -> str | None:
    """The name that a request gives, percent-encoded so that any name can be given."""
    written = headers.get(ANNOTATOR_HEADER)
    if written is None:
        return None
    name = unquote(written, errors="replace").strip()
    if not name or len(name) > LONGEST_NAME or "\x00" in name:
        raise ForbiddenError(f"The header {ANNOTATOR_HEADER} must have a name of at most {LONGEST_NAME} characters.")
    return name
