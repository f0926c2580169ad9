"""Value the rows of an npz with pyDVL; started by environments.py.

tmc is TMCShapleyValuation with the truncation it comes with, stopped after so many
permutations or processor seconds, whichever is first. The model is logistic regression,
the utility accuracy on the validation rows.
"""

from __future__ import annotations

import numpy as np
import pydvl.valuation as pv
from joblib import parallel_config
from measured import Meter, OutOfTime, arguments, read_table, versions, write_values
from pydvl.valuation.stopping import MinUpdates
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier


class CountedUtility(pv.ModelUtility):
    """Accuracy of a retrained model; the meter is told of every one."""

    meter = None

    def __call__(self, sample):
        self.meter.fit_scored()
        return super().__call__(sample)


class CountedPermutations(MinUpdates):
    """Asked after every permutation whether it was the last."""

    meter = None

    def __call__(self, result):
        self.meter.permutation_done()
        return super().__call__(result)


def valuation(asked, validation, meter):
    if asked.method == "knn":
        neighbours = KNeighborsClassifier(n_neighbors=asked.k)
        return pv.KNNShapleyValuation(neighbours, validation, progress=False)
    scorer = pv.SupervisedScorer("accuracy", validation, default=0.0, range=(0, 1))
    utility = CountedUtility(LogisticRegression(max_iter=200), scorer, show_warnings=False)
    CountedUtility.meter = CountedPermutations.meter = meter
    return pv.TMCShapleyValuation(
        utility,
        is_done=CountedPermutations(asked.permutations),
        seed=asked.seed,
        show_warnings=False,
    )


def main():
    asked = arguments(__doc__)
    X, y, X_val, y_val = read_table(asked.data)
    meter = Meter(asked.max_cpu_seconds)
    method = valuation(asked, pv.Dataset(X_val, y_val), meter)
    try:
        with parallel_config(n_jobs=1):
            method.fit(pv.Dataset(X, y))
    except OutOfTime:
        pass  # whole permutations are in the result, the one under way is dropped
    measured = meter.read()
    result = method._result  # the public property refuses an unfinished run
    values = np.full(len(X), np.nan)
    values[np.asarray(result.indices)] = result.values
    if asked.method == "tmc" and not meter.permutations:
        values[:] = np.nan
    report = {
        "peer": "pyDVL",
        "method": asked.method,
        **measured,
        "versions": versions("pyDVL", "numpy", "scikit-learn", "joblib"),
    }
    write_values(asked.out, values, report)


if __name__ == "__main__":
    main()
