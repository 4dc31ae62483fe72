"""A folder of files that is updated atomically: `config.json` lists the others with their checksums, and is replaced last.

The names of the other files contain part of their checksum, so a new version never overwrites the old one. A process that reads
while another one writes gets either the old version or the new one, and a writer killed at any point leaves one of the two.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .files import ABANDONED, write_atomic

CONFIG = "config.json"
LARGEST_FILE = 1 << 31  # bytes
TRIES = 20  # at reading files that another process replaces meanwhile
PAUSE = 0.01  # seconds between two tries
_NAME = re.compile(r"[a-z]+\.[0-9a-f]{16}\.(?:json|safetensors)")
_LEFTOVER = re.compile(rf"{_NAME.pattern}|\.(?:{_NAME.pattern}|{re.escape(CONFIG)})\.\d+")


def write_bundle(folder: Path, config: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
    """Write files, keyed by names such as `model.safetensors`, to a folder; unrelated files in it are not touched."""
    folder.mkdir(parents=True, exist_ok=True)
    before = _named_files(folder)
    listed = {}
    for name, content in files.items():
        digest = hashlib.sha256(content).hexdigest()
        stem, ending = name.split(".")
        stored = f"{stem}.{digest[:16]}.{ending}"
        write_atomic(folder / stored, content)
        listed[name] = {"file": stored, "sha256": digest}
    written = json.dumps({**config, "files": listed}, indent=1, ensure_ascii=True) + "\n"
    write_atomic(folder / CONFIG, written.encode())
    current = {entry["file"] for entry in listed.values()}
    for name in (before | _abandoned(folder)) - current:
        (folder / name).unlink(missing_ok=True)


def read_bundle(folder: Path, wanted: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read the config and those wanted files that it lists, all of one version, and verify their checksums."""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE)
        config = read_bundle_config(folder)
        try:
            return config, {name: _read_file(folder, name, config) for name in wanted if name in config.get("files", {})}
        except FileNotFoundError as error:
            missing = error
    raise ModelError(f"{missing.filename} is missing: the model is incomplete, so create it again.") from missing


def read_bundle_config(folder: Path) -> dict[str, Any]:
    """The content of `config.json`; its entry `files` maps names to stored files."""
    path = folder / CONFIG
    if not path.exists() and not path.is_symlink():
        raise ModelError(f"{folder} is not a saved model: it has no {CONFIG}.")
    try:
        config = json.loads(_content(path))
        if not isinstance(config, dict) or not isinstance(config.get("files", {}), dict):
            raise ValueError("it is not an object that lists files")
        return config
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged ({error}): create the model again.") from error


def _read_file(folder: Path, name: str, config: Mapping[str, Any]) -> bytes:
    try:
        file, digest = str(config["files"][name]["file"]), str(config["files"][name]["sha256"])
    except (KeyError, TypeError) as error:
        raise ModelError(f"{folder / CONFIG} is damaged ({error!r}): create the model again.") from error
    stem, ending = name.split(".")
    if not _NAME.fullmatch(file) or not (file.startswith(f"{stem}.") and file.endswith(f".{ending}")):
        raise ModelError(f"{folder / CONFIG} lists {file!r}, which is not part of a model: do not use this model.")
    content = _content(folder / file)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ModelError(f"{folder / file} does not match its checksum in {CONFIG}: create the model again.")
    return content


def _content(path: Path) -> bytes:
    """The bytes of a file; links, special files and files too large for memory are refused."""
    if path.is_symlink():
        raise ModelError(f"{path} is a link, which may point outside its folder: copy the file itself.")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ModelError(f"{path} is not a regular file: do not use this model.")
        if status.st_size > LARGEST_FILE:
            raise ModelError(f"{path} is too large to be part of a model: create the model again.")
        return stream.read()


def _named_files(folder: Path) -> set[str]:
    """The files that the current config lists, if there is one."""
    try:
        entries = read_bundle_config(folder).get("files", {}).values()
        return {name for entry in entries if _NAME.fullmatch(name := str(entry["file"]))}
    except (ModelError, AttributeError, KeyError, TypeError, OSError):
        return set()


def is_bundle_name(name: str) -> bool:
    """Whether writing a bundle may create, replace or remove a file with this name."""
    return name == CONFIG or bool(_LEFTOVER.fullmatch(name))


def bundle_files(folder: Path) -> list[Path]:
    """The files of a folder that writing a bundle may replace or remove."""
    return [path for path in folder.iterdir() if is_bundle_name(path.name)] if folder.is_dir() else []


def has_only_leftovers(folder: Path) -> bool:
    """Whether a folder is empty except for leftovers of a process that died before it wrote the config."""
    return folder.is_dir() and all(_LEFTOVER.fullmatch(path.name) for path in folder.iterdir())


def _abandoned(folder: Path) -> set[str]:
    """Leftovers of processes that died, old enough not to belong to one that is running."""
    old = time.time() - ABANDONED
    return {path.name for path in folder.iterdir() if _LEFTOVER.fullmatch(path.name) and path.lstat().st_mtime < old}
