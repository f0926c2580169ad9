"""Living data: however rows come and go, values end where valuing them at once ends."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fits import quick, two_classes
from hcdv import HCDV
from hcdv.errors import DataError, ParameterError
from hcdv.valuation.methods import value
from hcdv.valuation.pointwise import Probe

X, Y = two_classes(220)
X_VAL, Y_VAL = two_classes(40, seed=9)
N = 110  # rows of the fit
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(Y))

SETTINGS = {
    "default": {},
    "kernel and auc": {"utility": "kernel", "metric": "auc"},
    "leaves that sprout": {"spawn_distance": 0.2},
    "rebalanced": {"spawn_distance": 0.25, "rebalance_every": 40},
    "a window": {"max_rows": 140},
    "flat": {"branching": "flat"},
    "in one leaf": {"leaf_size": 500, "spawn_distance": 0.2},
}


@pytest.fixture(params=[False, True], ids=["cross-fitted", "validated"])
def judges(request):
    return (X_VAL, Y_VAL) if request.param else ()


def fitted(judges, **settings):
    return quick(**settings).fit(X[:N], Y[:N], *judges)


def fed(v, batch, rows=slice(N, None), **options):
    """The estimator after the rows came in batches of a size."""
    came_x, came_y = X[rows], Y[rows]
    for at in range(0, len(came_y), batch):
        part = slice(at, at + batch)
        v.partial_fit(came_x[part], came_y[part], **options)
    return v


def valued_anew(v):
    """Values on the same case and tree, with statistics gathered from the rows."""
    run, probe = v.run_, v.run_.valuation.probe
    clean = Probe(probe.features, probe.moments, probe.ridge, probe.metric)
    return run.users(value(run.case, run.canonical_tree, run.plan, probe=clean).values)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_the_size_of_batches_does_not_matter_once_refreshed(settings, judges):
    at_once = fed(fitted(judges, **settings), 110).refresh()
    assert np.allclose(at_once.values_, valued_anew(at_once), rtol=0, atol=1e-9)
    for batch in (1, 7, 100):
        v = fed(fitted(judges, **settings), batch).refresh()
        assert v.tree_ == at_once.tree_
        assert v.ids_.tolist() == at_once.ids_.tolist()
        assert np.allclose(v.values_, at_once.values_, rtol=0, atol=1e-9)
        assert np.array_equal(v.run_.living.node_key, at_once.run_.living.node_key)


def test_coalitions_play_once_they_have_rows_enough(judges, monkeypatch):
    monkeypatch.setattr("hcdv.valuation.plan.GAME_ROWS", 8)
    v = fitted(judges)
    before = v.values_
    fed(v, 30)
    assert np.count_nonzero(~np.isnan(v.run_.valuation.correction)) > 4
    assert v.checks_["sum_error"] < 1e-9
    assert np.allclose(v.refresh().values_, valued_anew(v), rtol=0, atol=1e-9)
    v.forget(np.arange(N, 220))
    assert np.count_nonzero(~np.isnan(v.run_.valuation.correction)) == 4
    assert np.allclose(v.values_, before, rtol=0, atol=1e-9)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_every_level_sums_to_the_new_surplus_before_any_refresh(settings, judges):
    v = fitted(judges, **settings)
    for lazy in (True, False, True):
        v.partial_fit(X[N : N + 30], Y[N : N + 30], lazy=lazy)
        v.forget([0, 17, 40], lazy=lazy).relabel([3, 50], [0, 1], lazy=lazy)
        assert v.checks_["sum_error"] < 1e-9
        assert v.checks_["tree_error"] < 1e-12
        exact = HCDV.refresh(_twin(v))
        for part in ("utility", "dispersion"):
            mine, theirs = v.run_.valuation.surplus, exact.run_.valuation.surplus
            assert mine[part] == pytest.approx(theirs[part], abs=1e-9)


def _twin(v):
    twin = quick()
    twin._set(v.run_)
    return twin


def test_the_first_level_is_exact_at_once():
    v = fed(fitted((X_VAL, Y_VAL), consistency_weight=0.0), 50)
    lazily = v.coalitions_
    exact = v.refresh().coalitions_
    first = lazily["level"] <= 1
    assert first.sum() > 2
    assert np.allclose(lazily["value"][first], exact["value"][first], rtol=0, atol=1e-9)
    assert not np.allclose(lazily["value"], exact["value"], rtol=0, atol=1e-9)


def test_the_flat_marginals_of_new_rows_are_exact_at_once():
    from hcdv.valuation.nested import flat_batches

    v = fitted((X_VAL, Y_VAL)).partial_fit(X[N : N + 20], Y[N : N + 20])
    run = v.run_
    everyone = flat_batches(run.case, run.valuation.probe, run.plan).mean()
    rows = np.arange(N, N + 20)
    own = flat_batches(run.case, run.valuation.probe, run.plan, rows=rows).mean()
    assert np.allclose(everyone[rows], own, rtol=0, atol=1e-12)
    utility, tree = run.valuation.parts["utility"], run.canonical_tree
    code = tree.codes(tree.cut(tree.game_level()))
    for player in np.unique(code[rows]):  # alike but for one constant a coalition
        there = rows[code[rows] == player]
        assert np.ptp(utility[there] - everyone[there]) < 1e-12


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "lazily"])
@pytest.mark.parametrize("settings", [{}, {"utility": "kernel"}, {"utility": "knn"}])
def test_what_comes_and_goes_leaves_the_values_as_they_were(settings, judges, lazy):
    v = fitted(judges, **settings)
    before = v.values_
    v.partial_fit(X[N : N + 33], Y[N : N + 33], lazy=lazy)
    v.forget(np.arange(N, N + 33), lazy=lazy).refresh()
    assert np.allclose(v.values_, before, rtol=0, atol=1e-9)


def test_labels_changed_and_changed_back_leave_the_values_as_they_were(judges):
    v = fitted(judges, utility="kernel")
    before, rows = v.values_, [5, 2, 77]
    v.relabel(rows, 1 - Y[rows])
    assert v.to_frame()["label"][rows].tolist() == (1 - Y[rows]).tolist()
    assert np.abs(v.values_ - before).max() > 1e-6
    assert np.allclose(v.values_, valued_anew(v), rtol=0, atol=1e-9)
    v.relabel(rows, Y[rows])
    assert np.allclose(v.values_, before, rtol=0, atol=1e-9)


def test_a_relabelled_row_is_worth_what_it_is_worth_with_that_label_from_the_start():
    flipped = Y.copy()
    flipped[7] = 1 - flipped[7]
    settings = {"encoder": "identity", "branching": "flat"}
    v = quick(**settings).fit(X[:N], Y[:N], X_VAL, Y_VAL).relabel([7], flipped[[7]])
    anew = quick(**settings).fit(X[:N], flipped[:N], X_VAL, Y_VAL)
    assert np.allclose(v.values_, anew.values_, rtol=0, atol=1e-9)


def test_an_update_that_touches_every_leaf_is_a_fit_on_the_same_tree():
    """Flat tree, linear probe: nothing of the fit depends on the rows but ρ and standardising."""
    settings = {"encoder": "identity", "branching": "flat", "n_contexts": 16}
    v = quick(**settings).fit(X[:N], Y[:N], X_VAL, Y_VAL)
    v.partial_fit(X[N:], Y[N:], lazy=False)
    probe = v.run_.valuation.probe
    twin = quick(
        encoder=lambda rows: np.asarray(v.encoder_.transform(rows)), branching="flat"
    )
    twin.fit(X, Y, X_VAL, Y_VAL)
    own = twin.run_
    same_ridge = Probe(probe.features, own.valuation.probe.moments, probe.ridge, "loss")
    found = value(own.case, own.canonical_tree, own.plan, probe=same_ridge)
    assert np.allclose(v.values_, found.values, rtol=0, atol=1e-9)


def test_contexts_are_as_many_as_a_fit_of_so_many_rows_would_take(judges, monkeypatch):
    """Fewer where rows are many; orders that are let go are gathered again when rows go."""
    for room in ("valuation.plan", "settings"):
        monkeypatch.setattr(
            f"hcdv.{room}.default_contexts", lambda n: 128 if n <= 150 else 64
        )
    v = fed(fitted(judges, n_contexts=None), 30)
    assert v.run_.plan.sized(N).n_contexts == 128
    assert v.run_.plan.n_contexts == 64
    (kept,) = [
        one for name, one in v.run_.valuation.probe.memo.items() if "contexts" in name
    ]
    assert kept.contexts.p.shape[0] <= 10
    assert np.allclose(v.refresh().values_, valued_anew(v), rtol=0, atol=1e-9)
    v.forget(np.arange(100))
    assert v.run_.plan.n_contexts == 128
    assert np.allclose(v.values_, valued_anew(v), rtol=0, atol=1e-9)
    own = fed(fitted(judges), 110)
    assert own.run_.plan.n_contexts == 16


def test_weights_come_with_their_rows(judges):
    v = quick().fit(X[:N], Y[:N], *judges, sample_weight=WEIGHT[:N])
    for part in (slice(N, N + 10), slice(N + 10, N + 50)):
        v.partial_fit(X[part], Y[part], sample_weight=WEIGHT[part])
    assert np.allclose(v.run_.case.points.weight, WEIGHT[: N + 50])
    assert np.allclose(v.refresh().values_, valued_anew(v), rtol=0, atol=1e-9)


def test_numbers_arrive_as_classes_do(judges):
    y = X[:, 0] + 0.1 * X[:, 1]
    v = quick().fit(X[:N], y[:N], *((X_VAL, X_VAL[:, 0]) if judges else ()))
    v.partial_fit(X[N:150], y[N:150])
    assert v.checks_["sum_error"] < 1e-9
    assert np.allclose(v.refresh().values_, valued_anew(v), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "winter"},
        {"method": "paper"},
        {"semivalue": "banzhaf"},
        {"utility": "knn"},
    ],
    ids=["winter", "paper", "banzhaf", "knn"],
)
def test_other_methods_value_all_rows_at_once(settings):
    v = fitted((X_VAL, Y_VAL), **settings).partial_fit(X[N:130], Y[N:130])
    assert not v.stale_.any()
    assert np.allclose(v.values_, valued_anew(v), rtol=0, atol=1e-9)


def test_rows_keep_their_ids_and_new_ones_get_numbers_never_used():
    v = fitted(()).partial_fit(X[N : N + 5], Y[N : N + 5]).forget([0, N + 4])
    assert v.ids_.tolist() == list(range(1, N + 4))
    v.partial_fit(X[N : N + 2], Y[N : N + 2])
    assert v.ids_[-2:].tolist() == [N + 5, N + 6]
    v.partial_fit(X[:1], Y[:1], ids=[1000])
    assert v.partial_fit(X[:1], Y[:1]).ids_[-1] == 1001


def test_names_of_rows_are_given_and_kept():
    names = np.array([f"r{i:03}" for i in range(len(Y))])
    v = quick().fit(X[:N], Y[:N], ids=names[:N]).partial_fit(X[N:], Y[N:], ids=names[N:])
    assert v.ids_.tolist() == names.tolist()
    with pytest.raises(DataError, match="ids must be given"):
        v.partial_fit(X[:1], Y[:1])
    with pytest.raises(DataError, match="ids must be new, got 'r200'"):
        v.partial_fit(X[:1], Y[:1], ids=["r200"])


def test_the_oldest_rows_go_when_there_are_too_many():
    v = fed(fitted((), max_rows=120), 40)
    assert v.ids_.tolist() == list(range(100, 220))
    assert v.history_["gone"].sum() == 100


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "lazily"])
def test_rows_go_after_so_many_updates(judges, lazy):
    v = fitted(judges, window=2)
    for at, left in ((110, range(120)), (120, range(110, 130)), (130, range(120, 140))):
        v.partial_fit(X[at : at + 10], Y[at : at + 10], lazy=lazy)
        assert v.ids_.tolist() == list(left)
        v.refresh()  # no rows came: nobody grows older
    assert v.history_["gone"].tolist() == [0, 0, 0, 110, 0, 10, 0]
    assert np.allclose(v.values_, valued_anew(v), rtol=0, atol=1e-9)


def test_ages_are_kept_with_the_run(tmp_path):
    v = fed(fitted((X_VAL, Y_VAL), window=3), 10, slice(N, N + 20))
    again = HCDV.load(v.save(tmp_path / "run"))
    for one in (v, again):
        one.forget([0, 115]).partial_fit(X[130:140], Y[130:140])
        assert one.ids_.tolist() == [*range(110, 115), *range(116, 140)]


def test_stale_rows_are_marked_until_all_is_refreshed():
    v = fitted(())
    assert not v.stale_.any()
    v.partial_fit(X[N : N + 9], Y[N : N + 9])
    assert v.stale_.tolist() == [True] * N + [False] * 9
    assert not v.refresh().stale_.any()
    assert not v.partial_fit(X[:9], Y[:9], lazy=False).stale_.any()


def test_a_far_row_gets_a_leaf_of_its_own_and_its_like_join_it():
    centre = np.zeros((2, 5))
    centre[0, 0] = centre[1, 1] = 4.0
    rng = np.random.default_rng(0)
    rows = centre[np.arange(60) % 2] + 0.1 * rng.normal(size=(60, 5))
    v = quick(encoder="identity", spawn_distance=0.35)
    v.fit(rows, np.arange(60) % 2, rows[:20], np.arange(20) % 2)
    n_leaves = len(v.tree_.leaves)
    far = np.zeros((4, 5))
    far[:, 4] = [-90.0, -91.0, -92.0, 95.0]
    v.partial_fit(far, [0, 1, 0, 1])
    assert len(v.tree_.leaves) == n_leaves + 2
    leaf = v.tree_.leaf_of_row[60:]
    assert leaf[0] == leaf[1] == leaf[2] != leaf[3]


def test_leaves_that_grew_too_large_are_split_and_nodes_keep_their_numbers():
    v = fitted((X_VAL, Y_VAL), rebalance_every=55)
    before = v.run_.living.node_key
    fed(v, 50)
    assert v.tree_.size[v.tree_.leaves].max() <= 2 * v.leaf_size
    after = v.run_.living.node_key
    assert set(before) & set(after)
    assert len(np.unique(after)) == v.tree_.n_nodes
    v.forget(np.arange(5, 200), lazy=True).partial_fit(X[:150], Y[:150])
    v.forget(np.arange(5, 160)).partial_fit(X[:150], Y[:150])
    assert np.allclose(v.refresh().values_, valued_anew(v), rtol=0, atol=1e-9)


def test_history_has_a_line_an_update_and_drift_tells_who_gained():
    v = fed(fitted((X_VAL, Y_VAL)), 50).forget([0]).relabel([0], [1]).refresh()
    history = v.history_
    assert history["kind"].tolist() == [
        "fit",
        *["update"] * 3,
        "forget",
        "relabel",
        "refresh",
    ]
    assert history["rows"].tolist() == [110, 160, 210, 220, 219, 219, 219]
    assert history["surplus"].iloc[-1] == pytest.approx(v.surplus_)
    parts = history[["utility", "dispersion", "consistency"]].sum(axis=1)
    assert np.allclose(parts, history["surplus"])
    assert np.allclose(history["share 0"] + history["share 1"], 1.0)
    drift = v.drift(since=0)
    assert drift["change"].is_monotonic_decreasing
    whole = drift[drift["node"] == 0].iloc[0]
    assert whole["size_before"] == 110
    assert whole["value"] == pytest.approx(v.surplus_)
    assert (v.drift(since=-1)["change"] == 0).all()
    told = v.coalition_history_
    assert told["update"].unique().tolist() == list(range(7))
    root = told[told["key"] == 0]
    assert np.allclose(root["value"], history["surplus"], rtol=0, atol=1e-9)
    assert root["size"].tolist() == history["rows"].tolist()
    assert (root["node"] == 0).all()
    with pytest.raises(ParameterError, match="since must be an update of history_, got 7"):
        v.drift(7)


def test_a_new_mix_of_labels_is_noted_once():
    v = fitted(())
    alike = np.flatnonzero(Y[N:])[:40] + N
    v.partial_fit(X[alike], Y[alike]).partial_fit(X[alike], Y[alike])
    assert sum("mixed unlike" in note for note in v.notes_) == 1


def test_new_categories_are_pooled_and_noted():
    frame = pd.DataFrame({"x": X[:, 0], "kind": np.where(X[:, 1] > 0, "a", "b")})
    v = quick().fit(frame[:N], Y[:N])
    late = frame[N : N + 5].assign(kind="never seen")
    v.partial_fit(late, Y[N : N + 5])
    assert any("level not seen" in note for note in v.notes_)
    assert np.allclose(v.refresh().values_, valued_anew(v), rtol=0, atol=1e-9)


def test_the_first_partial_fit_is_a_fit():
    a, b = quick().partial_fit(X, Y, ids=np.arange(220) + 7), quick().fit(X, Y)
    assert a.ids_[0] == 7
    assert a.surplus_ == pytest.approx(b.surplus_, rel=0.2)


def _frame_fit(**settings):
    return quick(**settings).fit(pd.DataFrame(X[:N], columns=list("abcde")), Y[:N])


REFUSED = {
    "a column more": (_frame_fit, lambda v: v.partial_fit(
        pd.DataFrame(X[:3], columns=list("abcde")).assign(f=1), Y[:3]), "not known 'f'"),
    "a column less": (_frame_fit, lambda v: v.partial_fit(
        pd.DataFrame(X[:3, :4], columns=list("abcd")), Y[:3]), "missing 'e'"),
    "fewer numbers": (lambda: fitted(()), lambda v: v.partial_fit(X[:3, :4], Y[:3]),
                      "rows of shape"),
    "a new class": (lambda: fitted(()), lambda v: v.partial_fit(X[:3], [0, 1, 2]),
                    "classes seen in the fit, got 2; known are 0, 1"),
    "labels that are text": (lambda: fitted(()), lambda v: v.partial_fit(X[:2], ["0", "1"]),
                             "classes seen in the fit, got '0'"),
    "no labels": (lambda: fitted(()), lambda v: v.partial_fit(X[:3]), "a label for every row"),
    "weights": (lambda: fitted(()), lambda v: v.partial_fit(X[:3], Y[:3], sample_weight=Y[:3]),
                "sample_weight must be left out"),
    "ids that are text": (lambda: fitted(()),
                          lambda v: v.partial_fit(X[:2], Y[:2], ids=["a", "b"]),
                          "ids must be numbers"),
    "embeddings": (lambda: quick(encoder=X[:N]).fit(X[:N], Y[:N]),
                   lambda v: v.partial_fit(X[:3], Y[:3]), "able to embed new rows"),
    "folds of encoders": (lambda: quick(encoder="linear").fit(X[:N], Y[:N]),
                          lambda v: v.partial_fit(X[:3], Y[:3]), "one encoder for each fold"),
    "groups": (lambda: quick(groups=np.arange(N) % 9).fit(X[:N], Y[:N]),
               lambda v: v.partial_fit(X[:3], Y[:3]), "groups must not decide who judges"),
    "time": (lambda: quick(time=np.arange(N)).fit(X[:N], Y[:N]),
             lambda v: v.partial_fit(X[:3], Y[:3]), "time must not decide who judges"),
    "given parts": (lambda: quick(branching=["classes", 4]).fit(X[:N], Y[:N]),
                    lambda v: v.partial_fit(X[:3], Y[:3]), "made of clusters"),
    "a model of yours": (
        lambda: quick(utility=LogisticRegression(), leaf_size=64).fit(X[:N], Y[:N]),
        lambda v: v.partial_fit(X[:3], Y[:3]), "taught by sums"),
    "labels of given parts": (lambda: quick(branching=["classes", 4]).fit(X[:N], Y[:N]),
                              lambda v: v.relabel([0], [1]), "made of clusters"),
    "too few labels": (lambda: fitted(()), lambda v: v.relabel([0, 1], [1]), "2 rows, got 1"),
    "a row twice": (lambda: fitted(()), lambda v: v.relabel([1, 1], [1, 0]), "each row once"),
    "an unknown label": (lambda: fitted(()), lambda v: v.relabel([1], [5]), "got 5"),
    "one class left": (lambda: fitted(()), lambda v: v.relabel(np.arange(N), np.ones(N, int)),
                       "at least 2 classes"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "act", "says"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_taken_in_is_refused_and_nothing_changes(make, act, says):
    v = make()
    before, notes = v.values_, list(v.notes_)
    with pytest.raises(DataError, match=says):
        act(v)
    assert v.values_ is before
    assert v.notes_ == notes


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"spawn_distance": 0.0}, "spawn_distance must be a positive number"),
        ({"rebalance_every": 0}, "rebalance_every must be a whole number of at least 1"),
        ({"max_rows": 1}, "max_rows must be a whole number of at least 2"),
        ({"window": 0}, "window must be a whole number of at least 1"),
    ],
)
def test_settings_of_the_stream_are_checked_at_fit(settings, says):
    with pytest.raises(ParameterError, match=says):
        quick(**settings).fit(X, Y)


def test_a_loaded_run_goes_on_as_the_one_that_was_saved(tmp_path, judges):
    v = fed(fitted(judges, spawn_distance=0.25), 75, slice(N, N + 75))
    again = HCDV.load(v.save(tmp_path / "run"))
    assert again.stale_.tolist() == v.stale_.tolist()
    assert again.history_.equals(v.history_)
    for one in (v, again):
        one.partial_fit(X[190:220], Y[190:220]).forget([1]).refresh()
    assert again.ids_.tolist() == v.ids_.tolist()
    assert np.allclose(again.values_, v.values_, rtol=0, atol=1e-9)
    assert again.drift().equals(v.drift()) or np.allclose(
        again.drift()["value"], v.drift()["value"]
    )


def test_memory_grows_with_live_rows_and_hardly_with_history():
    import tracemalloc

    v = fitted((X_VAL, Y_VAL), max_rows=N)
    fed(v, 1, slice(N, N + 30))
    tracemalloc.start()
    fed(v, 1, slice(N, N + 10))
    first, _ = tracemalloc.get_traced_memory()
    fed(v, 1, slice(N, N + 30))
    last, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (last - first) / 30 < 20_000  # a line of history: numbers of its coalitions


def test_history_is_bounded_and_keeps_the_fit(monkeypatch):
    monkeypatch.setattr("hcdv.streaming.living.HISTORY", 4)
    v = fed(fitted((X_VAL, Y_VAL)), 20)
    assert v.history_["update"].tolist() == [0, 4, 5, 6]
    assert len(v.drift(since=-2)) == len(v.drift(since=0))
    with pytest.raises(ParameterError, match="since"):
        v.drift(since=2)


@pytest.mark.parametrize("lazy", [False, True], ids=["at once", "lazily"])
def test_another_validation_set_may_judge_from_now_on(lazy):
    X_late, y_late = two_classes(30, seed=77)
    v = fitted((X_VAL, Y_VAL)).partial_fit(X[N:], Y[N:], X_late, y_late, lazy=lazy)
    assert v.checks_["sum_error"] < 1e-9
    twin = fed(fitted((X_VAL, Y_VAL)), 110).partial_fit(X[:1], Y[:1], X_late, y_late)
    twin.forget([220]).refresh()
    assert np.allclose(v.refresh().values_, twin.values_, rtol=0, atol=1e-9)
    assert np.allclose(v.values_, valued_anew(v), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("judges", "given", "says"),
    [
        ((), (X_VAL, Y_VAL), "X_val must be left out"),
        ((X_VAL, Y_VAL), (None, Y_VAL), "X_val must be given with y_val"),
        ((X_VAL, Y_VAL), (X_VAL[:, :3], Y_VAL), "X_val: X must have rows of shape"),
        ((X_VAL, Y_VAL), (X_VAL, np.zeros(40, int)), "y_val must vary"),
    ],
)
def test_a_validation_set_that_cannot_judge_is_refused(judges, given, says):
    v = fitted(judges)
    with pytest.raises(DataError, match=says):
        v.partial_fit(X[:3], Y[:3], *given)
    assert v.run_.n_rows == N
