"""Payouts: what sellers are worth as players and by their rows, and who gains by copying."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from fits import quick, two_classes
from hcdv import HCDV, PayoutRule
from hcdv.errors import DataError, ParameterError
from hcdv.uses.marketplace import gini
from hcdv.uses.replication import Stakes, copied, halved, merged, split
from hcdv.uses.sellers import played, shapley_weights, tuned

X, Y = two_classes(240, d=4, noise=0.4)
XV, YV = two_classes(300, d=4, seed=1, noise=0.4)
SELLER = np.array(["ann", "bob", "cat"])[np.arange(240) % 3]
NOISY = np.where(
    (SELLER == "cat") & (np.arange(240) % 2 == 0), 1 - Y, Y
)  # half of cat's lie


@pytest.fixture(scope="module")
def v():
    return quick(metric="accuracy", leaf_size=16).fit(X, NOISY, XV, YV)


def test_amounts_are_exact_and_follow_the_values(v):
    p = v.payouts(SELLER, revenue="100.01", currency="EUR")
    assert sum(p.amounts.values()) == Decimal("100.01")
    table = p.table.set_index("seller")
    assert table["rows"].tolist() == [80, 80, 80]
    assert table["value"].idxmin() == "cat"
    assert p.amounts["cat"] == min(p.amounts.values())
    share = table["value"].clip(lower=0) / table["value"].clip(lower=0).sum()
    assert np.allclose(table["amount"].astype(float), 100.01 * share, atol=0.01)


@given(
    st.integers(0, 10**6),
    st.decimals(0, 10**7, places=2),
    st.sampled_from(["sellers", "rows"]),
)
@settings(max_examples=8, deadline=None)
def test_any_owners_and_any_revenue_are_paid_in_full(v, seed, revenue, basis):
    rng = np.random.default_rng(seed)
    owner = rng.permutation(np.arange(240) % rng.integers(2, 9))
    rule = PayoutRule(worthless="equal")
    p = v.payouts(owner, revenue=revenue, rule=rule, basis=basis, replication=False)
    assert sum(p.amounts.values()) == revenue
    assert (p.table["amount"] >= 0).all()


def test_a_sellers_value_is_its_shapley_value_in_the_game_of_the_probe(v):
    p = v.payouts(SELLER, revenue=1)
    case, code = v.run_.case, np.arange(240) % 3
    code = code[v.run_.position]
    game = tuned(v.run_.valuation.probe.game(case, code, 3, 1), 3)
    masks = (np.arange(8)[:, None] >> np.arange(3)) & 1 == 1
    paid = game(masks)
    known = paid @ shapley_weights(masks)
    assert np.allclose(p.table["game"], known)
    assert known.sum() == pytest.approx(paid[-1] - paid[0])
    assert np.allclose(p.table["leave_one_out"], paid[-1] - paid[[6, 5, 3]])
    dispersion = np.bincount(code, v.run_.valuation.parts["dispersion"])
    assert np.allclose(p.table["value"], known + dispersion)


def test_sums_of_rows_leave_label_consistency_out(v):
    p = v.payouts(SELLER, revenue=1, basis="rows")
    rows = v.parts_["utility"] + v.parts_["dispersion"]
    assert np.allclose(
        p.table["value"], [rows[s == SELLER].sum() for s in p.table["seller"]]
    )
    assert np.allclose(p.table["value"], p.table["sum_of_rows"])
    assert (p.table["stderr"] > 0).all()


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "loss"])
def test_errors_are_those_of_other_validation_rows(metric):
    fitted = quick(metric=metric, leaf_size=32).fit(X, NOISY, XV, YV)
    table = fitted.payouts(SELLER, revenue=1, replication=False).table
    XW, YW = two_classes(6000, d=4, seed=9, noise=0.4)
    case, probe = fitted.run_.case, fitted.run_.valuation.probe
    game = tuned(probe.game(case, (np.arange(240) % 3)[fitted.run_.position], 3, 1), 3)
    found = []
    for part in np.array_split(np.random.default_rng(0).permutation(6000), 40):
        other = quick(metric=metric, leaf_size=32).fit(X, NOISY, XW[part], YW[part])
        from dataclasses import replace

        judge, moments = other.run_.case.judges, other.run_.valuation.probe.moments
        found.append(played(replace(game, judges=judge, moments=moments), 3, None).value)
    spread = np.std(found, axis=0, ddof=1) * np.sqrt(len(part) / len(YV))
    assert np.all((table["stderr"] > spread / 1.8) & (table["stderr"] < spread * 1.8))


def test_an_auc_has_no_error_and_says_so():
    fitted = quick(metric="auc", leaf_size=32).fit(X, NOISY, XV, YV)
    p = fitted.payouts(SELLER, revenue=10)
    assert p.table["stderr"].isna().all()
    assert "unknown" in str(p)


def test_numbers_can_be_sold_too():
    fitted = quick(leaf_size=32).fit(X, X[:, 0] + 0.1 * X[:, 1])
    p = fitted.payouts(SELLER, revenue=10)
    assert sum(p.amounts.values()) == 10
    assert p.facts["metric"] == "r2"


def test_more_than_sixteen_sellers_are_sampled_and_their_values_still_add_up(v):
    owner = np.arange(240) % 20
    p = v.payouts(owner, revenue=1, rule=PayoutRule(worthless="equal"))
    exact = v.payouts(owner // 2, revenue=1, rule=PayoutRule(worthless="equal"))
    assert p.table["game"].sum() == pytest.approx(exact.table["game"].sum(), abs=0.02)
    assert any("sampled" in note for note in p.notes)
    assert (p.table["stderr"] > 0).all()


def test_your_own_model_can_be_what_pays(v):
    p = v.payouts(SELLER, revenue=1, basis="model", model=LogisticRegression())
    assert {"model_game", "model_leave_one_out"} <= set(p.table)
    assert p.table["value"].sum() == pytest.approx(
        p.table["model_game"].sum() + v.parts_["dispersion"].sum()
    )
    assert p.table.set_index("seller")["model_game"].idxmin() == "cat"


def test_statements_split_a_sellers_value_among_its_coalitions(v):
    for basis in ("sellers", "rows"):
        p = v.payouts(SELLER, revenue=1, basis=basis)
        total = p.statements.groupby("seller")[["value", "rows", "share_of_value"]].sum()
        assert np.allclose(total["value"], p.table["value"])
        assert total["rows"].tolist() == p.table["rows"].tolist()
        assert np.allclose(total["share_of_value"], 1)
        assert (p.statements["description"] != "").all()


def test_minimum_cap_and_equal_shares_on_request(v):
    rule = PayoutRule(minimum=5, cap="40")
    p = v.payouts(SELLER, revenue=100, rule=rule)
    assert sum(p.amounts.values()) == 100
    assert max(p.amounts.values()) <= 40
    assert min(p.amounts.values()) >= 5
    with pytest.raises(DataError, match="Change the minimum or the cap"):
        v.payouts(SELLER, revenue=100, rule=PayoutRule(cap=20))


def test_what_is_worth_nothing_is_not_shared_out_unless_asked():
    lies = quick(metric="accuracy", leaf_size=32).fit(X, 1 - Y, XV, YV)
    with pytest.raises(DataError, match="must sum to clearly more than zero, got -"):
        lies.payouts(SELLER, revenue=100)
    p = lies.payouts(SELLER, revenue=100, rule=PayoutRule(worthless="equal"))
    assert sorted(p.amounts.values()) == [
        Decimal("33.33"),
        Decimal("33.33"),
        Decimal("33.34"),
    ]


def test_a_saved_run_pays_the_same(v, tmp_path):
    v.save(tmp_path / "run")
    again = HCDV.load(tmp_path / "run")
    for basis in ("sellers", "rows"):
        one = v.payouts(SELLER, revenue=100, basis=basis, replication=False).table
        other = again.payouts(SELLER, revenue=100, basis=basis, replication=False).table
        pd.testing.assert_frame_equal(one, other)


def test_owners_can_be_a_column_of_the_rows():
    frame = pd.DataFrame(X).add_prefix("f").assign(shop=SELLER)
    fitted = quick(leaf_size=32).fit(frame, Y)
    p = fitted.payouts("shop", revenue=1)
    assert p.table["seller"].tolist() == ["ann", "bob", "cat"]
    with pytest.raises(DataError, match=r"got 'shpo'\. Did you mean 'shop'"):
        fitted.payouts("shpo", revenue=1)


@pytest.mark.parametrize(
    ("owners", "said"),
    [
        (["ann"] * 240, "at least 2, got one: ann"),
        (["ann", None] * 120, "no missing names, got 120 of 240, first at row 1"),
        (["ann", ""] * 120, "no missing names, got 120 of 240"),
        ([1.0, np.nan] * 120, "no missing names"),
        (["ann", "bob"], "one name for each of 240 rows"),
        (np.zeros((240, 2)), "one name for each of 240 rows"),
    ],
)
def test_owners_that_are_none_are_refused(v, owners, said):
    with pytest.raises(DataError, match=said):
        v.payouts(owners, revenue=1)


@pytest.mark.parametrize("revenue", [-1, float("nan"), "much", 0.001])
def test_a_revenue_that_is_none_is_refused(v, revenue):
    with pytest.raises(ParameterError, match="revenue must be"):
        v.payouts(SELLER, revenue=revenue)


def test_a_basis_that_cannot_be_is_refused(v):
    with pytest.raises(ParameterError, match="basis must be one of"):
        v.payouts(SELLER, revenue=1, basis="row")
    with pytest.raises(ParameterError, match="Pass model="):
        v.payouts(SELLER, revenue=1, basis="model")


def test_a_seller_without_rows_of_a_class_is_named(v):
    owner = np.where(NOISY == 1, "ann", np.where(np.arange(240) % 2, "bob", "cat"))
    p = v.payouts(owner, revenue=100)
    assert "without rows of some class: ann, bob, cat" in p.notes
    assert sum(p.amounts.values()) == 100


def test_rows_that_two_sellers_offer_are_counted():
    twice = np.concatenate([X, X[:30]])
    owner = np.append(SELLER, np.where(SELLER[:30] == "ann", "bob", "ann"))
    fitted = quick(leaf_size=32).fit(twice, np.append(Y, Y[:30]), XV, YV)
    table = fitted.payouts(owner, revenue=1, replication=False).table
    assert table["also_elsewhere"].sum() == 60


def test_moves_are_those_of_rows_valued_anew(v):
    """Copying and splitting statistics is copying and splitting rows."""
    case, probe = v.run_.case, v.run_.valuation.probe
    code = (np.arange(240) % 3)[v.run_.position]
    halves = probe.game(case, halved(case, code), 6, 1)
    masks = (np.arange(8)[:, None] >> np.arange(3)) & 1 == 1
    assert np.allclose(merged(halves)(masks), probe.game(case, code, 3, 1)(masks))
    extra = np.flatnonzero(code == 1)
    from dataclasses import replace

    rows = np.append(np.arange(240), extra)
    longer = replace(case, views=[view.take(rows) for view in case.views])
    owner = np.append(code, np.full(len(extra), 0))
    assert np.allclose(
        copied(merged(halves), 0, 1)(masks), probe.game(longer, owner, 3, 1)(masks)
    )
    pair = np.where((code == 2) & (halved(case, code) % 2 == 1), 3, code)
    four = (np.arange(16)[:, None] >> np.arange(4)) & 1 == 1
    assert np.allclose(split(halves, 2)(four), probe.game(case, pair, 4, 1)(four))
    sizes = np.bincount(halved(case, code))
    assert sizes.max() - sizes.min() <= 1


def test_the_dispersion_of_sellers_is_that_of_their_rows(v):
    code = (np.arange(240) % 3)[v.run_.position]
    found = Stakes.of(v.run_.case, code, 3).dispersion() * v.run_.plan.dispersion_weight
    assert np.allclose(found, np.bincount(code, v.run_.valuation.parts["dispersion"]))


def test_copying_is_measured_bounded_and_warned_about(v):
    p = v.payouts(SELLER, revenue=1000, currency="EUR")
    assert len(p.replication) == 9
    of_cat = p.replication[p.replication["seller"] == "cat"].set_index("move")[
        "amount_gain"
    ]
    honest = of_cat[of_cat.index.str.startswith("copies the rows of")]
    assert honest.item() > 10  # honest rows pay
    assert (p.replication["share_gain"] < 0.35).all()
    assert any("refuse rows that another seller offers" in note for note in p.notes)
    rows = v.payouts(SELLER, revenue=1000, basis="rows", replication=True).replication
    assert (rows[rows["move"] == "splits in two"]["amount_gain"] == 0).all()
    others = rows[rows["move"].str.startswith("copies the rows of")]
    assert (others.set_index("seller")["amount_gain"] > 0)["cat"]
    assert v.payouts(SELLER, revenue=1, basis="rows").replication.empty


def test_statements_are_written_all_or_nothing(v, tmp_path):
    p = v.payouts(np.char.add(SELLER, "<b>"), revenue="12345.67", currency="EUR")
    folder = p.save(tmp_path / "october")
    assert sorted(file.name for file in folder.iterdir()) == [
        "payouts.csv", "replication.csv", "statements.csv", "statements.html",
    ]  # fmt: skip
    paid = pd.read_csv(folder / "payouts.csv", dtype={"amount": str})
    assert sum(map(Decimal, paid["amount"])) == Decimal("12345.67")
    page = (folder / "statements.html").read_text()
    assert "EUR 12,345.67 to 3 sellers" in page
    assert "ann&lt;b&gt;" in page
    assert "<b>" not in page
    assert "http" not in page
    with pytest.raises(DataError, match="must be new"):
        p.save(folder)
    with pytest.raises(DataError, match="must lie in one that exists"):
        p.save(tmp_path / "none" / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["october"]


def test_facts_are_plain(v):
    import json

    p = v.payouts(SELLER, revenue=7)
    told = json.loads(json.dumps(p.to_dict(), default=float))
    assert [one["amount"] for one in told["sellers"]] == [
        str(a) for a in p.amounts.values()
    ]


def test_gini_is_that_of_the_textbook():
    assert gini(np.array([1.0, 1.0, 1.0])) == 0
    assert gini(np.array([0.0, 0.0, 0.0, 1.0])) == pytest.approx(0.75)
    x = np.array([1.0, 4.0, 2.0])
    assert gini(x) == pytest.approx(np.abs(x[:, None] - x).mean() / (2 * x.mean()))
    assert gini(np.zeros(3)) == 0


def test_ten_thousand_sellers_are_paid_by_their_rows():
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(12_000, 3))
    fitted = quick(utility="linear", leaf_size=400, branching=8).fit(
        Z, (Z[:, 0] > 0).astype(int)
    )
    owner = rng.permutation(np.arange(12_000) % 10_000)
    p = fitted.payouts(owner, revenue="1000000.01")
    assert p.facts["basis"] == "rows"
    assert len(p.table) == 10_000
    assert sum(p.amounts.values()) == Decimal("1000000.01")
    assert (p.table["amount_stderr"] >= 0).all()
    with pytest.raises(ParameterError, match='"rows" for more than 1,000 sellers'):
        fitted.payouts(owner, revenue=1, basis="sellers")
