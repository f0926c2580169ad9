"""Score the labels of an npz with cleanlab; started by environments.py.

The usual recipe: out-of-sample probabilities by five-fold cross-validated logistic regression
on the vectors given, then `get_label_quality_scores` and `find_label_issues`, with their
defaults. C = 1, scikit-learn's default, and C = 10 are both tried; the caller reports the
better one.
"""

from __future__ import annotations

import argparse
import json

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from measured import processor_seconds, versions
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="npz with X (n, d) and y (n,)")
    parser.add_argument("out", help="npz to write: quality and flagged by C, and a report")
    asked = parser.parse_args()
    with np.load(asked.data) as held:
        X, y = held["X"], held["y"]
    out, began = {}, processor_seconds()
    for C in (1, 10):
        model = LogisticRegression(C=C, max_iter=1000)
        folds = StratifiedKFold(5, shuffle=True, random_state=0)
        chances = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
        out[f"quality {C}"] = get_label_quality_scores(y, chances)
        out[f"flagged {C}"] = find_label_issues(y, chances, n_jobs=1)
    report = {
        "cpu_seconds": round(processor_seconds() - began, 3),
        "versions": versions("cleanlab", "numpy", "scikit-learn"),
    }
    np.savez(asked.out, report=json.dumps(report), **out)


if __name__ == "__main__":
    main()
