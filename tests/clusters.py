"""Ray clusters for tests: each in a process group of its own, of which nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression

HERE = Path(__file__).parent


def in_session(script: str, *arguments: Path | str) -> subprocess.CompletedProcess[str]:
    """Run a script in a session of its own; whatever it starts is gone afterwards."""
    paths = [str(HERE.parent / "src"), str(HERE)]
    process = subprocess.Popen(
        [sys.executable, "-c", script, *paths, *map(str, arguments)],
        stdout=subprocess.PIPE, text=True, stderr=subprocess.STDOUT, start_new_session=True,
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join(paths), "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_worker_niceness": "0",  # not behind everything else on a busy machine
        },
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=480)
    finally:
        _kill_session(process.pid)
        process.communicate()  # nothing is left open after a time-out either
    return subprocess.CompletedProcess([], process.returncode, said, "")


def _kill_session(session: int) -> None:
    """End what a killed driver leaves: the processes of its own session, by their ids."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == session:
                    os.kill(int(entry.name), signal.SIGKILL)
            except (OSError, IndexError):
                continue


class Delicate(ClassifierMixin, BaseEstimator):
    """A model that takes its time, fails on some rows, and leaves word of every fit."""

    def __init__(self, word: str = "", seconds: float = 0.0) -> None:
        self.word = word
        self.seconds = seconds

    def fit(self, X: Any, y: Any) -> Delicate:
        time.sleep(self.seconds)
        if self.word:
            with Path(self.word).open("a") as file:
                file.write(f"{os.getpid()}\n")
        if len(X) % 5 == 0:
            raise RuntimeError(f"no fit on {len(X)} rows")
        self.model_ = LogisticRegression().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def __repr__(self) -> str:
        return "Delicate()"  # by which checkpoints know it, wherever it leaves word


class Deadly(Delicate):
    """A model that takes its process with it."""

    def fit(self, X: Any, y: Any) -> Delicate:
        super().fit(X, y)
        os._exit(1)
