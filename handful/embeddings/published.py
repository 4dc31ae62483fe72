"""Download published word vectors from their homes."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..data.download import Patience, download, make_folder, unpack
from ..errors import DataError, SettingError
from ..utils.paths import cache_folder


@dataclass(frozen=True)
class Published:
    """A table of vectors: its address, and the name of its file or of the file in its archive."""

    url: str
    file: str
    size: int | None = None  # bytes of the download, if known


FASTTEXT = Published("https://dl.fbaipublicfiles.com/fasttext/vectors-wiki/wiki.en.vec", "wiki.en.vec")
GLOVE = "https://nlp.stanford.edu/data/glove.6B.zip"
PUBLISHED = {"fasttext": FASTTEXT} | {
    f"glove-{dim}": Published(GLOVE, f"glove.6B.{dim}d.txt", 862_182_613) for dim in (50, 100, 200, 300)
}


def get_vectors(name: str, folder: Path | None = None, patience: Patience | None = None, quiet: bool = False) -> Path:
    """Download a published table to `folder`, unless it is there already; return its file."""
    if name not in PUBLISHED:
        raise SettingError(f"There are no published vectors {name!r}: choose one of {', '.join(PUBLISHED)}.")
    table = PUBLISHED[name]
    folder = folder or cache_folder() / "vectors"
    path = folder / table.file
    if path.exists() and not table.url.endswith(table.file):
        return path
    fetched = download(table.url, folder, table.size, patience=patience, quiet=quiet)
    if fetched == path:
        return path
    make_folder(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{name}.") as scratch:
        files = unpack(fetched, Path(scratch), lambda member: member == table.file)
        if not files:
            raise DataError(f"{fetched} does not contain {table.file}: remove it and download it again.")
        return files[0].replace(path)
