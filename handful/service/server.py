"""Running a server: one process per folder, on an address that is free."""

from __future__ import annotations

import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from errno import EADDRINUSE
from pathlib import Path
from threading import Timer
from typing import IO, Any

import uvicorn

from ..errors import SettingError
from ..utils.parallel import single_blas_thread
from .logs import log, write_logs
from .security import kept_token
from .serving.app import serving_app
from .serving.learning import ServedModel
from .settings import FILE_NAME, ServiceSettings
from .store.database import Database
from .store.keys import has_keys
from .studio import studio_app

SWITCH_INTERVAL = 0.0002  # seconds for which a thread that computes may keep others waiting
GRACE = 90  # seconds for which requests that were accepted are finished when the server stops


def run_studio(settings: ServiceSettings, say: Callable[[str], None], open_browser: bool, example: bool = False) -> None:
    """Serve projects until somebody stops it; `example` opens the example project, made if it is not there."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    with locked(settings) as token_wanted, bound(settings) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        if token_wanted and settings.token is None:
            settings = replace(settings, token=kept_token(settings.folder))
        check_reachable(settings)
        address = page_address(settings) + ("&open=example" if example and settings.token else "")
        say(f"Handful Studio: {address}")
        if open_browser:
            Timer(1.0, webbrowser.open, [address]).start()
        run(studio_app(settings), settings, listener)


def run_serving(
    folder: Path, settings: ServiceSettings, say: Callable[[str], None], vectors: str | None, learns: bool, new: bool
) -> None:
    """Serve a saved classifier until somebody stops it."""
    model = ServedModel(folder, vectors, learns, new)
    with bound(settings) as listener:
        settings = replace(settings, port=listener.getsockname()[1])
        if settings.loopback and settings.token is None and not settings.open_to_all:
            settings.folder.mkdir(parents=True, exist_ok=True)
            settings = replace(settings, token=kept_token(settings.folder))
        check_reachable(settings)
        say(f"Serving {model.name}: {page_address(replace(settings, token=None))}")
        if settings.token:
            say(f"Send the header `Authorization: Bearer {settings.token}`.")
        run(serving_app(model, settings, _keys(settings)), settings, listener)


def _keys(settings: ServiceSettings) -> Database | None:
    """The store, if there is one: it has the keys."""
    if settings.database is None and not (settings.folder / FILE_NAME).exists():
        return None
    database = Database(settings.url)
    database.prepare()
    return database


def page_address(settings: ServiceSettings) -> str:
    """The address of the page; the token is behind #, so that browsers send it to nobody."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    token = f"#token={settings.token}" if settings.token else ""
    return f"http://{host}:{settings.port}{settings.root_path}/{token}"


def run(app: Any, settings: ServiceSettings, listener: socket.socket) -> None:
    """Run an application on a socket; what was accepted is finished before it ends."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    write_logs()
    log("start", host=settings.host, port=settings.port)
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    config = uvicorn.Config(app, timeout_graceful_shutdown=GRACE, **options)
    signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it again at the end; asked to stop, it has done so
    with single_blas_thread():  # requests share the cores, and small products gain nothing from more threads
        uvicorn.Server(config).run(sockets=[listener])
    log("stop")


def check_reachable(settings: ServiceSettings) -> None:
    """Refuse an address that others can reach while there are no keys, or no name under which it is reached."""
    if settings.loopback:
        return
    if not settings.names:
        raise SettingError(f"`host` is {settings.host}: say under which names it is reached, with --allow-host NAME.")
    database = Database(settings.url)
    try:
        database.prepare()
        with database.reading() as connection:
            if not has_keys(connection):
                raise SettingError(
                    f"`host` is {settings.host}, which others can reach: add a key first, with handful keys add."
                )
    finally:
        database.close()


@contextmanager
def bound(settings: ServiceSettings) -> Iterator[socket.socket]:
    """A socket on the address; a port in use gets a sentence."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:  # else asyncio leaves delays on
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
            listener.listen(2048)
        except OSError as error:
            reason = "is in use" if error.errno == EADDRINUSE else f"cannot be used ({error.strerror or error})"
            raise SettingError(f"Port {settings.port} of {settings.host} {reason}: choose another one with `port`.") from error
        yield listener


@contextmanager
def locked(settings: ServiceSettings) -> Iterator[bool]:
    """Keep a folder with an SQLite file to one server; gives whether a token of the folder is to be used."""
    if settings.database is not None:
        yield settings.loopback
        return
    with (settings.folder / ".lock").open("a+") as stream:
        _lock(stream, settings.folder)
        yield settings.loopback


def _lock(stream: IO[str], folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise SettingError(f"Another server is using {folder}: stop it, or choose another folder.") from error
