"""What the sample teaches: how rows become vectors, find their leaf, are judged and are asked.

Everything here is made of the sample and of sums over all rows, so that it fits memory
whatever n is, and is made again, bit by bit, where a run is taken up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hcdv.dataset.levels import levels_of
from hcdv.dataset.sampling import Sample, labels_of
from hcdv.dataset.task import FEWEST_IN_LEAF, Task, as_frame
from hcdv.embedding.encoders import AutoEncoder, Plain, make_encoder
from hcdv.embedding.rows import Rows
from hcdv.embedding.tables import TableEncoder
from hcdv.embedding.target_statistics import Cells, LevelMass, LevelMeans
from hcdv.errors import DataError
from hcdv.hierarchy.assignment import Prototypes
from hcdv.hierarchy.growth import flat_tree, grow
from hcdv.intake import row_keys, unit, vector_dtype
from hcdv.judging import N_FOLDS, each_against_others
from hcdv.targets import Target
from hcdv.valuation.coalitions import Upper
from hcdv.valuation.contexts import Contexts, semivalue_contexts
from hcdv.valuation.doubts import asked_contexts
from hcdv.valuation.features import FeatureMap
from hcdv.valuation.nested import context_shape
from hcdv.valuation.plan import GAME_COALITIONS
from hcdv.valuation.points import Case, Judge, Originals, Points, class_scales
from hcdv.valuation.pointwise import Probe
from hcdv.valuation.statistics import row_dtype

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True)
class RowEncoder:
    """A block of rows → unit vectors, labels, keys and folds."""

    task: Task
    target: Target
    table: TableEncoder | None  # None: every column has many levels
    means: LevelMeans
    plain: frozenset[str]  # text columns that hold no levels, such as dates
    encoder: AutoEncoder | Plain
    notes: tuple[str, ...] = ()  # what a user should know of the columns

    @classmethod
    def of(cls, task: Task, target: Target, sample: Sample, mass: LevelMass) -> RowEncoder:
        """Learnt from the sample, and from the labels of all rows by level."""
        seen = TableEncoder().fit(Rows(frame=sample.frame)).columns
        many = tuple(c.name for c in seen if c.kind == "hashed" and c.name in mass.columns)
        plain = {c.name for c in seen if c.kind not in ("hashed", "levels")}
        rest = sample.frame.drop(columns=list(many))
        table = TableEncoder().fit(Rows(frame=rest)) if rest.shape[1] else None
        fold = task.folds(row_keys(sample.number))
        cells = partial(levels_of, sample.frame)
        means = mass.means(many).scaled(cells, fold)
        made = make_encoder(task.encoder, Rows(frame=sample.frame), n_jobs=task.plan.n_jobs)
        encoder = cast("AutoEncoder | Plain", made)  # a task names no others
        own = cls(task, target, table, means, frozenset(plain), encoder)
        rng = np.random.default_rng([task.plan.seed, 0])
        encoder.fit(own._numbers(sample.frame, cells, fold, np.dtype(float)), None, rng)
        return replace(own, notes=tuple(own._noted()))

    def points(
        self, frame: pd.DataFrame, labels: NDArray[Any], key: NDArray[np.uint64],
        fold: NDArray[np.intp], cells: Cells | None = None,
    ) -> Points:  # fmt: skip
        """Rows as Stage III sees them. cells: of columns that the frame lacks."""
        task, target = self.task, self.target
        cells = cells or partial(levels_of, frame)
        dtype = vector_dtype(task.n_rows, self.width)
        X = self._numbers(frame, cells, fold, dtype)
        Z = unit(self.encoder.transform(X, dtype), task.n_rows)
        return Points(Z, target.coded(labels), target.n_classes, key, fold)

    def block(self, first: int, table: pa.Table) -> Points:
        """The rows of a block of the data set."""
        task = self.task
        key = task.keys(range(first, first + table.num_rows))
        labels = labels_of(table, task.source, task.target, first)
        few = [name for name in task.features if name not in self.means.columns]
        frame = as_frame(table.select(few), self.plain)
        cells = partial(levels_of, table)
        return self.points(frame, labels, key, task.folds(key), cells)

    @property
    def width(self) -> int:
        """Columns of what the encoder reads."""
        table = 0 if self.table is None else len(self.table.feature_names_out)
        return table + self.means.width

    def _noted(self) -> list[str]:
        found = [] if self.table is None else list(self.table.notes)
        if self.means.columns:
            found.append(
                f"{len(self.means.columns)} columns of many levels are read as the mean label "
                f"of their level, out of fold: {', '.join(map(repr, self.means.columns[:5]))}"
                + (" …" if len(self.means.columns) > 5 else "")
            )
        reason = getattr(self.encoder, "reason", "")
        return [*found, f"encoder: {reason}"] if reason else found

    def _numbers(
        self, frame: pd.DataFrame, cells: Cells, fold: NDArray[np.intp], dtype: np.dtype
    ) -> NDArray[np.floating]:
        out = np.empty((len(fold), self.width), dtype)
        n_plain = self.width - self.means.width
        if self.table is not None:
            own = frame[[column.name for column in self.table.columns]]
            self.table.transform(Rows(frame=own), out[:, :n_plain])
        self.means.read(cells, fold, out[:, n_plain:])
        return out


@dataclass(frozen=True)
class Model:
    """All that is fixed before the second pass."""

    task: Task
    rows: RowEncoder
    sample: Case  # the sample as a case: its judges judge all
    prototypes: Prototypes
    upper: Upper  # over the leaves as rows
    probe: Probe
    contexts: Contexts
    asking: Contexts  # those behind label consistency
    scales: NDArray[np.float64] | None  # (C,)  weights of rows by class; None: numbers

    @classmethod
    def of(
        cls, task: Task, target: Target, count: NDArray[np.int64], sample: Sample,
        mass: LevelMass, validation: Sample | None,
    ) -> Model:  # fmt: skip
        """Everything that the sample teaches."""
        rows = RowEncoder.of(task, target, sample, mass)
        key = row_keys(sample.number)
        points = rows.points(sample.frame, sample.labels, key, task.folds(key))
        case = _case(rows, points, target, validation)
        tree = _grown(task, points)
        prototypes = Prototypes.of(tree, points.Z)
        plan = task.plan
        probe = Probe.of(case, plan.surrogate, plan.metric, plan.seed)
        probe = replace(probe, ridge=plan.surrogate.ridge * task.n_rows)
        n_orders, n_thresholds = context_shape(plan, len(case.judges))
        contexts = semivalue_contexts(n_orders, n_thresholds, plan.seed)
        return cls(
            task, rows, case, prototypes, _upper(task, prototypes), probe, contexts,
            asked_contexts(task.n_rows, plan.seed), class_scales(count) if len(count) else None,
        )  # fmt: skip

    @property
    def judge_of(self) -> NDArray[np.intp]:
        """(R,) the judge of each order."""
        return self.contexts.stream % len(self.sample.judges)

    @property
    def barred(self) -> NDArray[np.bool_]:
        """(R, n_folds) folds whose rows an order never holds."""
        return ~np.array([self.sample.judges[k].eligible for k in self.judge_of])

    @property
    def dtype(self) -> np.dtype:
        """Of the probe's products, as for all rows at once."""
        return self.dtype_of(self.probe.features[0])

    def dtype_of(self, features: FeatureMap) -> np.dtype:
        """Of products of features, as for all rows at once."""
        return row_dtype(self.task.n_rows, features.width)

    def weights(self, points: Points) -> NDArray[np.float64]:
        """Weights of rows in the probes that doubt labels."""
        return np.ones(len(points)) if self.scales is None else self.scales[points.target]


