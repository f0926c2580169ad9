"""A run folder: written whole under a name of its own, then renamed; read with checksums."""

from __future__ import annotations

import difflib
import errno
import hashlib
import json
import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

from hcdv.errors import StoreError

FORMAT = 1
ABOUT = "run.json"
REPORT = "report.html"  # made from a run, and no part of it
FILES = ("values.parquet", "coalitions.parquet", "state.safetensors")


def check_new(path: Path, name: str = "folder") -> None:
    """Refuse a place that is taken or cannot be written to, before any work is done."""
    if os.path.lexists(path):
        raise StoreError(
            f"{name} must be new, got '{path}', which exists. Choose another name, or remove "
            "it first."
        )
    parent = path.parent
    if not parent.is_dir():
        what = "is a file" if parent.exists() else "does not exist"
        raise StoreError(
            f"{name} must lie in a folder that exists, got '{path}': '{parent}' {what}. "
            "Make that folder first, or choose another."
        )
    trial = _beside(path)
    try:
        trial.mkdir()
        trial.rmdir()
    except OSError as error:
        raise _unwritable(path, name, error) from error


def write_atomically(
    folder: Path, about: dict[str, Any], files: dict[str, bytes], beside: dict[str, bytes]
) -> Path:
    """Write a run folder, all or nothing: no reader ever sees half of one.

    beside: files that may change later, and so are under no checksum of the folder's.
    """
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    record = sealed(about, digests)
    check_new(folder)
    draft = _beside(folder)
    try:
        draft.mkdir()
        for name, content in {**files, **beside}.items():
            (draft / name).parent.mkdir(exist_ok=True)
            _write(draft / name, content)
        _write(draft / ABOUT, record)
        draft.rename(folder)
    except OSError as error:
        raise _unwritable(folder, "folder", error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # gone already where all went well
    _sync(folder.parent)
    return folder


def sealed(about: dict[str, Any], digests: dict[str, str]) -> bytes:
    """What run.json holds: the record with the checksums of the files and its own."""
    about = {"format": FORMAT, **about, "sha256": dict(digests)}
    about["sha256"][ABOUT] = _digest(about)
    text = json.dumps(about, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode()


def publish(draft: Path, folder: Path, record: bytes) -> None:
    """Make a run folder of a draft that holds all but its record, all or nothing."""
    check_new(folder)
    try:
        (draft / ABOUT).unlink(missing_ok=True)
        _write(draft / ABOUT, record)
        draft.rename(folder)
    except OSError as error:
        raise _unwritable(folder, "folder", error) from error
    _sync(folder.parent)


def write_file(path: Path, content: bytes, name: str = "file") -> None:
    """Write one file, all or nothing, where there is none yet."""
    check_new(path, name)
    draft = _beside(path)
    try:
        _write(draft, content)
        draft.rename(path)
    except OSError as error:
        raise _unwritable(path, name, error) from error
    finally:
        draft.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Write one file inside a run folder, all or nothing, over what may be there."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(exist_ok=True)
        _write(draft, content)
        draft.replace(path)
    except OSError as error:
        way_out = _WAYS_OUT.get(error.errno or 0, "Choose a folder that you may write to.")
        raise StoreError(
            f"'{path}' must be writable, got: {error.strerror or error}. {way_out} The run is "
            "as it was."
        ) from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    _sync(path.parent)


def read_about(folder: Path) -> dict[str, Any]:
    """What run.json says, once it is known to be whole and of a format known here."""
    _refuse_unless_folder(folder)
    content = _read(folder, ABOUT)
    try:
        about = json.loads(content)
        version, digests = about["format"], about["sha256"]
        expected = digests[ABOUT]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _damaged(folder, ABOUT, "it cannot be read as the record of a run") from error
    if version != FORMAT:
        raise StoreError(
            f"folder must hold a run of format {FORMAT}, got format {version!r} in "
            f"'{folder / ABOUT}', written by hcdv {about.get('hcdv', 'unknown')}. Upgrade: "
            "pip install --upgrade hcdv."
        )
    if _digest(about) != expected:
        raise _damaged(folder, ABOUT, "it was changed after it was written")
    return about


def read_files(folder: Path, about: dict[str, Any]) -> dict[str, bytes]:
    """The other files, each as it was when it was written."""
    files = {name: _read(folder, name) for name in FILES}
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != about["sha256"].get(name):
            raise _damaged(folder, name, "it is not what was written")
    return files


def damaged_state(path: Path, error: Exception) -> StoreError:
    """The error for a state that is whole but makes no sense."""
    what = f"its contents do not fit together ({error})"
    return _damaged(path.parent, path.name, what)


def _refuse_unless_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    found = "is a file" if folder.exists() else "does not exist"
    near = _runs_near(folder)
    way_out = f" Did you mean '{near}'?" if near else " hcdv value TABLE makes one."
    raise StoreError(
        f"folder must be a run folder, got '{folder}', which {found}.{way_out}"
    )


def _runs_near(folder: Path) -> Path | None:
    """A run folder of a similar name beside the one asked for."""
    try:
        runs = [path.name for path in folder.parent.iterdir() if (path / ABOUT).is_file()]
    except OSError:
        return None
    close = difflib.get_close_matches(folder.name, runs, 1)
    return folder.parent / close[0] if close else None


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    if not path.is_file():
        if name == ABOUT:
            raise StoreError(
                f"folder must be a run folder, got '{folder}', which has no {ABOUT}. "
                "hcdv value TABLE makes one."
            )
        raise _damaged(folder, name, "it is missing")
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(
            f"'{path}' must be readable, got: {error.strerror or error}. Check its permissions."
        ) from error


def _damaged(folder: Path, name: str, what: str) -> StoreError:
    return StoreError(
        f"'{folder / name}' must be as it was written, got a damaged file: {what}. Restore "
        "the folder from a copy, or value the table again; the same seed gives the same values."
    )


def _digest(about: dict[str, Any]) -> str:
    """A checksum of run.json without its own."""
    digests = {name: digest for name, digest in about["sha256"].items() if name != ABOUT}
    text = json.dumps({**about, "sha256": digests}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _beside(path: Path) -> Path:
    return path.parent / f".{path.name}.tmp-{os.getpid()}-{secrets.token_hex(3)}"


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Bring a folder's list of names to disk, where the system can."""
    with suppress(OSError):  # the run is there; only a power cut now could still lose it
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


_WAYS_OUT = {
    errno.ENOSPC: "Free some space, or choose a folder on another disk.",
    errno.EFBIG: "Raise the limit on the size of files, or choose another disk.",
    errno.EDQUOT: "Free some of your quota, or choose a folder on another disk.",
    errno.ENAMETOOLONG: "Choose a shorter name.",
    errno.EEXIST: "Choose another name.",
    errno.ENOTEMPTY: "Choose another name.",
}


def _unwritable(path: Path, name: str, error: OSError) -> StoreError:
    way_out = _WAYS_OUT.get(error.errno or 0, "Choose a folder that you may write to.")
    return StoreError(
        f"{name} must be writable, got '{path}': {error.strerror or error}. {way_out} "
        "Nothing was written."
    )
