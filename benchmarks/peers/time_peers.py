"""Time pyDVL and OpenDataVal as they find flipped labels.

    bash benchmarks/peers/install.sh ENVIRONMENTS
    python benchmarks/peers/time_peers.py ENVIRONMENTS

It writes benchmarks/results/peers-speed.json after every run and keeps the runs of the
same machine and setting that are there, so that an interrupted session, or a part asked
for alone with --data, --methods or --peers, loses nothing.

Every run is a process of its own on one thread. A permutation run that its limit cut
short is extrapolated to the permutations asked for at the rate they were done. Where not
one was done, "at least" supposes that the others are no shorter.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import tempfile
from datetime import UTC, datetime
from hashlib import sha256
from itertools import product
from pathlib import Path

import numpy as np
from environments import HERE, run_in
from flipped import FLIP_RATE, TABLES
from sklearn.metrics import roc_auc_score

RESULTS = HERE.parent / "results" / "peers-speed.json"
RUNNERS = {"pydvl": "run_pydvl.py", "opendataval": "run_opendataval.py"}
PERMUTATIONS = 100
REPEATS = {"knn": 3, "tmc": 1}  # the one that took the processor least is reported
N_NEIGHBOURS = 5
LIMIT_CPU_SECONDS = {"digits-500": 150, "digits-1000": 100, "blobs-10000": 580}


def main():
    asked = arguments()
    record = earlier(asked.out, machine(), setting())
    with tempfile.TemporaryDirectory() as folder:
        for name in asked.data:
            table = TABLES[name]()
            np.savez(Path(folder, f"{name}.npz"), **table)
            record["data"][name] = described(table)
        for method, name, peer in product(asked.methods, asked.data, asked.peers):
            run = timed(asked, peer, method, name, Path(folder))
            print(json.dumps(run), flush=True)
            others = [old for old in record["runs"] if identity(old) != identity(run)]
            record["runs"] = [*others, run]
            asked.out.parent.mkdir(exist_ok=True)
            asked.out.write_text(json.dumps(record, indent=1) + "\n")


def earlier(path, *here):
    """Take up the record of this machine and setting, or start one."""
    record = dict(zip(("machine", "setting"), here, strict=True))
    if path.exists():
        old = json.loads(path.read_text())
        if all(old[part] == now for part, now in record.items()):
            return old
    return record | {"data": {}, "runs": []}


def setting():
    return {
        "model": "LogisticRegression(max_iter=200), accuracy on the validation rows",
        "threads": 1,
        "k": N_NEIGHBOURS,
        "permutations": PERMUTATIONS,
        "flip_rate": FLIP_RATE,
    }


def identity(run):
    return run["data"], run["method"], run["peer"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments", type=Path, help="the folder given to install.sh")
    parser.add_argument("--data", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", default=["knn", "tmc"])
    parser.add_argument("--peers", nargs="+", choices=RUNNERS, default=list(RUNNERS))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--max-cpu-seconds", type=float, help="of a permutation run")
    return parser.parse_args()


def timed(asked, peer, method, name, folder):
    """Run one method of one peer on one table: its own report and the flips it found."""
    table, values = folder / f"{name}.npz", folder / "values.npz"
    limit = asked.max_cpu_seconds or LIMIT_CPU_SECONDS[name]
    made = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "load_at_start": round(os.getloadavg()[0], 2),
    }
    settings = {
        "--method": method,
        "--k": N_NEIGHBOURS,
        "--permutations": PERMUTATIONS,
        "--max-cpu-seconds": limit,
    }
    words = [word for setting in settings.items() for word in setting]
    reports = []
    for _ in range(REPEATS[method]):
        run_in(asked.environments, peer, RUNNERS[peer], table, values, *words)
        with np.load(values) as stored, np.load(table) as rows:
            reports.append(json.loads(str(stored["report"])))
            found = flips_found(stored["values"], rows["flipped"])
    report = min(reports, key=lambda repeat: repeat["cpu_seconds"])
    report["seconds_of_each"] = [repeat["seconds"] for repeat in reports]
    return {"data": name, **report, **extrapolated(report, method, limit), **found, **made}


def extrapolated(report, method, limit):
    """Return the seconds all permutations take, at the rate they were done in time.

    The one under way counts in the time: lengths differ by a thousandfold where a peer
    truncates early, and to leave it out would be to count only the short ones.
    """
    if method == "knn":
        return {}
    done = report.get("permutations_done", 0)
    scale = PERMUTATIONS / max(done, 1)
    return {
        "limit_cpu_seconds": limit,
        "seconds_for_all": round(report["seconds"] * scale, 1),
        "cpu_seconds_for_all": round(report["cpu_seconds"] * scale, 1),
        "for_all_is": "measured"
        if done == PERMUTATIONS
        else "extrapolated"
        if done
        else "at least",
    }


def flips_found(values, flipped):
    """Score the lowest values as suspects: AUROC, and the share of flips among as many."""
    if not np.isfinite(values).all():
        return {"auroc": None, "precision_at_flips": None}
    lowest = np.argsort(values, kind="stable")[: flipped.sum()]
    return {
        "auroc": round(float(roc_auc_score(flipped, -values)), 4),
        "precision_at_flips": round(float(flipped[lowest].mean()), 4),
        "sum_of_values": round(float(values.sum()), 6),
    }


def described(table):
    content = sha256(b"".join(part.tobytes() for part in table.values()))
    n_rows, n_features = table["X_train"].shape
    return {
        "n_rows": n_rows,
        "n_features": n_features,
        "n_val": len(table["X_val"]),
        "n_flipped": int(table["flipped"].sum()),
        "sha256": content.hexdigest(),
    }


def machine():
    model = [
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if line.startswith("model name")
    ]
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "processor": model[0] if model else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory, 1),
        "system": platform.system(),
    }


def commit():
    asked = ["git", "rev-parse", "--quiet", "--verify", "HEAD"]
    answer = subprocess.run(asked, cwd=HERE, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


if __name__ == "__main__":
    main()
