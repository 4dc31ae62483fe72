"""Errors of the API: a status, a code for programs and a sentence for people."""

from __future__ import annotations

from errno import EDQUOT, ENOSPC

from ..errors import HandfulError

NO_ROOM = "The disk is full, and nothing of this request was kept: make room, and send it again."


class ApiError(HandfulError):
    """A request cannot be answered; `code` is for programs, the message for people."""

    status, code = 422, "invalid"


class UnauthorizedError(ApiError):
    """There is no valid key."""

    status, code = 401, "unauthorized"

    def __init__(self) -> None:
        super().__init__(
            "This needs a key: send it as `Authorization: Bearer KEY`, or open the address that the server printed."
        )


class ForbiddenError(ApiError):
    """The key does not allow this."""

    status, code = 403, "forbidden"


class NotFoundError(ApiError):
    """It is not there, or it is somebody else's."""

    status, code = 404, "not_found"


class ConflictError(ApiError):
    """It does not fit the present state."""

    status, code = 409, "conflict"


class TooLargeError(ApiError):
    """A body or a number is beyond its limit."""

    status, code = 413, "too_large"


class InvalidError(ApiError):
    """A value cannot be used."""


class BusyError(ApiError):
    """Too much at once."""

    status, code = 429, "busy"


class FullError(ApiError):
    """The store cannot be written to."""

    status, code = 507, "store_full"


class UnavailableError(ApiError):
    """The store cannot be used at the moment."""

    status, code = 503, "unavailable"


class FailureError(ApiError):
    """An error in Handful itself."""

    status, code = 500, "failure"

    def __init__(self) -> None:
        super().__init__("Handful failed to answer this: see the server's log, and report it.")


def is_full(error: BaseException) -> bool:
    """Whether a disk had no room."""
    return isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT)
