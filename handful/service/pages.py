"""Pages that ship: the studio, and the description of an API."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

PAGE = Path(__file__).parent / "page"
FRESH = {"cache-control": "no-cache"}  # asked for again each time, sent again only if it has changed


def add_page(app: FastAPI) -> None:
    """The studio's page at /."""

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE / "index.html", headers=FRESH)


def add_docs(app: FastAPI) -> None:
    """The description of the API at /docs, and the files of all pages under /page."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(PAGE / "docs.html", headers=FRESH)

    app.mount("/page", _FreshFiles(directory=PAGE), name="page")


class _FreshFiles(StaticFiles):
    """Files that a browser asks for again, so that a new version is seen at once."""

    def file_response(self, *given: object, **options: object) -> FileResponse:
        response: FileResponse = super().file_response(*given, **options)  # type: ignore[arg-type, assignment]
        response.headers["cache-control"] = "no-cache"
        return response
