"""Small ONNX encoders written byte by byte: each piece of a text has a row of a table, and the rows are what comes out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors

INT64, FLOAT, STRING = 7, 1, 8
WORDS = ["[PAD]", "[CLS]", "[SEP]", "red", "green", "blue"]


def number(value: int) -> bytes:
    """A protobuf varint."""
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def field(key: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return number(key << 3) + number(value)
    content = value.encode() if isinstance(value, str) else value
    return number(key << 3 | 2) + number(len(content)) + content


def value_info(name: str, kind: int, *shape: str | int) -> bytes:
    sizes = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))


def float_tensor(name: str, values: np.ndarray) -> bytes:
    shape = b"".join(field(1, size) for size in values.shape)
    return shape + field(2, FLOAT) + field(8, name) + field(9, values.astype("<f4").tobytes())


def external_tensor(name: str, place: str, *shape: int) -> bytes:
    sizes = b"".join(field(1, size) for size in shape)
    return sizes + field(2, FLOAT) + field(8, name) + field(13, field(1, "location") + field(2, place)) + field(14, 1)


def string_tensor(name: str, content: str) -> bytes:
    return field(1, 1) + field(2, STRING) + field(6, content) + field(8, name)


def model(node: bytes, initializer: bytes, inputs: list[bytes], output: bytes) -> bytes:
    graph = field(1, node) + field(2, "graph") + field(5, initializer)
    graph += b"".join(field(11, each) for each in inputs) + field(12, output)
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def table_model(initializer: bytes, dim: int, input_name: str = "input_ids") -> bytes:
    """Looks pieces up in the table that the initializer `table` holds."""
    node = field(1, "table") + field(1, input_name) + field(2, "states") + field(4, "Gather")
    inputs = [value_info(input_name, INT64, "rows", "pieces")]
    return model(node, initializer, inputs, value_info("states", FLOAT, "rows", "pieces", dim))


def constant_model(initializer: bytes, kind: int, *shape: int) -> bytes:
    """Gives the initializer `table` whatever comes in."""
    node = field(1, "table") + field(2, "states") + field(4, "Identity")
    inputs = [value_info("input_ids", INT64, "rows", "pieces")]
    return model(node, initializer, inputs, value_info("states", kind, *shape))


def write_tokenizer(path: Path, special: bool = True) -> None:
    """One piece per word; with special pieces around a text, or without."""
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token="[PAD]"))  # noqa: S106
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if special:
        tokenizer.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    tokenizer.save(str(path))


def write_encoder(folder: Path, content: bytes | None = None, special: bool = True) -> Path:
    """A folder with this model, or with one whose piece number i is the i-th axis."""
    folder.mkdir(exist_ok=True)
    table = np.eye(len(WORDS), dtype=np.float32)
    (folder / "model.onnx").write_bytes(content or table_model(float_tensor("table", table), len(WORDS)))
    write_tokenizer(folder / "tokenizer.json", special)
    return folder
