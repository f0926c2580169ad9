"""Why a row has its value: the coalitions it lies in, its parts, its label, its neighbours."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hcdv.errors import ParameterError
from hcdv.uses.description import description, words
from hcdv.uses.suspects import suspects

if TYPE_CHECKING:
    from hcdv.given import Given
    from hcdv.result import Run

N_NEIGHBOURS = 5


@dataclass(frozen=True)
class Explanation:
    """One row's value, taken apart. Prints as text; `to_dict` for machines."""

    row: int
    id: Any
    value: float
    stderr: float
    rank: int  # 1 is the most valuable
    n_rows: int
    parts: dict[str, float]
    label: dict[str, Any]  # given, suggested, score, probability, is_suspect
    path: list[dict[str, Any]]  # root → leaf: id, level, size, value, …, description
    supporters: list[dict[str, Any]]  # nearest rows of its label in its leaf, or near it
    opponents: list[dict[str, Any]]  # nearest rows of other labels

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON-able data."""
        return asdict(self)

    def __str__(self) -> str:
        share = self.rank / self.n_rows
        lines = [
            (
                f"row {self.row} (id {self.id}): value {self.value:+.3g} ± {self.stderr:.1g}, "
                f"rank {self.rank:,} of {self.n_rows:,} (top {share:.1%})"
            ),
            "  made of " + ", ".join(f"{name} {x:+.3g}" for name, x in self.parts.items()),
        ]
        label = self.label
        verdict = "doubted" if label["is_suspect"] else "supported"
        lines.append(
            f"  label {label['given']} is {verdict}: models taught without it prefer "
            f"{label['suggested']} (wrong with a chance of {label['probability']:.2f})"
        )
        lines.append("  coalitions it belongs to, from the whole set down:")
        for step in self.path:
            lines.append(
                f"    level {step['level']}  #{step['id']}: {step['size']:,} rows worth "
                f"{step['value']:+.3g}, {step['value_per_row']:+.2g} a row ({step['label_mix']})"
            )
            lines += [f"             {said}" for said in [step.get("description")] if said]
        for name, rows in (
            ("same label", self.supporters),
            ("other labels", self.opponents),
        ):
            shown = ", ".join(
                f"{r['row']} ({r['label']}, cosine {r['cosine']:.2f})" for r in rows
            )
            lines.append(f"  nearest rows with {name}: {shown or 'none'}")
        return "\n".join(lines)

    __repr__ = __str__


def explain(run: Run, i: int, given: Given | None = None) -> Explanation:
    """Explain row i of the user's order; in the words of the rows given, where there are any."""
    if not isinstance(i, int | np.integer) or not 0 <= i < run.n_rows:
        raise ParameterError("i", i, f"a row number from 0 to {run.n_rows - 1}")
    i = int(i)
    values = run.values
    frame = run.coalitions()
    columns = ["id", "level", "size", "value", "value_per_row", "label_mix"]
    path = run.tree.path(i)
    steps = frame.iloc[path][columns].to_dict("records")
    for step, traits in zip(
        steps, description(given, run.ids, run.tree, path), strict=True
    ):
        step["description"] = words(traits)
    doubted = suspects(run).set_index("row").loc[i].to_dict()
    supporters, opponents = _neighbours(run, i)
    return Explanation(
        i, _plain(run.ids[i]), float(values[i]), float(run.stderr[i]),
        int(np.sum(values > values[i])) + 1, run.n_rows,
        {name: float(part[i]) for name, part in run.parts.items()},
        {str(key): _plain(x) for key, x in doubted.items()},
        [{str(key): _plain(x) for key, x in step.items()} for step in steps],
        supporters, opponents,
    )  # fmt: skip


def _neighbours(run: Run, i: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nearest rows by cosine, of its label and of others; for numbers, above and below it."""
    Z, labels, values = run.embedding, run.labels, run.values
    cosine = Z @ Z[i]
    cosine[i] = -np.inf
    if run.target.classes is None:
        same = np.abs(labels - labels[i]) <= run.target.scale / 2
    else:
        same = labels == labels[i]
    found: list[list[dict[str, Any]]] = []
    for group in (same, ~same):
        near = np.where(group, cosine, -np.inf)
        rows = np.argsort(-near, kind="stable")[:N_NEIGHBOURS]
        found.append([
            {
                "row": int(row), "label": _plain(labels[row]), "cosine": float(cosine[row]),
                "value": float(values[row]),
            }
            for row in rows if np.isfinite(near[row])
        ])  # fmt: skip
    return found[0], found[1]


def _plain(x: Any) -> Any:
    return x.item() if isinstance(x, np.generic) else x
