"""Logs: one line of JSON per event on standard error. Texts, names of classes and keys are never written."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

LOGGER = logging.getLogger("handful.service")


class JsonLines(logging.Formatter):
    """Time, level, event and facts as one JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        facts = getattr(record, "facts", {})
        line = {"time": _time(record.created), "level": record.levelname.lower(), "event": record.getMessage(), **facts}
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
            line["at"] = _frames(record)
        return json.dumps(line)


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"


def _frames(record: logging.LogRecord) -> list[str]:
    """Where an error came from, without its message, which may quote a text."""
    found, trace = [], record.exc_info[2] if record.exc_info else None
    while trace:
        found.append(f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}")
        trace = trace.tb_next
    return found


def log(event: str, level: int = logging.INFO, **facts: Any) -> None:
    """Write an event with its facts."""
    LOGGER.log(level, event, extra={"facts": facts})


def log_failure(event: str, **facts: Any) -> None:
    """Write the error that is being handled."""
    LOGGER.error(event, exc_info=True, extra={"facts": facts})


def write_logs() -> None:
    """Send the logs of the service and of uvicorn to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("handful.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "handful.service" else logging.WARNING)
