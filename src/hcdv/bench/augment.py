"""Table `augment`: 10,000 made images, and which of them are worth training on.

Paper: Sec. "Valuation of Augmented Data". What it leaves open, and what is done here:

- Data. Fashion-MNIST's 60,000 training images are the originals. Half of its 10,000 test
  images, by seed, judge: values and the best weights of the network; accuracy is measured
  on the other half.
- Candidates: 2,500 of each kind (`augmentations.py`), made from the originals. The
  diffusion quarter comes from a small class-conditional VAE that is trained here, a far
  weaker generator, called *generated* for that.
- Values. `hcdv`, `hcdv κ=0` and `mcds` value candidates against the originals without
  entering them (`uses/candidates.py`: what each would add as one more row, by the formula of one
  context; none enters a context or the tree); `hcdv by class` ranks them within each class,
  so that every slice holds all classes evenly; `hcdv chosen` is the choice of `hcdv augment
  --keep` (`uses/admission.py`), in its order: the kept, the others, those set aside. `hcdv
  joint` values originals and candidates together, as the paper's formula reads. `group
  shapley` groups by label, as in the paper:
  a candidate gets the mean of its class, ties by chance. Rows are seen through the default
  encoder, PCA of the pixels, where the paper has a network trained on the originals.
- Slices of 1,000: the top, the middle (ranks 4,001 to 5,000) and the bottom. `random` shows
  how far apart slices are that differ by nothing. `originals` is no slice of candidates
  but 1,000 originals that are in no training set otherwise.
- Training: a small ConvNet from scratch, twice for every slice. *added*: the slice beside
  59,000 originals. *amplified*: the slice 18 times over beside 42,000 originals, "30 % of
  the training set" read literally. Both have 60,000 rows. The paper's 1,000 of 60,000 rows
  alone move accuracy by tenths of a point.
- Overlap. In a tree grown on the originals every leaf holds some. So for this number alone
  a tree is grown on both together (32 parts, four in each, leaves of at most 128): overlap
  is the share of a slice whose leaf there holds an original.
- `--fast`: 1,000 originals, 400 candidates, slices of 40, 500 images that judge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcdv.bench.augmentations import KINDS, Candidates, candidates
from hcdv.bench.cells import Ask, Key, Record
from hcdv.bench.datasets import DataSet, load
from hcdv.bench.methods import Problem, fitted, random_values
from hcdv.embedding.encoders import AutoEncoder
from hcdv.engines.local import one_thread_each
from hcdv.estimator import HCDV
from hcdv.hierarchy.growth import grow
from hcdv.intake import unit
from hcdv.uses.candidates import Parts, as_points, ask, labelled_parts

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

N_TRAIN = 60_000  # the first rows of the data set; the others are its test images
CONTROL = "originals"
SLICES = {"top": 0.0, "middle": 0.4, "bottom": 0.9}  # share of the candidates ranked above
SLICE, AMPLIFIED = 0.1, 0.3  # of the candidates; of the training set
M_ALONE: dict[str, Any] = {"dispersion_weight": 0.0, "consistency_weight": 0.0}


@dataclass(frozen=True)
class Size:
    """How much of everything."""

    originals: int
    candidates: int
    judges: int
    test: int
    epochs: int  # of the generator

    @property
    def slice(self) -> int:
        """Rows of a slice."""
        return round(SLICE * self.candidates)


FULL = Size(60_000, 10_000, 5_000, 5_000, 10)
FAST = Size(1_000, 400, 500, 2_000, 40)


@dataclass(frozen=True, eq=False)
class Pool:
    """Originals as a problem to value, candidates beside them, and images that test.

    Equal to itself alone, so that what is found of it can be looked up.
    """

    problem: Problem
    made: Candidates
    X_test: Any
    y_test: Rows


def pool(data: DataSet, size: Size, seed: int) -> Pool:
    """Draw originals, judges and test images, and make the candidates."""
    rng = np.random.default_rng([seed, 62])
    rows = rng.permutation(N_TRAIN)[: size.originals]
    held = N_TRAIN + rng.permutation(len(data.y) - N_TRAIN)
    X, y = data.rows(rows)
    X_val, y_val = data.rows(held[: size.judges])
    X_test, y_test = data.rows(held[size.judges : size.judges + size.test])
    made = candidates(X, y, size.candidates, seed, epochs=size.epochs)
    problem = Problem(X, y, X_val, y_val, data.n_classes, seed)
    return Pool(problem, made, X_test, y_test)


@lru_cache(maxsize=1)  # the cells of a seed follow each other
def _pool(folder: Path | None, size: Size, seed: int) -> Pool:
    return pool(load("fashion-mnist", folder), size, seed)


def valued_outside(model: HCDV, found: Pool) -> Parts:
    """The candidates against the originals of a fitted model; labels are class codes."""
    with one_thread_each():
        Z = unit(model.encoder_.transform(found.made.X))
        points = as_points(model.run_, Z, found.made.y)
        return labelled_parts(model.run_, points, ask(model.run_, points))


def _outside(found: Pool, **settings: Any) -> Floats:
    model, _ = fitted(found.problem, **settings)
    return valued_outside(model, found).values


def within_classes(values: Floats, y: Rows) -> Floats:
    """The share of its own class that a candidate is ahead of: slices hold classes evenly."""
    order = np.lexsort((values, y))
    count = np.bincount(y)
    first = np.cumsum(count) - count
    place = np.empty(len(y))
    place[order] = np.arange(len(y)) - first[y[order]] + 0.5
    return place / count[y]


def _chosen(found: Pool) -> Floats:
    """As `hcdv augment --keep` ranks them: the kept, the others, those set aside."""
    model, _ = fitted(found.problem)
    keep = round(SLICE * len(found.made.y))
    told = model.score_candidates(found.made.X, found.made.y, keep=keep)
    return -told["rank"].to_numpy(dtype=np.float64)


def _marginals_alone(found: Pool) -> Floats:
    """A flat tree has no coalitions: the mean marginal is all there is."""
    model, _ = fitted(found.problem, branching="flat", **M_ALONE)
    return valued_outside(model, found).marginal


def _together(found: Pool) -> Floats:
    own = found.problem
    X, y = np.concatenate([own.X, found.made.X]), np.concatenate([own.y, found.made.y])
    both = Problem(X, y, own.X_val, own.y_val, own.n_classes, own.seed)
    return fitted(both)[0].values_[len(own.y) :]


def _by_class(found: Pool) -> Floats:
    """The mean value of the originals of the label; by chance within."""
    model, _ = fitted(found.problem, branching=["classes"], **M_ALONE)
    y, made = found.problem.y, found.made.y
    total = np.bincount(y, weights=model.values_, minlength=found.problem.n_classes)
    place = np.argsort(np.argsort(total / np.maximum(np.bincount(y), 1)))
    return place[made] + np.random.default_rng([found.problem.seed, 63]).random(len(made))


def _nothing(found: Pool) -> Floats:
    own = found.problem
    made = found.made
    return random_values(Problem(made.X, made.y, None, made.y, own.n_classes, own.seed))


METHODS: dict[str, Callable[[Pool], Floats]] = {
    "hcdv": _outside,
    "hcdv κ=0": lambda found: _outside(found, consistency_weight=0.0),
    "hcdv by class": lambda found: within_classes(_outside(found), found.made.y),
    "hcdv chosen": _chosen,
    "hcdv joint": _together,
    "mcds": _marginals_alone,
    "group shapley": _by_class,
    "random": _nothing,
}


def slices(values: Floats) -> dict[str, Rows]:
    """Candidates from the top, the middle and the bottom of the ranking."""
    order = np.argsort(-values, kind="stable")
    n = round(SLICE * len(order))
    start = {name: round(above * len(order)) for name, above in SLICES.items()}
    return {name: order[at : at + n] for name, at in start.items()}


@lru_cache(maxsize=1)
def overlap(found: Pool) -> tuple[NDArray[np.bool_], Floats]:
    """Whether the leaf of each candidate holds an original, and the leaf's share of them."""
    n = len(found.problem.y)
    both = np.concatenate([found.problem.X, found.made.X])
    rng = np.random.default_rng([found.problem.seed, 64])
    with one_thread_each():
        encoder = AutoEncoder(n_jobs=-1).fit(found.problem.X, None, rng)
        Z = unit(encoder.transform(both))
        tree = grow(Z, branching=(32, 4), leaf_size=128, rng=rng, n_jobs=-1)
    leaf = tree.leaf_of_row
    share = np.bincount(leaf[:n], minlength=tree.n_nodes) / np.maximum(tree.size, 1)
    return share[leaf[n:]] > 0, share[leaf[n:]]


