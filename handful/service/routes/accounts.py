"""Who is asking, sessions of browsers, and with whom projects are shared."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from ... import __version__
from ..context import Context, Someone
from ..learning.models import available_encoders
from ..schemas import Account, Member, MemberRequest, Name, ProjectId, SessionRequest
from ..security import cookie_name, person_of_key
from ..store.projects import members, set_member

router = APIRouter(tags=["accounts"])
MONTH = 30 * 86_400  # seconds


@router.get("/me")
async def me(service: Context, person: Someone) -> Account:
    """Who is asking, and what is allowed."""
    limits = asdict(service.settings.limits)
    return Account(account=person.account, annotator=person.annotator, role=person.role, limits=limits, version=__version__)


@router.post("/session", status_code=204)
def open_session(service: Context, request: Request, body: SessionRequest) -> Response:
    """Keep a key or the token as a cookie that scripts cannot read, so that links can be followed."""
    person_of_key(service.settings, service.database, body.key, {})
    response = Response(status_code=204)
    secure = request.url.scheme == "https"
    name, path = cookie_name(service.settings), service.settings.root_path or "/"
    response.set_cookie(name, body.key, MONTH, path=path, secure=secure, httponly=True, samesite="strict")
    return response


@router.delete("/session", status_code=204)
async def close_session(service: Context) -> Response:
    """Forget the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(cookie_name(service.settings), service.settings.root_path or "/")
    return response


@router.get("/encoders")
def encoders(person: Someone) -> list[dict[str, Any]]:
    """The encoders that a project may use, and whether each is installed."""
    return available_encoders()


@router.get("/projects/{project}/members")
def list_members(service: Context, person: Someone, project: ProjectId) -> list[Member]:
    """The accounts that a project is shared with."""
    row = service.project(person, project)
    with service.database.reading() as connection:
        return [Member.model_validate(one) for one in members(connection, row.id)]


@router.put("/projects/{project}/members/{account}", status_code=204)
def share(service: Context, person: Someone, project: ProjectId, account: Name, body: MemberRequest) -> None:
    """Share a project with an account, or change what it may do."""
    with service.changing(person, project, "admin") as (connection, row):
        set_member(connection, row.id, account, body.role)


@router.delete("/projects/{project}/members/{account}", status_code=204)
def unshare(service: Context, person: Someone, project: ProjectId, account: Name) -> None:
    """No longer share a project with an account."""
    with service.changing(person, project, "admin") as (connection, row):
        set_member(connection, row.id, account, None)
