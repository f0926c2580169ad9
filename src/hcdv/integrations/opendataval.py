"""HCDV as one of OpenDataVal's data evaluators, for their fetchers, mediators and experiments.

    from hcdv.integrations.opendataval import HCDVEvaluator

    mediator.compute_data_values([HCDVEvaluator(random_state=0), KNNShapley(10)])

It runs inside OpenDataVal's own environment, no files in between: hcdv's lower bounds admit
the numpy 1.25 and pandas 1.5 that OpenDataVal 1.3.0 pins, on Python 3.11. Its other pins no
longer resolve; benchmarks/peers/install.sh makes an environment that works, and `pip install
--no-deps hcdv` adds this package to it, as does its folder on PYTHONPATH.

Values are those of `HCDV(**settings).fit(...)` on the same rows. Like KNNShapley and LAVA it
uses no model of the harness; give the model that embeds raw rows as `embedding_model`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hcdv.errors import MissingExtra
from hcdv.estimator import HCDV

try:
    from opendataval.dataval import (  # pyright: ignore[reportMissingImports]
        DataEvaluator,
        ModelLessMixin,
    )
except ImportError as error:
    raise MissingExtra(
        "hcdv.integrations.opendataval needs opendataval, which is not installed. Run pip "
        "install --no-deps opendataval==1.3.0, and what it imports: its pins do not resolve."
    ) from error


class HCDVEvaluator(DataEvaluator, ModelLessMixin):
    """Hierarchical contrastive data values of the rows a harness puts in.

    Parameters
    ----------
    embedding_model : opendataval.model.Model or None
        Embeds raw rows before they are valued.
    random_state : int, RandomState or None
        Seed of every draw.
    **settings
        Settings of `hcdv.HCDV`.
    """

    def __init__(
        self, embedding_model: Any = None, random_state: Any = None, **settings: Any
    ) -> None:
        super().__init__(random_state)
        self.embedding_model = embedding_model
        self.hcdv = HCDV(random_state=random_state, **settings)

    def train_data_values(self, *_args: Any, **_settings: Any) -> Self:
        """Value the rows; what is meant for training the harness's model is ignored."""
        train, valid = self.embeddings(self.x_train, self.x_valid)
        self.hcdv.fit(
            _rows(train), _labels(self.y_train), _rows(valid), _labels(self.y_valid)
        )
        return self

    def evaluate_data_values(self) -> NDArray[np.float64]:
        """One value for each row, in their order."""
        return self.hcdv.values_


def _array(data: Any) -> NDArray[Any]:
    """A tensor, an array, or a data set that gives its rows one by one."""
    if hasattr(data, "numpy"):
        return np.asarray(data.numpy(force=True))
    if isinstance(data, np.ndarray):
        return data
    return np.stack([_array(data[i]) for i in range(len(data))])


def _rows(data: Any) -> NDArray[Any]:
    """Vectors: whatever has more axes is flattened."""
    array = _array(data)
    return array.reshape(len(array), -1)


def _labels(data: Any) -> NDArray[Any]:
    """Class codes of one-hot rows; numbers of a single column as they are."""
    array = _rows(data)
    return array.argmax(axis=1) if array.shape[1] > 1 else array.ravel()
