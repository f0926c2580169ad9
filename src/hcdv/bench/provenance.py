"""Where and with what a number was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import hcdv

_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")


def provenance(command: str = "") -> dict[str, Any]:
    """Command, commit, machine and versions, as a run's record holds them."""
    found: dict[str, Any] = {
        "command": command,
        "commit": _git("rev-parse", "--short", "HEAD"),
        "changed_since": bool(_git("status", "--porcelain", "--", ".")),
        "machine": f"{_processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "hcdv": hcdv.__version__,
    }
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _git(*words: str) -> str:
    """What git says of the tree this package is in; nothing where there is none."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=Path(hcdv.__file__).parent, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.machine()
