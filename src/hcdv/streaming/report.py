"""History and drift of a living run as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    node = {int(key): at for at, key in enumerate(run.living.node_key)}
    frame.insert(1, "node", [node.get(int(key), -1) for key in frame["key"]])
    frame["change"] = frame["value"] - frame["value_before"]
    return frame.sort_values("change", ascending=False, ignore_index=True)
