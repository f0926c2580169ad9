"""A run folder is whole or not there, and damage to it is named."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from hcdv import HCDV, StoreError
from hcdv.store import check_new, write_file
from hcdv.store import folder as store_folder
from hcdv.store.shelf import Shelf

FILES = ("run.json", "values.parquet", "coalitions.parquet", "state.safetensors")


@pytest.fixture(scope="module")
def model() -> HCDV:
    rng = np.random.default_rng(3)
    y = np.arange(24) % 2
    X = rng.normal(size=(24, 2)) + y[:, None]
    return HCDV(n_contexts=8, n_permutations=2, leaf_size=8, random_state=0).fit(X, y)


@pytest.fixture
def run(model, tmp_path) -> Path:
    return model.save(tmp_path / "run")


def listing(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir())


def signed_again(run: Path, change) -> None:
    """Change run.json as someone would who knows how its checksum is made."""
    about = json.loads((run / "run.json").read_text())
    change(about)
    about["sha256"]["run.json"] = store_folder._digest(about)
    (run / "run.json").write_text(json.dumps(about))


def state_changed(run: Path, change) -> None:
    shelf = Shelf.from_bytes((run / "state.safetensors").read_bytes())
    change(shelf)
    content = shelf.to_bytes()
    (run / "state.safetensors").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    signed_again(run, lambda about: about["sha256"].update({"state.safetensors": digest}))


def test_nothing_but_the_folder_is_left_behind(run):
    assert listing(run.parent) == ["run"]
    assert listing(run) == sorted([*FILES, "rows"])


def test_a_saved_folder_has_the_permissions_of_any_other(run):
    (run.parent / "other").mkdir()
    assert run.stat().st_mode == (run.parent / "other").stat().st_mode


@pytest.mark.parametrize("taken", ["folder", "file", "broken link"])
def test_a_name_that_is_taken_is_refused(taken, model, tmp_path):
    place = tmp_path / "run"
    if taken == "folder":
        place.mkdir()
    elif taken == "file":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=r"must be new, got .*run', which exists"):
        model.save(place)
    assert listing(tmp_path) == ["run"]


def test_a_folder_that_is_not_there_is_not_made(model, tmp_path):
    with pytest.raises(StoreError, match=r"'.*nowhere' does not exist"):
        model.save(tmp_path / "nowhere" / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"'.*file' is a file"):
        model.save(tmp_path / "file" / "run")
    assert listing(tmp_path) == ["file"]


def test_a_read_only_folder_is_refused_before_any_work(tmp_path, monkeypatch):
    def refused(path: Path, *_, **__):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(StoreError, match=r"Permission denied.*Nothing was written"):
        check_new(tmp_path / "run")
    assert listing(tmp_path) == []


def test_a_name_that_is_too_long_is_told(tmp_path):
    with pytest.raises(StoreError, match="shorter name"):
        check_new(tmp_path / ("x" * 400))


@pytest.mark.parametrize("nth", range(4))
def test_a_full_disk_leaves_nothing(nth, model, tmp_path, monkeypatch):
    written = []

    def full(path: Path, content: bytes) -> None:
        if len(written) == nth:
            path.write_bytes(content[:10])
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(path)
        path.write_bytes(content)

    monkeypatch.setattr(store_folder, "_write", full)
    with pytest.raises(StoreError, match=r"No space left on device\. Free some space"):
        model.save(tmp_path / "run")
    assert listing(tmp_path) == []


def test_an_interrupt_while_writing_leaves_nothing(model, tmp_path, monkeypatch):
    def stopped(path: Path, content: bytes) -> None:
        path.write_bytes(content)
        raise KeyboardInterrupt

    monkeypatch.setattr(store_folder, "_write", stopped)
    with pytest.raises(KeyboardInterrupt):
        model.save(tmp_path / "run")
    assert listing(tmp_path) == []


def test_a_folder_made_meanwhile_is_not_overwritten(model, tmp_path, monkeypatch):
    write = store_folder._write

    def meanwhile(path: Path, content: bytes) -> None:
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / "theirs").write_text("theirs")
        write(path, content)

    monkeypatch.setattr(store_folder, "_write", meanwhile)
    with pytest.raises(StoreError, match="Choose another name"):
        model.save(tmp_path / "run")
    assert listing(tmp_path) == ["run"]
    assert listing(tmp_path / "run") == ["theirs"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    write_file(tmp_path / "a", b"content")
    assert (tmp_path / "a").read_bytes() == b"content"
    with pytest.raises(StoreError, match="which exists"):
        write_file(tmp_path / "a", b"other")

    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StoreError, match="Input/output error"):
        write_file(tmp_path / "b", b"content")
    assert listing(tmp_path) == ["a"]


def test_what_is_no_run_folder_is_refused(tmp_path):
    with pytest.raises(
        StoreError, match=r"which does not exist\. hcdv value TABLE makes one"
    ):
        HCDV.load(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="which is a file"):
        HCDV.load(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(StoreError, match=r"which has no run\.json"):
        HCDV.load(tmp_path / "empty")


def test_a_misspelt_run_is_recognised(run):
    with pytest.raises(StoreError, match=r"Did you mean '.*run'\?"):
        HCDV.load(run.parent / "runn")


@pytest.mark.parametrize("name", FILES[1:])
@pytest.mark.parametrize("damage", ["missing", "truncated", "edited", "empty"])
def test_damage_to_any_file_is_named(name, damage, run):
    path = run / name
    content = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    with pytest.raises(StoreError, match=rf"{name}' must be as it was written"):
        HCDV.load(run)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": 1}', b"[" * 100_000],
    ids=["empty", "cut", "list", "null", "binary", "bare", "deep"],
)
def test_a_run_json_that_is_none_is_named(content, run):
    (run / "run.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"run\.json' must be as it was written"):
        HCDV.load(run)


def test_a_run_json_that_was_edited_is_named(run):
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace('"seed": 0', '"seed": 1'))
    with pytest.raises(StoreError, match=r"run\.json'.*changed after it was written"):
        HCDV.load(run)


def test_a_run_of_a_newer_format_is_refused_with_the_way_to_read_it(run):
    signed_again(run, lambda about: about.update(format=2, hcdv="9.9"))
    with pytest.raises(StoreError, match=r"format 2 .* hcdv 9\.9\. Upgrade: pip install"):
        HCDV.load(run)


def test_a_folder_in_the_place_of_a_file_is_named(run):
    (run / "values.parquet").unlink()
    (run / "values.parquet").mkdir()
    with pytest.raises(StoreError, match="it is missing"):
        HCDV.load(run)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.arrays.pop("stderr"),
        lambda s: s.arrays.update(stderr=np.zeros(3)),
        lambda s: s.arrays.update(stderr=np.zeros(24, np.int64)),
        lambda s: s.arrays.update({"tree.parent": np.array([-1, 5])}),
        lambda s: s.arrays.update({"rows.target": np.full(24, 9)}),
        lambda s: s.arrays.update({"rows.fold": np.full(24, -1)}),
        lambda s: s.arrays.update(position=np.zeros(24, np.int64)),
        lambda s: s.arrays.update({"part.utility": np.full(24, np.nan)}),
        lambda s: s.arrays.update({"view 0.Z": np.zeros((24, 7))}),
        lambda s: s.arrays.update({"features 0.turn": np.zeros((2, 2))}),
        lambda s: s.arrays.pop("features 0.offset"),
        lambda s: s.arrays.update({"moments 0.V": np.zeros((2, 2))}),
        lambda s: s.arrays.update({"judge 0.rows": np.array([99])}),
        lambda s: s.kinds.update(labels="|O8"),
        lambda s: s.kinds.update(labels="<U0"),
        lambda s: s.kinds.update(labels="no such kind"),
        lambda s: s.settings.pop("run"),
        lambda s: s.settings.update(run=[]),
        lambda s: s.settings["run"].update(n_views=10**9),
        lambda s: s.settings["run"].update(surplus={}),
        lambda s: s.settings["run"]["plan"].update(utility={"type": "os.system"}),
        lambda s: s.settings["run"]["plan"].update(surprise=1),
        lambda s: s.settings["model"].update(surprise=1),
        lambda s: s.settings["judges"].clear(),
        lambda s: s.settings["probe"].update(features=[]),
        lambda s: s.settings.update(encoder={}),
    ],
)
def test_a_state_that_does_not_fit_together_is_told_and_never_believed(change, run):
    state_changed(run, change)
    with pytest.raises(StoreError, match=r"state\.safetensors'.*do not fit together"):
        HCDV.load(run)


def test_a_state_that_is_no_safetensors_is_told(run):
    content = b"\x80\x04cos\nsystem\n"  # how a pickle begins
    (run / "state.safetensors").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    signed_again(run, lambda about: about["sha256"].update({"state.safetensors": digest}))
    with pytest.raises(StoreError, match=r"state\.safetensors"):
        HCDV.load(run)


def test_a_copied_and_renamed_folder_is_the_same_run(run, model, tmp_path):
    shutil.copytree(run, tmp_path / "elsewhere")
    shutil.rmtree(run)
    assert np.array_equal(HCDV.load(tmp_path / "elsewhere").values_, model.values_)
