"""What a run tells: values, parts, sums, coalitions, and what should be known about them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fits import quick, two_classes

X, Y = two_classes(70)
X_VAL, Y_VAL = two_classes(30, seed=1)

SETTINGS = {
    "default": {},
    "kernel": {"utility": "kernel"},
    "accuracy": {"metric": "accuracy"},
    "balanced accuracy": {"metric": "balanced_accuracy"},
    "auc": {"metric": "auc"},
    "neighbours": {"utility": "soft-knn"},
    "threshold neighbours": {"utility": "threshold-knn"},
    "retrained": {"utility": LogisticRegression(), "leaf_size": 32},
    "winter": {"method": "winter"},
    "paper": {"method": "paper"},
    "paper with consistency": {"method": "paper", "consistency_weight": 2.0},
    "flat": {"branching": "flat"},
    "a level a class": {"branching": ["classes", 3]},
    "leaves of one row": {"leaf_size": 1},
    "supervised encoder": {"encoder": "linear"},
    "in rounds": {"precision": 3e-3},
}
COLUMNS = {"id", "parent", "level", "size", "value", "stderr", "as_player", "label_mix"}
PARTS = ["utility", "dispersion", "consistency"]


@pytest.fixture(params=[False, True], ids=["cross-fitted", "validated"], scope="module")
def judges(request):
    return (X_VAL, Y_VAL) if request.param else ()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_sum_holds_at_every_node_for_every_part(settings, judges):
    v = quick(**settings).fit(X, Y, *judges)
    size = np.abs(v.values_).sum()
    assert v.checks_["sum_error"] <= 1e-9
    assert v.checks_["tree_error"] <= 1e-9
    assert list(v.parts_) == PARTS
    assert np.allclose(sum(v.parts_.values()), v.values_, atol=1e-12)
    assert abs(v.values_.sum() - v.surplus_) <= 1e-9 * size
    table, leaf = v.coalitions_, v.tree_.leaf_of_row
    assert set(table.columns) >= COLUMNS | set(PARTS)
    assert table["value"][0] == pytest.approx(v.surplus_, abs=1e-9 * size)
    assert table["size"][0] == 70
    assert table["id"].tolist() == list(range(len(table)))
    assert table["parent"].tolist()[0] == -1
    for name, of_rows in [("value", v.values_), *v.parts_.items()]:
        of_nodes = table[name].to_numpy()
        below = np.bincount(table["parent"][1:], of_nodes[1:], minlength=len(table))
        inner = ~v.tree_.is_leaf
        assert np.allclose(below[inner], of_nodes[inner], atol=1e-9 * size)
        in_leaf = np.bincount(leaf, of_rows, minlength=len(table))
        assert np.allclose(in_leaf[~inner], of_nodes[~inner], atol=1e-9 * size)
    assert np.isfinite(v.stderr_).all()
    assert (v.stderr_ >= 0).all()
    assert np.isfinite(table["stderr"]).all()


def test_a_coalition_as_one_player_is_told_down_to_the_game_level():
    table = quick().fit(X, Y, X_VAL, Y_VAL).coalitions_
    assert table["as_player"][0] == pytest.approx(table["value"][0])
    plays = table["level"] <= 1  # of so few rows the first level alone
    assert table["as_player"].notna().equals(plays)
    assert table["correction"].notna().equals(table["level"] == 1)


def test_the_tree_and_the_vectors_are_of_the_rows_as_they_came():
    ids = np.random.default_rng(0).permutation(70)
    v = quick(encoder="identity").fit(X, Y, ids=ids)
    assert np.allclose(v.embedding_, X / np.linalg.norm(X, axis=1, keepdims=True))
    for node in range(v.tree_.n_nodes):
        rows = v.tree_.rows(node)
        value = v.coalitions_["value"][node]
        assert v.values_[rows].sum() == pytest.approx(value, abs=1e-12)


def test_the_label_mix_names_the_commonest_labels_first():
    y = np.where(np.arange(70) < 42, "b", np.where(np.arange(70) < 63, "a", "c"))
    assert quick().fit(X, y).coalitions_["label_mix"][0] == "b 60%, a 30%, c 10%"


def test_the_frame_has_one_line_a_row_in_the_order_they_came():
    ids = np.array([f"r{i}" for i in np.random.default_rng(0).permutation(70)])
    v = quick().fit(X, Y, ids=ids)
    frame = v.to_frame()
    assert frame["row"].tolist() == list(range(70))
    assert frame["id"].tolist() == ids.tolist()
    assert frame["label"].tolist() == Y.tolist()
    assert np.array_equal(frame["value"], v.values_)
    assert np.array_equal(frame["stderr"], v.stderr_)
    assert np.allclose(frame[PARTS].sum(axis=1), v.values_)
    assert frame["leaf"].tolist() == v.tree_.leaf_of_row.tolist()


def test_stages_are_timed_and_the_work_was_estimated():
    seconds = quick().fit(X, Y).run_.seconds
    assert set(seconds) == {"embed", "tree", "value", "estimated"}
    assert all(spent > 0 for spent in seconds.values())


def noted(v, text):
    return any(text in note for note in v.notes_)


def test_a_semivalue_that_does_not_add_up_says_so():
    assert noted(quick(semivalue="banzhaf").fit(X, Y), "need not add up to the surplus")
    assert not noted(quick().fit(X, Y), "need not add up")


def test_weights_that_a_utility_cannot_use_are_noted():
    weight = np.arange(1.0, 71.0)
    text = "sample_weight plays no part in this utility"
    assert noted(quick(utility="knn").fit(X, Y, sample_weight=weight), text)
    assert not noted(quick().fit(X, Y, sample_weight=weight), text)


def test_a_surrogate_that_ranks_coalitions_unlike_the_metric_is_noted():
    rng = np.random.default_rng(0)
    v = quick(metric="accuracy").fit(
        X, rng.integers(0, 2, 70), X_VAL, rng.integers(0, 2, 30)
    )
    rank = v.checks_["spearman_surrogate_accuracy"]
    assert noted(v, "agrees poorly with accuracy") == (rank < 0.8)
    assert rank < 0.8
    assert not noted(quick(metric="accuracy").fit(X, Y, X_VAL, Y_VAL), "agrees poorly")


class Moody(LogisticRegression):
    """Fails to learn from few rows."""

    def fit(self, X, y, sample_weight=None):
        if len(y) < 20:
            raise RuntimeError("too few")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("method", ["nested", "winter", "paper"])
def test_fits_that_failed_are_counted_in_the_notes(method):
    v = quick(utility=Moody(), leaf_size=18, method=method).fit(X, Y, X_VAL, Y_VAL)
    assert 0 < v.checks_["failures"] < v.checks_["fits"]
    assert noted(
        v, "fits failed and were paid as no data, the first with RuntimeError: too few"
    )


def test_a_budget_too_small_for_one_round_is_noted():
    v = quick(time_budget=1e-6).fit(X, Y, X_VAL, Y_VAL)
    assert noted(v, "time_budget of 1e-06 s was passed")
    assert not noted(quick(time_budget=3.0).fit(X, Y, X_VAL, Y_VAL), "time_budget")
