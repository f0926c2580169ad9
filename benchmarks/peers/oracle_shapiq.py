"""Answer the questions of make_fixtures.py with shapiq: enumerated games and neighbours.

shapiq explains one validation row at a time; what is done here is the mean over them.
"""

from __future__ import annotations

import sys

import numpy as np
from shapiq import ExactComputer
from shapiq.explainer.nn import KNNExplainer, ThresholdNNExplainer
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier


def values_of_table(name, table):
    """Enumerate the Shapley and Banzhaf values of one game."""
    n_players = table.size.bit_length() - 1
    places = 1 << np.arange(n_players)
    computer = ExactComputer(lambda masks: table[masks.astype(int) @ places], n_players)
    return {
        f"shapiq_{value}_{name}": computer(index, order=1).to_first_order_array()
        for value, index in (("shapley", "SV"), ("banzhaf", "BV"))
    }


def mean_over_rows(explainer, model, asked):
    """Average the values over validation rows, each explained for its own label."""
    label = {c: place for place, c in enumerate(model.classes_)}
    rows = [
        explainer(model, class_index=label[y]).explain(x).to_first_order_array()
        for x, y in zip(asked["X_val"], asked["y_val"], strict=True)
    ]
    return np.mean(rows, axis=0)


def main():
    questions, answers = sys.argv[1:]
    with np.load(questions) as stored:
        asked = dict(stored)
    found = {}
    for name, table in asked.items():
        if name.startswith("table_"):
            found |= values_of_table(name.removeprefix("table_"), table)
    X, y = asked["X"], asked["y"]
    for k in asked["ks"].tolist():
        model = KNeighborsClassifier(k).fit(X, y)
        found[f"shapiq_k{k}"] = mean_over_rows(KNNExplainer, model, asked)
    model = RadiusNeighborsClassifier(float(asked["radius"])).fit(X, y)
    found["shapiq_threshold"] = mean_over_rows(ThresholdNNExplainer, model, asked)
    np.savez(answers, **found)


if __name__ == "__main__":
    main()
