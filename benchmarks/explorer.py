"""What each view of the explorer costs, on a table's run and on the run of a data set.

    python benchmarks/explorer.py table --rows 1000000 --folder DIR
    python benchmarks/explorer.py dataset --rows 10000000 --folder DIR

A table of made customers (numbers, a category, a comment) is really valued, with few contexts.
The run of a data set is made up, with the columns, types and files that a real one has. Each
view is asked once after the explorer opened, and five times more, every time for something
else; milliseconds by the clock of the fastest and of the median of these, and the CPU's of all
threads. Parquet files are in the system's cache, as after any look at them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from hcdv.apps.explorer import pages
from hcdv.apps.explorer.routes import BY_PATH, asked_of
from hcdv.apps.explorer.session import Session
from hcdv.bench.provenance import provenance
from hcdv.store import plain

RESULTS = Path(__file__).resolve().parent / "results"
PART = 524_288
WORDS = [
    "refund", "broken", "late", "great", "love", "perfect", "slow", "cheap", "size", "colour",
    "fits", "return", "box", "seller", "again", "never", "always", "fast", "small", "large",
]  # fmt: skip


def customers(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows that look like those of a shop, and whether each came back."""
    rng = np.random.default_rng(seed)
    back = rng.integers(0, 2, n)
    first, second, third = (rng.integers(0, 10, n) + 10 * back for _ in range(3))
    words = np.array(WORDS, dtype=object)
    comment = words[first] + " " + words[second] + " " + words[third]
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, n), "income": rng.lognormal(10, 0.5, n).round(2),
        "visits": rng.poisson(3 + 2 * back), "city": rng.choice(["Oslo", "Bergen", "Bodø"], n),
        "comment": comment,
    })  # fmt: skip
    return frame, np.where(rng.random(n) < 0.05, 1 - back, back)


def table_run(n: int, folder: Path) -> Path:
    """A run of a table of n rows."""
    from hcdv import HCDV

    out = folder / f"table-{n}.hcdv"
    if not out.exists():
        X, y = customers(n)
        HCDV(n_contexts=8, n_permutations=8, random_state=0).fit(X, y).save(out)
    return out


def dataset_run(n: int, folder: Path) -> Path:
    """A folder like that of a data set of n rows, its numbers made up."""
    from hcdv.hierarchy.growth import grow
    from hcdv.result import coalition_frame
    from hcdv.store.folder import publish, sealed

    out = folder / f"dataset-{n}.hcdv"
    if out.exists():
        return out
    rng = np.random.default_rng(1)
    tree = grow(rng.normal(size=(40_000, 8)), branching=8, leaf_size=64, rng=rng)
    leaves = tree.leaves
    draft = Path(tempfile.mkdtemp(dir=folder))
    (draft / "values").mkdir()
    size, sums = np.zeros(tree.n_nodes, dtype=np.int64), np.zeros(tree.n_nodes)
    for number, start in enumerate(range(0, n, PART)):
        m = min(PART, n - start)
        leaf, label = rng.choice(leaves, m), rng.integers(0, 2, m)
        doubt = rng.beta(0.2, 4, m)
        parts = {"utility": rng.normal(1, 2, m) / n, "dispersion": rng.normal(0.2, 0.1, m) / n,
                 "consistency": (0.05 - doubt) * 32 / n}  # fmt: skip
        value = sum(parts.values())
        frame = pd.DataFrame({
            "row": np.arange(start, start + m), "value": value, "stderr": rng.random(m) / n,
            **parts, "leaf": leaf.astype(np.int32), "label": label, "doubt": doubt,
            "suggested": np.where(doubt > 0.5, 1 - label, label),
        })  # fmt: skip
        frame.to_parquet(draft / "values" / f"part-{number:05}.parquet", index=False)
        size += np.bincount(leaf, minlength=tree.n_nodes)
        sums += np.bincount(leaf, value, minlength=tree.n_nodes)
    for node in range(tree.n_nodes - 1, 0, -1):
        size[tree.parent[node]] += size[node]
        sums[tree.parent[node]] += sums[node]
    nothing = np.zeros(tree.n_nodes)
    parts = {"utility": sums, "dispersion": nothing, "consistency": nothing}
    mix = ["0 50%, 1 50%"] * tree.n_nodes
    coalitions = coalition_frame(tree, size, parts, nothing, nothing, nothing, mix)
    coalitions.to_parquet(draft / "coalitions.parquet", index=False)
    names = [
        "coalitions.parquet",
        *(f"values/{p.name}" for p in sorted(draft.glob("values/*"))),
    ]
    about = {
        "kind": "dataset", "n_rows": n, "n_classes": 2, "surplus": float(sums[0]), "notes": [],
        "source": {"table": "made up"}, "settings": {},
        "bytes": {name: (draft / name).stat().st_size for name in names},
    }  # fmt: skip
    publish(draft, out, sealed(about, dict.fromkeys(names, "")))
    return out


def ring(x: float, y: float, radius: float) -> str:
    """A lasso of forty corners."""
    turn = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    return ";".join(
        f"{x + radius * a:.4f},{y + radius * b:.4f}"
        for a, b in zip(np.cos(turn), np.sin(turn), strict=True)
    )


