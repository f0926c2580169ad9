"""Candidates as a table: value, error, parts, label, place among the originals, keep or drop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import ParameterError
from hcdv.uses.admission import admitted
from hcdv.uses.candidates import Parts, as_points, ask, labelled_parts, unlabelled_parts
from hcdv.uses.novelty import novelty

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.result import Run


def check_keep(keep: Any) -> None:
    """Refuse a number of rows that is none, before any work is done."""
    is_number = isinstance(keep, int | np.integer) and not isinstance(keep, bool)
    if keep is not None and (not is_number or keep < 1):
        raise ParameterError("keep", keep, "None or a number of rows from 1")


def scored(
    run: Run, Z: NDArray[np.floating], labels: NDArray[Any] | None,
    groups: NDArray[Any] | None = None, keep: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """A line for every candidate, in the order they came."""
    import pandas as pd

    if labels is None:
        parts, told = _without_labels(run, Z)
    else:
        parts, told = _with_labels(run, Z, labels)
    frame = pd.DataFrame(
        {
            "row": np.arange(len(Z)), "value": parts.values,
            "stderr": np.sqrt(parts.variance), "utility": parts.utility,
            "dispersion": parts.dispersion, "consistency": parts.consistency,
            **told, **_places(run, Z),
        }
    )  # fmt: skip
    if groups is not None:
        frame["group"] = groups
    if keep is not None:
        found = admitted(frame, *_classes(run, frame), int(keep))
        frame["keep"], frame["rank"], frame["reason"] = found.keep, found.rank, found.reason
    return frame


def compared(frame: pd.DataFrame) -> pd.DataFrame:
    """A line a group: how many, mean value and novelty, shares kept, doubted and copied."""
    columns = {
        "rows": ("row", "size"),
        "value": ("value", "mean"),
        "novelty": ("novelty", "mean"),
    }
    columns["copies"] = ("is_duplicate", "mean")
    if "wrong" in frame:
        columns["wrong"] = ("wrong", "mean")
    if "keep" in frame:
        columns["kept"] = ("keep", "mean")
    by_group = frame.groupby("group", sort=False)
    return by_group.agg(**columns).sort_values("value", ascending=False).reset_index()


def _with_labels(
    run: Run, Z: NDArray[np.floating], labels: NDArray[Any]
) -> tuple[Parts, dict[str, Any]]:
    points = as_points(run, Z, run.target.coded(labels))
    said = ask(run, points)
    parts = labelled_parts(run, points, said)
    if run.target.classes is None:
        suggested = said.scores[0] * run.target.scale + run.target.centre
    else:
        suggested = run.target.classes[said.scores.argmax(axis=0)]
    return parts, {"label": labels, "wrong": parts.wrong, "suggested": suggested}


def _without_labels(run: Run, Z: NDArray[np.floating]) -> tuple[Parts, dict[str, Any]]:
    found, target = unlabelled_parts(run, Z), run.target
    if target.classes is None:
        suggested = found.best * target.scale + target.centre
    else:
        suggested = target.classes[found.best]
    return found.parts, {
        "suggested": suggested, "certainty": found.chance, "spread": found.spread,
    }  # fmt: skip


def _places(run: Run, Z: NDArray[np.floating]) -> dict[str, Any]:
    """Leaf, nearest original, distances, and what is copied."""
    own = run.case.points.Z
    found = novelty(own, run.canonical_tree, Z.astype(own.dtype))
    nearest = run.position[found.nearest]
    copy_of = np.full(len(Z), "", dtype=object)
    twice = found.copy_of >= 0
    copy_of[twice] = [f"candidate {row}" for row in found.copy_of[twice]]
    again = found.copy_of_original
    copy_of[again] = [f"row {row}" for row in nearest[again]]
    return {
        "leaf": found.leaf, "leaf_distance": found.leaf_distance, "nearest": nearest,
        "distance": found.distance, "novelty": found.novelty,
        "is_duplicate": twice | again, "copy_of": copy_of,
    }  # fmt: skip


def _classes(
    run: Run, frame: pd.DataFrame
) -> tuple[NDArray[np.intp], NDArray[np.floating]]:
    """Class of every candidate, likely or known, and shares of the classes; of numbers one."""
    if run.target.classes is None:
        return np.zeros(len(frame), dtype=np.intp), np.ones(1)
    own = run.case.points
    code = run.target.coded(frame["label" if "label" in frame else "suggested"].to_numpy())
    return code, np.bincount(own.target, minlength=own.n_classes) / len(own)
