from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from handful.embeddings.contextual import contextual_table
from handful.errors import DataError
from handful.making.word_table import save_table
from handful.utils.files import atomic_writer, parse_object, read_objects


def test_a_writer_that_fails_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with pytest.raises(KeyboardInterrupt), atomic_writer(path) as stream:  # noqa: PT012
        stream.write(b"half")
        raise KeyboardInterrupt
    assert list(path.parent.iterdir()) == []
    with atomic_writer(path) as stream:
        stream.write(b"wh")
        assert not path.exists()
        stream.write(b"ole")
    assert path.read_bytes() == b"whole"
    assert list(path.parent.iterdir()) == [path]


def test_arrays_and_tables_are_written_whole_or_not_at_all(tmp_path: Path, monkeypatch) -> None:
    documents = [["a", "b"], ["c"]]

    class OneNumberEncoder:
        key = "any"

        def encode(self, texts: list) -> list:
            return [np.ones((len(words), 1), np.float32) for words in texts]

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        contextual_table(OneNumberEncoder(), documents, tmp_path)
    with pytest.raises(OSError, match="disk full"):
        save_table(tmp_path / "own", ["a"], np.ones((1, 2), np.float32))
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    save_table(tmp_path / "own", ["a"], np.ones((1, 2), np.float32))  # exactly there, whatever the ending
    assert [path.name for path in tmp_path.iterdir()] == ["own"]
    with np.load(tmp_path / "own") as arrays:
        assert arrays["words"].tolist() == ["a"]


def test_objects_of_a_file_with_their_lines(lines) -> None:
    assert list(read_objects(lines('{"a": 1}', "", ' {"b": [2]} '), "write it again")) == [(1, {"a": 1}), (3, {"b": [2]})]


@pytest.mark.parametrize(
    ("line", "reason"), [("{", "is not JSON (Expecting"), ("[" * 100_000, "is not JSON ("), ("[1]", "is not a JSON object")]
)
def test_a_line_that_is_no_object_is_named_with_what_to_do(lines, line: str, reason: str) -> None:
    with pytest.raises(ValueError) as caught:
        parse_object(line)
    assert str(caught.value).startswith(reason)
    path = lines('{"a": 1}', line)
    with pytest.raises(DataError) as told:
        list(read_objects(path, "write it again"))
    assert str(told.value).startswith(f"{path}, line 2 {reason}")
    assert str(told.value).endswith(": write it again.")
