"""Errors as answers, the same for every application."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..errors import HandfulError
from .errors import ApiError, InvalidError
from .middleware import error_body, error_headers, missing_route


def add_handlers(app: FastAPI) -> None:
    """Answer every error with a typed body."""

    @app.exception_handler(HandfulError)
    async def known(_: Request, error: HandfulError) -> JSONResponse:
        return _answer(error if isinstance(error, ApiError) else InvalidError(str(error)))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        details = [
            {"where": ".".join(map(str, one["loc"])), "message": str(one["msg"])} for one in error.errors()[:20]
        ]  # without the values, which may be texts
        first = details[0] if details else {"where": "body", "message": "it cannot be read"}
        return _answer(InvalidError(f"The request is invalid at {first['where']}: {first['message']}."), details)

    @app.exception_handler(HTTPException)
    async def http(_: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 404:
            return _answer(missing_route())
        made = ApiError(str(error.detail))
        made.status, made.code = error.status_code, "method_not_allowed" if error.status_code == 405 else "invalid"
        return JSONResponse(error_body(made), made.status, headers=error.headers)


def _answer(error: ApiError, details: list[dict[str, str]] | None = None) -> JSONResponse:
    return JSONResponse(error_body(error, details), error.status, headers=error_headers(error))
