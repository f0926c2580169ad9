"""History and drift of a living run as tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hcdv.errors import ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from hcdv.result import Run

_SHOWN = 20  # classes whose shares the history has columns for


def history(run: Run) -> pd.DataFrame:
    """One line an update, the fit first."""
    import pandas as pd

    assert run.living is not None
    records = run.living.history
    frame = pd.DataFrame([record.summary() for record in records])
    classes = run.target.classes
    if classes is not None:
        shares = [record.labels / max(1, record.labels.sum()) for record in records]
        for code, name in enumerate(classes[:_SHOWN].tolist()):
            frame[f"share {name}"] = [share[code] for share in shares]
    return frame


def coalition_history(run: Run) -> pd.DataFrame:
    """A line an update and coalition that played in it; `node` as in `drift`."""
    import pandas as pd

    assert run.living is not None
    node = _node_of(run)
    return pd.concat([
        pd.DataFrame({
            "update": record.number, "key": record.key, "node": _nodes(node, record.key),
            "size": record.size, "value": record.value,
        })
        for record in run.living.history
    ], ignore_index=True)  # fmt: skip


def _node_of(run: Run) -> dict[int, int]:
    assert run.living is not None
    return {key: at for at, key in enumerate(run.living.node_key.tolist())}


def _nodes(node: dict[int, int], keys: Iterable[Any]) -> list[int]:
    return [node.get(int(key), -1) for key in keys]


def drift(run: Run, since: int = 0) -> pd.DataFrame:
    """Coalitions by how much their value changed since an update, the greatest gain first.

    `node` is the coalition's row in `coalitions_` now, or −1 where it is no more.
    """
    import pandas as pd

    assert run.living is not None
    records = run.living.history
    now = records[-1]
    number = since if since >= 0 else now.number + 1 + since
    then = next((record for record in records if record.number == number), None)
    if then is None:
        raise ParameterError("since", since, "an update of history_", "0 is the fit.")
    frame = pd.DataFrame({"key": np.union1d(then.key, now.key)})
    for suffix, record in (("_before", then), ("", now)):
        own = pd.DataFrame({
            "key": record.key, f"size{suffix}": record.size, f"value{suffix}": record.value,
        })  # fmt: skip
        frame = frame.merge(own, on="key", how="left")
    frame = frame.fillna(0.0).astype({"size_before": int, "size": int})
    frame.insert(1, "node", _nodes(_node_of(run), frame["key"]))
    frame["change"] = frame["value"] - frame["value_before"]
    return frame.sort_values("change", ascending=False, ignore_index=True)
