"""The folder of an unfinished run: whole files only, so that a killed run goes on where it was.

Every file is written under another name, brought to disk and renamed. What a pass sums up
lies in one file together with how many segments are in it, so that the two cannot differ.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hcdv.errors import StoreError

Arrays = dict[str, NDArray[Any]]
_ABOUT = "task.json"


@dataclass(frozen=True)
class Workspace:
    """Named sets of arrays, and what the run is about."""

    folder: Path

    @classmethod
    def beside(cls, out: Path) -> Workspace:
        """The unfinished run of this name."""
        return cls(out.parent / f"{out.name}.unfinished")

    def begin(self, about: dict[str, Any]) -> bool:
        """Make the folder, or take up the run of the same task there; whether it was there."""
        path = self.folder / _ABOUT
        text = json.dumps(about, indent=2, sort_keys=True)
        if path.is_file():
            self._refuse_other(json.loads(path.read_text(encoding="utf-8")), about)
            return True
        self.folder.mkdir(exist_ok=True)
        self._publish(path, text.encode())
        return False

    def put(self, name: str, arrays: Arrays) -> int:
        """Write a set of arrays, all or nothing; its bytes."""
        from safetensors.numpy import save

        content = save({key: _whole(array) for key, array in arrays.items()})
        self._publish(self.path(name), content)
        return len(content)

    def has(self, name: str) -> bool:
        """Whether a set was written."""
        return self.path(name).is_file()

    def get(self, name: str) -> Arrays:
        """A set of arrays."""
        from safetensors.numpy import load_file

        return load_file(self.path(name))

    def drop(self, name: str) -> None:
        """Remove a set that has served."""
        self.path(name).unlink(missing_ok=True)

    def path(self, name: str) -> Path:
        """The file of a set."""
        return self.folder / f"{name}.safetensors"

    def remove_scratch(self) -> None:
        """Leave of a folder that has become a run what belongs to a run."""
        for path in [*self.folder.glob("*.safetensors"), *self.folder.glob(f"*{_ABOUT}*")]:
            path.unlink(missing_ok=True)
        for path in self.folder.rglob(".*"):
            path.unlink(missing_ok=True)

    def _publish(self, path: Path, content: bytes) -> None:
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)

    def _refuse_other(self, there: dict[str, Any], asked: dict[str, Any]) -> None:
        asked = json.loads(json.dumps(asked))  # as it reads after writing
        differ = [key for key in {**there, **asked} if there.get(key) != asked.get(key)]
        if differ:
            raise StoreError(
                f"'{self.folder}' must be an unfinished run of the same task to be taken up, "
                f"got another: {', '.join(sorted(differ))} differ. Remove that folder to begin "
                "anew, or choose another name for the run."
            )


def _whole(array: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    return np.ascontiguousarray(array)
