"""What to collect next: gains and losses are those of models taught anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fits import quick
from hcdv import HCDV
from hcdv.errors import ParameterError
from hcdv.uses.gaps import KINDS, measured, more_rows, without

N = 360
RNG = np.random.default_rng(0)
TOWN = np.array(["Ulm", "Bonn", "Kiel"])[np.arange(N) % 3]


def rows(town, rng):
    """In Ulm all is 0, in Bonn x tells the label, in Kiel it tells the contrary of it."""
    x = rng.normal(size=len(town))
    label = np.where(town == "Ulm", 0, np.where(town == "Bonn", x > 0, x < 0)).astype(int)
    return pd.DataFrame({"town": town, "x": x}), label


X, Y = rows(TOWN, RNG)
XV, YV = rows(np.array(["Ulm", "Bonn", "Kiel"])[RNG.integers(0, 3, 600)], RNG)


@pytest.fixture(scope="module")
def v():
    return quick(utility="kernel", leaf_size=30, branching=3).fit(X, Y, XV, YV)


def paid(run, extra=(), gone=()):
    """M of the rows with copies of some and without others, taught from scratch."""
    case, probe = run.case, run.valuation.probe
    keep = np.append(np.setdiff1d(np.arange(len(case.points)), gone), extra).astype(int)
    fewer = replace(case, views=[view.take(keep) for view in case.views])
    game = probe.game(fewer, np.zeros(len(keep), dtype=np.intp), 1, 1)
    return float(game.payoffs(np.ones((1, 1), dtype=bool), "loss")[0, 0])


def test_the_gain_of_a_row_is_what_a_copy_of_it_would_add(v):
    run, n = v.run_, v.run_.n_rows
    game = run.valuation.probe.game(run.case, np.zeros(n, dtype=np.intp), 1, 1)
    gain, now = more_rows(run, game), paid(run)
    for i in (0, 7, 100):
        assert gain[i] == pytest.approx(paid(run, extra=[i]) - now, abs=1e-12)


def test_what_a_group_is_missed_by_is_what_goes_with_it(v):
    run = v.run_
    frame = measured(run)
    now = paid(run)
    for _, line in frame.head(3).iterrows():
        own = run.canonical_tree.rows(int(line["id"]))
        assert line["if_gone"] == pytest.approx(now - paid(run, gone=own), abs=1e-12)
        assert line["size"] == len(own)
    assert frame["size"].sum() == N


def test_without_a_validation_set_no_row_is_judged_by_itself():
    fitted = quick(leaf_size=30, branching=3).fit(X, Y)
    run = fitted.run_
    codes = np.zeros(N, dtype=np.intp)
    game = run.valuation.probe.game(run.case, codes, 1, 1)
    gain = more_rows(run, game)
    assert gain.shape == (N,)
    assert without(game, 1)[0] == pytest.approx(
        game.payoffs(np.ones((1, 1), bool), "loss")[0, 0]
    )
    i = 5
    others = [k for k, judge in enumerate(run.case.judges) if run.case.taught(judge)[i]]
    assert len(others) == len(run.case.judges) - 1
    one = []
    for k in others:
        single = replace(run.case, judges=[run.case.judges[k]])
        probe = replace(
            run.valuation.probe, moments=[run.valuation.probe.moments[k]], memo={}
        )
        lone = replace(run, case=single, valuation=replace(run.valuation, probe=probe))
        one.append(paid(lone, extra=[i]) - paid(lone))
    assert gain[i] == pytest.approx(np.mean(one), abs=1e-12)


def test_what_is_easy_and_plenty_is_not_to_be_collected(v):
    found = v.gaps(k=4)
    assert set(found["kind"]) <= set(KINDS)
    assert (found.groupby("kind").size() <= 4).all()
    collect = found[found["kind"] == "collect"]
    assert len(collect) > 0
    assert not collect["description"].str.contains("Ulm").any()
    assert collect["gain"].is_monotonic_decreasing
    assert (collect["gain"] > 0).all()
    enough = found[found["kind"] == "enough"]
    assert enough["description"].str.contains("Ulm").any()
    assert enough["error"].max() < collect["error"].min()


def test_wrong_labels_are_harmful_and_named():
    y = np.where(TOWN == "Bonn", 1 - Y, Y)
    fitted = quick(utility="kernel", leaf_size=30, branching=3).fit(X, y, XV, YV)
    harmful = fitted.gaps().query("kind == 'harmful'")
    assert len(harmful) > 0
    assert harmful["description"].str.contains("Bonn").all()
    assert (harmful["if_gone"] < 0).all()
    assert harmful["if_gone"].is_monotonic_increasing


def test_a_saved_run_tells_the_same(v, tmp_path):
    v.save(tmp_path / "run")
    pd.testing.assert_frame_equal(HCDV.load(tmp_path / "run").gaps(), v.gaps())


def test_numbers_and_vectors_have_gaps_too():
    Z = RNG.normal(size=(90, 4))
    found = quick(leaf_size=20).fit(Z, Z[:, 0] + 0.1 * Z[:, 1]).gaps()
    assert set(found["description"]) <= {""}
    assert found["label_mix"].str.startswith("mean").all()


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "all"])
def test_a_number_of_groups_is_asked_for(v, k):
    with pytest.raises(ParameterError, match="k must be a whole number of at least 1"):
        v.gaps(k)
