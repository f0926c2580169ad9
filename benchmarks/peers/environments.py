"""Run a script with a peer's own interpreter, on one thread and without its warnings."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
SETTINGS = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "PYTHONWARNINGS": "ignore",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(HERE / "torchvision_stub"),
}


PACKAGES = (
    "pyDVL",
    "opendataval",
    "shap",
    "shapiq",
    "cleanlab",
    "numpy",
    "scikit-learn",
    "torch",
)
LISTED = (
    "import json, platform; from importlib.metadata import distributions as found; "
    "print(json.dumps({'python': platform.python_version()} | "
    f"{{d.name: d.version for d in found() if d.name in {PACKAGES}}}))"
)


def python_of(environments, peer):
    """Return the interpreter of the environment install.sh made for the peer."""
    python = Path(environments, peer, "bin", "python")
    if not python.exists():
        raise SystemExit(f"{python} does not exist. Run install.sh {environments} {peer}.")
    return str(python)


def versions_in(environments, peer):
    """Say which Python and which of PACKAGES the peer runs on."""
    told = subprocess.check_output([python_of(environments, peer), "-c", LISTED])
    return json.loads(told)


def run_in(environments, peer, script, *words):
    """Run HERE/script with the peer's interpreter."""
    done = subprocess.run(
        [python_of(environments, peer), str(HERE / script), *map(str, words)],
        env=os.environ | SETTINGS,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr}")