@dataclass(frozen=True)
class AugmentTable:
    """Accuracy with slices of candidates, ranked by every method."""

    name: str = "augment"
    size: Size = FULL
    ways: tuple[str, ...] = ("added", "amplified")

    def cells(self, ask: Ask) -> Iterable[Key]:
        """The control of a seed, then its methods."""
        for seed in range(1 if ask.fast else ask.seeds):
            for method in (CONTROL, *METHODS):
                yield {"method": method, "seed": seed}

    def measured(self, key: Key, ask: Ask) -> Record:
        """Accuracy and make-up of the slices, and the seconds of valuation."""
        size = FAST if ask.fast else self.size
        found = _pool(ask.data, size, key["seed"])
        record: Record = {"n_originals": size.originals, "n_candidates": size.candidates}
        if key["method"] == CONTROL:
            own = found.problem
            kept = slice(-size.slice, None)  # the last originals are in no training set
            X, y = own.X[kept], own.y[kept]
            return {**record, **_taught(found, X, y, "top", self.ways)}
        began = perf_counter()
        values = METHODS[key["method"]](found)
        record["seconds"] = perf_counter() - began
        held, share = overlap(found)
        for name, rows in slices(values).items():
            X, y = found.made.X[rows], found.made.y[rows]
            record |= _taught(found, X, y, name, self.ways)
            record |= {
                f"overlap {name}": float(held[rows].mean()),
                f"originals near {name}": float(share[rows].mean()),
                f"classes {name}": len(np.unique(found.made.y[rows])),
            }
            mix = np.bincount(found.made.kind[rows], minlength=len(KINDS)) / len(rows)
            record |= {
                f"{kind} {name}": float(part) for kind, part in zip(KINDS, mix, strict=True)
            }
        return record

    def page(self, records: list[Record]) -> str:
        """All cells as Markdown."""
        from hcdv.bench.augment_page import page

        return page(records)

    def figures(self, records: list[Record], folder: Path) -> list[Path]:
        """Accuracy and make-up of the slices."""
        from hcdv.bench.augment_page import figure

        return figure(records, folder, self.name)


def _taught(
    found: Pool, X: Any, y: Rows, name: str, ways: tuple[str, ...] = ("added", "amplified")
) -> Record:
    """Accuracy and minutes with a slice, added once and amplified."""
    from hcdv.bench.downstream import scored, train

    own = found.problem
    n, n_slice = len(own.y), len(y)
    times = round(AMPLIFIED * n / n_slice)
    record: Record = {}
    for how, repeats in (("added", 1), ("amplified", times)):
        if how not in ways:
            continue
        kept = n - repeats * n_slice
        rows = np.concatenate([own.X[:kept], np.tile(X, (repeats, 1, 1))])
        labels = np.concatenate([own.y[:kept], np.tile(y, repeats)])
        began = perf_counter()
        model = train("convnet", rows, labels, own.X_val, own.y_val, own.seed)
        record[f"minutes {how} {name}"] = (perf_counter() - began) / 60
        chances = model.predict_proba(found.X_test)
        record[f"{how} {name}"] = scored("accuracy", found.y_test, chances)
    return record


BENCH = AugmentTable()