def _case(
    rows: RowEncoder, points: Points, target: Target, validation: Sample | None
) -> Case:
    """The sample with its judges: the validation rows, or each fold's part of the sample."""
    judges: list[Judge] = []
    if validation is not None:
        none = np.full(len(validation.labels), -1)
        judged = rows.points(
            validation.frame, validation.labels, np.zeros(len(none), np.uint64), none
        )
        judges.append(Judge(judged, 0, np.ones(N_FOLDS, dtype=bool)))
    else:
        eligible = each_against_others()
        for fold in range(N_FOLDS):
            own = points.take(points.fold == fold)
            _refuse_empty(own, fold)
            judges.append(Judge(own, 0, eligible[fold]))
    return Case(
        [points], judges, np.zeros(N_FOLDS, dtype=np.intp),
        Originals(None, target.labels, [], np.arange(len(points))),
    )  # fmt: skip


def _upper(task: Task, prototypes: Prototypes) -> Upper:
    """The game level of a tree of n rows, of which the shape has only the leaves."""
    first = int(prototypes.shape.n_children[0]) if prototypes.shape.depth else 1
    most = min(GAME_COALITIONS, max(first, task.n_rows // task.plan.game_rows))
    return Upper.of(prototypes.shape, most, 1)


def _refuse_empty(points: Points, fold: int) -> None:
    if not len(points):
        raise DataError(
            f"DATASET must hold rows enough for {N_FOLDS} folds, got none in fold {fold}. Value "
            "so few rows as a frame, with HCDV().fit."
        )


def _grown(task: Task, points: Points) -> Any:
    """The tree of the sample; its leaves are as many as the rows call for, or as can be told."""
    m, n = len(points), task.n_rows
    if task.branching == "flat":
        return flat_tree(m)
    fewest = task.leaf_size if m == n else max(FEWEST_IN_LEAF, task.leaf_size * m // n)
    rng = np.random.default_rng([task.plan.seed, 6])
    return grow(
        points.Z, branching=task.branching, leaf_size=fewest, rng=rng,
        n_jobs=task.plan.n_jobs,
    )  # fmt: skip
