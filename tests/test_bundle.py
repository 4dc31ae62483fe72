"""A saved classifier changes as one: whoever reads, and whatever is killed, there is the old model or the new one, whole."""

from __future__ import annotations

import builtins
import io
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bundles import MODEL, config_of, part

from handful import FewShotClassifier
from handful.batch.fitting import FitSources, fit_file
from handful.data.reader import Source
from handful.errors import ModelError
from handful.utils.bundle import ABANDONED, write_bundle

QUERIES = ["the card is lost", "give me my money back", "a flight to Rome"]
FIRST = (["lost card", "refund please"], ["card", "money"])
SECOND = (["lost card", "refund please", "book a flight"], ["money", "card", "travel"])
KILLS = 20


@pytest.fixture(scope="module")
def models() -> tuple[FewShotClassifier, FewShotClassifier]:
    return FewShotClassifier().fit(*FIRST), FewShotClassifier().fit(*SECOND)


def answers(classifier: FewShotClassifier) -> bytes:
    return b"|".join([repr(classifier.classes_.tolist()).encode(), classifier.predict_proba(QUERIES).tobytes()])


# Readers


def test_a_reader_never_sees_half_of_a_save(models, tmp_path: Path) -> None:
    folder, whole = tmp_path / "model", {answers(model) for model in models}
    models[0].save(folder)
    stop = threading.Event()

    def keep_saving() -> None:
        while not stop.is_set():
            for model in models:
                model.save(folder, keep_examples=True)

    saver = threading.Thread(target=keep_saving)
    saver.start()
    try:
        found = {answers(FewShotClassifier.load(folder)) for _ in range(300)}
    finally:
        stop.set()
        saver.join()
    assert found <= whole
    assert len(found) == 2  # both were met


def test_a_fifo_is_refused_not_waited_for(models, tmp_path: Path) -> None:
    for name in ("config.json", MODEL):
        folder = tmp_path / name.split(".")[0]
        models[0].save(folder)
        path = folder / name if name == "config.json" else part(folder, name)
        path.unlink()
        os.mkfifo(path)
        with pytest.raises(ModelError, match="not a regular file"):
            FewShotClassifier.load(folder)


# Kills


OPERATIONS = ("mkdir", "replace", "rename", "unlink", "fsync", "open")


def kill_at(number: int, work: Callable[[], None]) -> bool:
    """Run work in a process of its own that dies before its file operation of this number; whether it died."""
    child = os.fork()
    if child == 0:
        count = iter(range(10**9))

        def dying(function: Callable) -> Callable:
            def call(*arguments, **options):
                if next(count) == number:
                    os._exit(9)
                return function(*arguments, **options)

            return call

        for name in OPERATIONS:
            setattr(os, name, dying(getattr(os, name)))
        io.open = builtins.open = dying(builtins.open)
        work()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def check_kills(folder: Path, old: FewShotClassifier, work: Callable[[], object], new: FewShotClassifier) -> None:
    """Kill work before each of its file operations, each time from the old model on: that or the new one is left, whole."""
    for number in range(200):
        old.save(folder, keep_examples=True)
        died = kill_at(number, work)
        assert answers(FewShotClassifier.load(folder)) in ({answers(old), answers(new)} if died else {answers(new)})
        if not died:
            assert number >= KILLS
            return
    raise AssertionError("the work never ends")


def test_a_killed_save_leaves_the_old_model_or_the_new_one(models, tmp_path: Path) -> None:
    folder, (old, new) = tmp_path / "model", models
    check_kills(folder, old, lambda: new.save(folder, keep_examples=True), new)


def test_a_killed_first_save_leaves_no_model_or_a_whole_one(models, tmp_path: Path) -> None:
    for number in range(200):
        folder = tmp_path / str(number)
        died = kill_at(number, lambda folder=folder: models[0].save(folder))
        if (folder / "config.json").exists():
            assert answers(FewShotClassifier.load(folder)) == answers(models[0])
        models[0].save(folder)  # what is left is not in the way
        assert answers(FewShotClassifier.load(folder)) == answers(models[0])
        if not died:
            return


def csv_of(path: Path, texts: list[str], labels: list[str]) -> Source:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in zip(texts, labels, strict=True)))
    return Source(str(path))


def test_a_killed_fit_leaves_the_old_model_or_the_new_one(models, tmp_path: Path) -> None:
    folder, source = tmp_path / "model", csv_of(tmp_path / "second.csv", *SECOND)
    check_kills(folder, models[0], lambda: fit_file(FewShotClassifier(), FitSources(source), folder, True), models[1])


def test_a_killed_fit_that_learns_more_leaves_the_old_model_or_the_new_one(models, tmp_path: Path) -> None:
    folder, source = tmp_path / "model", csv_of(tmp_path / "more.csv", ["book a flight"], ["travel"])
    more = FewShotClassifier().fit([*FIRST[0], "book a flight"], [*FIRST[1], "travel"])
    check_kills(folder, models[0], lambda: fit_file(FewShotClassifier.load(folder), FitSources(source), folder, True), more)


# Other people's files


def test_only_our_own_files_are_replaced(models, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    models[0].save(folder, keep_examples=True)
    (folder / "README.md").write_text("mine")
    (folder / "model.old.safetensors").write_text("mine too")
    models[1].save(folder)
    named = {entry["file"] for entry in config_of(folder)["files"].values()}
    assert {path.name for path in folder.iterdir()} == {"config.json", "README.md", "model.old.safetensors", *named}


def test_a_link_to_a_folder_stays_a_link(models, tmp_path: Path) -> None:
    models[0].save(tmp_path / "v1")
    (tmp_path / "current").symlink_to(tmp_path / "v1")
    models[1].save(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert answers(FewShotClassifier.load(tmp_path / "v1")) == answers(models[1])


def test_what_a_dead_process_left_is_removed_after_a_while(models, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    models[0].save(folder)
    left = [
        folder / f"model.{'0' * 16}.safetensors",
        folder / f".model.{'0' * 16}.safetensors.4242",
        folder / ".config.json.77",
    ]
    for path in left:
        path.write_text("half")
    models[0].save(folder)
    assert all(path.exists() for path in left)  # it may be another process at work
    for path in left:
        os.utime(path, (time.time() - ABANDONED - 60,) * 2)
    models[0].save(folder)
    assert not any(path.exists() for path in left)


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A folder that is a mount point, where that is allowed."""
    place = tmp_path / "mount"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)], capture_output=True)
    if done.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_mount_point_can_be_saved_to(models, mounted: Path) -> None:
    for model in models:
        model.save(mounted)
        assert answers(FewShotClassifier.load(mounted)) == answers(model)


def test_a_model_of_the_first_format_is_replaced_whole(models, tmp_path: Path) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "config.json").write_text('{"format": 1, "kind": "classifier"}')
    for name in ("model.safetensors", "words.json"):
        (folder / name).write_text("x")
    with pytest.raises(ModelError, match=r"format 1, .* fit the classifier again"):
        FewShotClassifier.load(folder)
    models[0].save(folder)
    assert len(list(folder.iterdir())) == 3
    assert answers(FewShotClassifier.load(folder)) == answers(models[0])


def test_a_bundle_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", {"kind": "x"}, {"model.safetensors": b"1", "encoder.json": b"2"})
    write_bundle(tmp_path / "b", {"kind": "y"}, {"model.safetensors": b"3"})
    assert config_of(tmp_path / "b")["kind"] == "y"
    assert len(list((tmp_path / "b").iterdir())) == 2
