"""Settings: checked before any work, with the value seen and a way out."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fits import quick, two_classes
from hcdv import HCDV
from hcdv.errors import ParameterError

X, Y = two_classes(40, 4)

NAMES = (
    "method encoder utility metric dispersion_weight consistency_weight smoothness_weight "
    "branching leaf_size n_contexts n_permutations precision time_budget semivalue groups time "
    "device engine n_jobs spawn_distance rebalance_every max_rows window random_state verbose"
).split()

REFUSED = [
    ("method", ["", None, 3], "one of"),
    ("metric", ["rmse", None], "one of"),
    ("device", ["tpu"], "one of"),
    ("engine", ["spark", None], 'one of "local", "ray"'),
    ("engine", ["ray"], '"local" for a table in memory'),
    ("encoder", ["", 3, None], "one of auto, pca"),
    ("utility", [3, None], "a name, a scikit-learn estimator or a function"),
    ("semivalue", ["beta", ("beta", 1), ("gamma", 1, 1), None, 2], 'one of "shapley"'),
    ("semivalue", [("beta", 0, 1), ("beta", 1, -1)], "a positive number"),
    ("branching", [1, 0, 2.5, True, None, "cluster"], "a number from 2"),
    ("branching", [[], ["flat", 2]], "alone, or levels without it"),
    ("branching", [[8, "classes"]], "given partitions first"),
    ("branching", ["groups", ["groups", 2]], "levels that are given"),
    ("branching", [41, [2, 41]], "at most 40 for 40 rows"),
    ("leaf_size", [0, -1, 1.5, "8", None, True], "a whole number of at least 1"),
    ("n_contexts", [0, 7, 8.5, "many"], "a whole number of at least 8"),
    ("n_permutations", [0, 1, "many"], "a whole number of at least 2"),
    ("precision", [0, -1, "fine", np.nan, np.inf], "a positive number"),
    ("time_budget", [0, -1, np.nan], "a positive number"),
    ("dispersion_weight", [-1, np.nan, np.inf, "0", None], "zero or more"),
    ("consistency_weight", [-1, np.nan], "zero or more"),
    ("smoothness_weight", [-0.1, None], "zero or more"),
    ("n_jobs", [0, 1.5, "all"], "a number of workers"),
    ("random_state", [-1, 1.5, "a"], "a number from 0"),
]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [(name, value, says) for name, values, says in REFUSED for value in values],
    ids=str,
)
def test_a_setting_outside_its_range_is_refused(name, value, says):
    with pytest.raises(ParameterError, match=f"{name}.* must be .*{says}.*, got "):
        quick(**{name: value}).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("method", "nest", "nested"),
        ("metric", "acuracy", "accuracy"),
        ("metric", "balanced-accuracy", "balanced_accuracy"),
        ("encoder", "mpl", "mlp"),
        ("encoder", "PCA", "pca"),
        ("utility", "kernal", "kernel"),
        ("utility", "knnn", "knn"),
        ("semivalue", "shaply", "shapley"),
        ("semivalue", "banzaf", "banzhaf"),
        ("device", "gpu", "cpu"),
    ],
)
def test_a_name_nearly_right_gets_the_right_one_suggested(name, value, meant):
    with pytest.raises(ParameterError, match=f"Did you mean [\"']{meant}[\"']"):
        quick(**{name: value}).fit(X, Y)


def test_settings_are_refused_before_the_data_are_read():
    with pytest.raises(ParameterError, match="leaf_size"):
        quick(leaf_size=0).fit(None, None)


@pytest.mark.parametrize("name", ["utility", "encoder"])
def test_a_class_in_place_of_an_object_is_told(name):
    with pytest.raises(ParameterError, match=r"an object.*LogisticRegression\(\)"):
        quick(**{name: LogisticRegression}).fit(X, Y)


def test_other_semivalues_are_of_the_default_method_and_the_probe():
    for other in ({"method": "paper"}, {"method": "winter"}, {"utility": "knn"}):
        with pytest.raises(ParameterError, match='semivalue must be "shapley" for'):
            quick(semivalue="banzhaf", **other).fit(X, Y)


@pytest.mark.parametrize("asked", [{"precision": 0.1}, {"time_budget": 1.0}], ids=str)
@pytest.mark.parametrize("other", [{"method": "paper"}, {"semivalue": "loo"}], ids=str)
def test_what_does_not_sample_in_rounds_takes_no_precision(asked, other):
    with pytest.raises(ParameterError, match="None unless method"):
        quick(**asked, **other).fit(X, Y)


def test_the_default_branching_serves_a_table_of_any_length():
    assert HCDV().branching == 8
    v = quick(branching=8, leaf_size=1).fit(X[:5], [0, 1, 0, 1, 0])
    assert v.coalitions_["size"].tolist()[0] == 5


def test_the_names_of_the_settings_are_fixed():
    assert list(inspect.signature(HCDV).parameters) == NAMES
    assert list(HCDV().get_params()) == sorted(NAMES)


def test_the_papers_method_has_no_consistency_unless_it_is_asked_for():
    assert not quick(method="paper").fit(X, Y).parts_["consistency"].any()
    asked = quick(method="paper", consistency_weight=1.0).fit(X, Y)
    assert asked.parts_["consistency"].any()


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)]
)
def test_any_kind_of_seed_fixes_the_values(make):
    a, b = (quick(random_state=make()).fit(X, Y).values_ for _ in range(2))
    assert np.array_equal(a, b)


def test_no_seed_means_another_one_every_time():
    a, b = (quick(random_state=None).fit(X, Y).values_ for _ in range(2))
    assert not np.array_equal(a, b)


# Stage II as asked for.

SHAPES = {
    # what: (branching, sizes of the first level, deepest level)
    "flat": ("flat", [], 0),
    "a number": (2, [20, 20], 2),
    "groups": (["groups"], [8] * 5, 1),
    "groups, then clusters": (["groups", 2], [8] * 5, 2),
    "groups, then classes": (["groups", "classes"], [8] * 5, 2),
}


@pytest.mark.parametrize(("branching", "sizes", "deepest"), SHAPES.values(), ids=SHAPES)
def test_the_tree_has_the_levels_that_were_asked_for(branching, sizes, deepest):
    v = quick(branching=branching, leaf_size=7, encoder="identity").fit(
        X, Y, groups=np.arange(40) // 8
    )
    table = v.coalitions_
    first = sorted(table.loc[table["level"] == 1, "size"])
    assert table["level"].max() >= deepest
    assert len(first) == len(sizes)
    assert sum(first) == sum(sizes)
    if branching != 2:  # balanced to a tenth only
        assert first == sizes


def test_classes_as_a_level_are_pure():
    v = quick(branching=["classes"]).fit(X, Y)
    assert sorted(v.coalitions_["label_mix"][1:]) == ["0 100%", "1 100%"]
    assert sorted(v.coalitions_["name"][1:]) == ["0", "1"]
