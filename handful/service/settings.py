"""Settings of the service: where it listens, where it keeps things, and its limits."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from pathlib import Path

from ..errors import SettingError

PREFIX = "HANDFUL_"  # of environment variables: HANDFUL_PORT, HANDFUL_MOST_PROJECTS
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FILE_NAME = "handful.sqlite"


@dataclass(frozen=True)
class Limits:
    """Limits of requests and accounts; beyond them the answer is 413, 422 or 429."""

    body_bytes: int = 10_000_000  # of a JSON request
    upload_bytes: int = 500_000_000  # of a file
    texts_per_request: int = 1_000
    characters_per_text: int = 100_000
    concurrent_requests: int = 100
    jobs: int = 20  # of one account, waiting or running
    projects: int = 1_000  # of one account
    texts_per_project: int = 1_000_000
    classes: int = 1_000  # of one project
    labels_per_action: int = 10_000  # texts that get a label at once
    training_examples: int = 5_000  # that a model learns from: an even sample of more
    models_in_memory: int = 8  # projects whose models are kept

    @classmethod
    def from_environment(cls) -> Limits:
        """The defaults, except for those that variables such as HANDFUL_MOST_PROJECTS set."""
        found = {}
        for known in fields(cls):
            variable = f"{PREFIX}MOST_{known.name.upper()}"
            written = os.environ.get(variable)
            if written is None:
                continue
            if not written.isdecimal() or int(written) < 1:
                raise SettingError(f"The environment variable {variable} is {written!r}: it must be a number of at least 1.")
            found[known.name] = int(written)
        return cls(**found)


@dataclass(frozen=True)
class ServiceSettings:
    """All that a server is started with."""

    folder: Path  # of the store, uploads and results
    database: str | None = None  # a URL; by default an SQLite file in the folder
    host: str = "127.0.0.1"
    port: int = 8000
    root_path: str = ""  # under which a proxy publishes it
    token: str | None = None  # opens everything of the local account; only on loopback
    hosts: tuple[str, ...] = ()  # names under which it is reached, besides the address that it listens on
    origins: tuple[str, ...] = ()  # other pages that may call it (CORS)
    open_to_all: bool = False  # no key needed; only for a saved classifier on loopback
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535:
            raise SettingError(f"`port` is {self.port}: it must be from 0 to 65535.")
        if not self.loopback and (self.token or self.open_to_all):
            raise SettingError(
                f"`host` is {self.host}, which others can reach: use API keys (handful keys add) there, no token."
            )
        if self.root_path and (not self.root_path.startswith("/") or self.root_path.endswith("/")):
            raise SettingError(
                f"`root_path` is {self.root_path!r}: it must begin with / and not end with it, such as /handful."
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    @property
    def url(self) -> str:
        """The URL of the database."""
        return self.database or f"sqlite:///{(self.folder / FILE_NAME).absolute()}"

    @property
    def names(self) -> frozenset[str]:
        """Values of the header Host that are accepted, without the port."""
        own = LOOPBACK if self.loopback else () if self.host in ("0.0.0.0", "::") else (self.host,)  # noqa: S104
        return frozenset(name.lower() for name in (*own, *self.hosts))


def default_folder() -> Path:
    """The folder of projects: HANDFUL_PROJECTS, or one in the user's data directory."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(os.environ.get(f"{PREFIX}PROJECTS") or Path(base) / "handful")
