"""Value the rows of an npz with OpenDataVal; started by environments.py.

tmc is DataShapley with the library's TMCSampler, stopped after so many permutations or
processor seconds, whichever is first; its own default, GrTMCSampler, makes at least
1,000. The model is logistic regression, the utility accuracy on the validation rows.
cache_name=None always: the class-level cache is keyed by id(self), which Python reuses.
"""

from __future__ import annotations

import contextlib
import io

import numpy as np
from measured import Meter, OutOfTime, arguments, read_table, versions, write_values
from opendataval.dataloader import DataFetcher
from opendataval.dataval import DataShapley, KNNShapley
from opendataval.dataval.margcontrib.sampler import TMCSampler
from opendataval.metrics import accuracy
from opendataval.model import ClassifierSkLearnWrapper
from sklearn.linear_model import LogisticRegression


class LimitedTMC(TMCSampler):
    """The library's sampler, its permutations untouched, with a time limit around them."""

    meter = None

    def compute_marginal_contribution(self, *args, **settings):
        # OutOfTime ends the loop; what the permutation under way has added is kept.
        with contextlib.suppress(OutOfTime):
            for _ in range(self.mc_epochs):
                self._calculate_marginal_contributions(*args, **settings)
                self.meter.permutation_done()
        self.marginal_contribution = self.marginal_contrib_sum / self.marginal_count
        return self.marginal_contribution


def one_hot(labels, classes):
    return np.eye(len(classes))[np.searchsorted(classes, labels)]


def main():
    asked = arguments(__doc__)
    X, y, X_val, y_val = read_table(asked.data)
    classes = np.unique(np.concatenate([y, y_val]))
    hot, hot_val = one_hot(y, classes), one_hot(y_val, classes)
    fetcher = DataFetcher.from_data_splits(
        X, hot, X_val, hot_val, X_val, hot_val, one_hot=True, random_state=asked.seed
    )
    meter = Meter(asked.max_cpu_seconds)

    def counted_accuracy(truth, predicted):
        meter.fit_scored()
        return accuracy(truth, predicted)

    sampler = LimitedTMC(asked.permutations, cache_name=None, random_state=asked.seed)
    sampler.meter = meter
    method = (
        KNNShapley(k_neighbors=asked.k, random_state=asked.seed)
        if asked.method == "knn"
        else DataShapley(sampler)
    )
    model = ClassifierSkLearnWrapper(LogisticRegression, len(classes), max_iter=200)
    with contextlib.redirect_stdout(io.StringIO()):
        method.train(fetcher, model, counted_accuracy)
        values = np.asarray(method.data_values, dtype=float).ravel()
    report = {
        "peer": "OpenDataVal",
        "method": asked.method,
        **meter.read(),
        "versions": versions("opendataval", "torch", "numpy", "scikit-learn"),
    }
    write_values(asked.out, values, report)


if __name__ == "__main__":
    main()