def views(session: Session) -> dict[str, list[tuple[str, dict]]]:
    """Of each view, what is asked of it: never the same twice."""
    now = session.now
    n, nodes = now.opened.n_rows, len(now.opened.coalitions)
    rng = np.random.default_rng(2)
    low, high = now.queries.spread()["low"], now.queries.spread()["high"]
    cuts = [f"{cut:.6g}" for cut in np.linspace(low, high, 8)[1:-1]]
    some = [str(each) for each in rng.integers(0, n, 6)]
    kinds = {
        "rows by value": [("/rows", {"sort": s, "down": d}) for s in ("value", "doubt", "utility")
                          for d in "01"],
        "rows, filtered": [("/rows", {"filter": f"value<{c}", "sort": "doubt"}) for c in cuts],
        "rows of a coalition": [("/rows", {"coalition": str(k), "sort": "value"})
                                for k in range(1, 7)],
        "page 1,000": [("/rows", {"sort": s, "down": d, "offset": "50000"})
                       for s in ("value", "doubt", "stderr") for d in "01"],
        "coalition": [("/coalitions", {"node": str(k)}) for k in rng.integers(0, nodes, 6)],
        "row": [("/row", {"id": each}) for each in some],
        "suspects": [("/suspects", {"filter": f"label={k % 2}", "sort": s}) for k, s in
                     enumerate(("row", "value", "stderr", "utility", "leaf", "dispersion"))],
    }  # fmt: skip
    if now.queries.columns.given:
        words = WORDS[:6]
        kinds["search for a word"] = [("/rows", {"q": f"{word} {word}"}) for word in words]
        kinds["rows by a given column"] = [
            ("/rows", {"sort": s, "down": d})
            for s in ("income", "age", "visits")
            for d in "01"
        ]
    if now.opened.run is not None:
        x0, y0, x1, y1 = now.queries.extent()
        centre = [
            (x0 + (x1 - x0) * a, y0 + (y1 - y0) * b)
            for a, b in rng.uniform(0.35, 0.65, (6, 2))
        ]
        side = min(x1 - x0, y1 - y0)
        kinds["whole map"] = [
            ("/spots", {"colour": c, "filter": f"row>={k}"})
            for k, c in enumerate(("value", "doubt", "density") * 2)
        ]
        kinds["map by label"] = [
            ("/spots", {"colour": "label", "filter": f"row>={k}"}) for k in range(6)
        ]
        kinds["piece of the map"] = [
            (
                "/spots",
                {
                    "x0": x - side / 9,
                    "y0": y - side / 9,
                    "x1": x + side / 9,
                    "y1": y + side / 9,
                },
            )
            for x, y in centre
        ]
        for name, radius in (("small", 0.05), ("middle", 0.16), ("large", 0.4)):
            kinds[f"{name} lasso"] = [
                ("/worth", {"polygon": ring(x, y, radius * side)}) for x, y in centre
            ]
    return kinds


def answered(session: Session, path: str, asked: dict) -> bytes:
    route = BY_PATH[path]
    given = {name: [str(value)] for name, value in asked.items()}
    said = getattr(pages, route.answer)(
        session, asked_of(route, lambda name: given.get(name, []))
    )
    return json.dumps(plain(said)).encode()


def measured(run: Path, *, fresh: bool) -> dict:
    """Milliseconds of every view."""
    if fresh:
        shutil.rmtree(run / "explorer", ignore_errors=True)
    found: dict[str, dict] = {}
    started, cpu = time.perf_counter(), time.process_time()
    session = Session(run)
    session.now.queries.database.seconds = 300  # whatever else the machine does
    found["opening"] = {"first": 1e3 * (time.perf_counter() - started),
                        "first_cpu": 1e3 * (time.process_time() - cpu)}  # fmt: skip
    begun, cpu = time.perf_counter(), time.process_time()
    answered(session, "/overview", {})
    found["overview"] = {"first": 1e3 * (time.perf_counter() - begun),
                         "first_cpu": 1e3 * (time.process_time() - cpu)}  # fmt: skip
    for name, asked in views(session).items():
        wall, used, n_bytes, rows = [], [], [], []
        for path, each in asked:
            begun, cpu = time.perf_counter(), time.process_time()
            text = answered(session, path, each)
            wall.append(1e3 * (time.perf_counter() - begun))
            used.append(1e3 * (time.process_time() - cpu))
            n_bytes.append(len(text))
            rows.append(json.loads(text).get("n_rows"))
        found[name] = {
            "first": wall[0], "first_cpu": used[0], "best": min(wall[1:]),
            "median": float(np.median(wall[1:])),
            "cpu": float(np.median(used[1:])), "kb": max(n_bytes) / 1024,
            "rows": None if rows[0] is None else int(np.median([r or 0 for r in rows])),
        }  # fmt: skip
        print(
            f"{name:26}", {k: v if v is None else round(v) for k, v in found[name].items()}
        )
    session.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=("table", "dataset"))
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    own = parser.parse_args()
    own.folder.mkdir(exist_ok=True)
    run = {"table": table_run, "dataset": dataset_run}[own.kind](own.rows, own.folder)
    found = measured(run, fresh=True)
    again = time.perf_counter()
    Session(run).close()
    line = {
        "kind": own.kind, "n": own.rows, "views": found,
        "load": Path("/proc/loadavg").read_text()[:4],
        "opening_again": 1e3 * (time.perf_counter() - again), "cores": os.cpu_count(),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "commit": provenance()["commit"],
    }  # fmt: skip
    path = RESULTS / "explorer.json"
    held = json.loads(path.read_text())["rows"] if path.exists() else []
    held = [each for each in held if (each["kind"], each["n"]) != (own.kind, own.rows)]
    about = provenance("python benchmarks/explorer.py")
    held = sorted([*held, line], key=lambda each: (each["kind"], each["n"]))
    path.write_text(json.dumps({"rows": held, "provenance": about}, indent=1) + "\n")
    print(
        {name: value for name, value in line.items() if name != "views"}, found["opening"]
    )


if __name__ == "__main__":
    main()
