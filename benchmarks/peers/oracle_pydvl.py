"""Answer the questions of make_fixtures.py with pyDVL: semivalues, k-NN, retraining.

Nothing is computed here: every number comes out of a class of pyDVL's.
"""

from __future__ import annotations

import sys

import numpy as np
import pydvl.valuation as pv
from pydvl.valuation.samplers import DeterministicPermutationSampler
from pydvl.valuation.stopping import NoStopping
from pydvl.valuation.types import Sample
from pydvl.valuation.utility.base import UtilityBase
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier

BETAS = ((1, 4), (4, 1), (16, 1))


class TableUtility(UtilityBase):
    """The game in which coalition S is paid table[sum of 2**i for i in S]."""

    def __init__(self, table):
        self.table = table

    def __call__(self, sample):
        subset = [] if sample is None else np.asarray(sample.subset, dtype=int)
        return float(self.table[sum(1 << int(i) for i in subset)])


def fitted(method, data):
    """Return the values by player."""
    method.fit(data)
    values = np.empty(len(data))
    values[np.asarray(method.result.indices)] = method.result.values
    return values


def enumerated(make, utility, data, sampler=pv.DeterministicUniformSampler, **settings):
    subsets = sampler()
    return fitted(make(utility, subsets, NoStopping(subsets), **settings), data)


def values_of_table(name, table):
    """Enumerate Shapley, Banzhaf and Beta-Shapley values of one game."""
    n_players = table.size.bit_length() - 1
    players = pv.Dataset(np.arange(n_players)[:, None], np.zeros(n_players))
    utility = TableUtility(table)
    answers = {
        f"pydvl_shapley_{name}": enumerated(pv.ShapleyValuation, utility, players),
        f"pydvl_banzhaf_{name}": enumerated(pv.BanzhafValuation, utility, players),
    }
    for alpha, beta in BETAS:
        answers[f"pydvl_beta_{alpha}_{beta}_{name}"] = enumerated(
            pv.BetaShapleyValuation, utility, players, alpha=alpha, beta=beta
        )
    if n_players <= 6:  # 720 orders
        answers[f"pydvl_orders_{name}"] = enumerated(
            pv.ShapleyValuation, utility, players, DeterministicPermutationSampler
        )
    return answers


def values_of_retraining(asked):
    """Pay every union of groups by retraining on it, and enumerate the groups' values."""
    data = pv.GroupedDataset(asked["X"], asked["y"], data_groups=asked["groups"])
    validation = pv.Dataset(asked["X_val"], asked["y_val"])
    scorer = pv.SupervisedScorer("accuracy", validation, default=0.0, range=(0, 1))
    utility = pv.ModelUtility(
        LogisticRegression(max_iter=1000), scorer, show_warnings=False
    )
    values = enumerated(pv.ShapleyValuation, utility, data)
    on_data = utility.with_dataset(data)
    players = np.arange(len(data))
    subsets = [players[(code >> players) & 1 == 1] for code in range(1 << len(data))]
    table = [on_data(Sample(None, subset)) for subset in subsets]
    return {"table_retrained": np.array(table), "pydvl_shapley_retrained": values}


def values_of_neighbours(asked):
    validation = pv.Dataset(asked["X_val"], asked["y_val"])
    data = pv.Dataset(asked["X"], asked["y"])
    return {
        f"pydvl_k{k}": fitted(
            pv.KNNShapleyValuation(KNeighborsClassifier(k), validation, progress=False),
            data,
        )
        for k in asked["ks"]
    }


def main():
    questions, answers = sys.argv[1:]
    with np.load(questions) as stored:
        asked = dict(stored)
    found = values_of_neighbours(asked) | values_of_retraining(asked)
    tables = {name: asked[name] for name in asked if name.startswith("table_")}
    tables["table_retrained"] = found["table_retrained"]
    for name, table in tables.items():
        again = values_of_table(name.removeprefix("table_"), table)
        found |= {key: again[key] for key in again.keys() - found.keys()}
    np.savez(answers, **found)


if __name__ == "__main__":
    main()
