"""Runs cut short: what was paid for is in a file, and the next run goes on from there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from fits import quick, two_classes
from hcdv.errors import DataError, StoreError
from hcdv.valuation.checkpoint import Checkpoint
from hcdv.valuation.retraining import CallableGame
from hcdv.valuation.utility import Payoffs, Retrained

X, Y = two_classes(60)
X_VAL, Y_VAL = two_classes(30, seed=1)
METHODS = ["nested", "winter", "paper"]
MASKS = np.eye(3, dtype=bool)


class Counted(DecisionTreeClassifier):
    """Counts its fits over all copies, and is interrupted at one of them."""

    fits, stop_at = 0, 10**9

    def fit(self, X, y, sample_weight=None):
        Counted.fits += 1
        if Counted.fits == Counted.stop_at:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


def fitted(path, stop_at=10**9, method="nested", seed=0, **given):
    Counted.fits, Counted.stop_at = 0, stop_at
    model = Retrained(estimator=Counted(max_depth=2), checkpoint=path)
    settings = {"leaf_size": 20, "n_permutations": 2} if method == "winter" else {}
    v = quick(utility=model, method=method, random_state=seed, **settings)
    return v.fit(X[:24], Y[:24], X_VAL, Y_VAL, **given)


@pytest.mark.parametrize("method", METHODS)
def test_a_fit_that_was_cut_short_goes_on_where_it_stopped(tmp_path, method):
    path = tmp_path / "payoffs.npz"
    whole = fitted(None, method=method)
    n_all = Counted.fits
    with pytest.raises(KeyboardInterrupt) as stopped:
        fitted(path, n_all // 2, method)
    n_before = Counted.fits - 1
    assert (
        f"random_state=0 to go on from the payoffs in '{path}'"
        in stopped.value.__notes__[0]
    )
    again = fitted(path, method=method)
    assert Counted.fits == n_all - n_before
    assert np.array_equal(again.values_, whole.values_)
    assert again.checks_["fits"] == whole.checks_["fits"]
    assert list(tmp_path.iterdir()) == [path]


def test_other_data_settings_and_seeds_are_kept_apart_in_one_file(tmp_path):
    path = tmp_path / "payoffs.npz"
    first = fitted(path)
    n_all = Counted.fits
    assert np.array_equal(fitted(path, sample_weight=np.arange(1.0, 25.0)).values_,
                          fitted(None, sample_weight=np.arange(1.0, 25.0)).values_)  # fmt: skip
    assert np.array_equal(fitted(path, seed=1).values_, fitted(None, seed=1).values_)
    assert Counted.fits > 0
    assert np.array_equal(fitted(path).values_, first.values_)
    assert Counted.fits == 0 < n_all


def test_payoffs_of_ones_own_are_kept_too(tmp_path):
    asked, stop_at = [], 10**9

    def payoff(rows):
        asked.append(len(rows))
        if len(asked) == stop_at:
            raise KeyboardInterrupt
        return len(rows) / 60

    whole = quick(utility=payoff).fit(X, Y)
    n_all, stop_at = len(asked), 9
    asked.clear()
    model = Payoffs(function=payoff, checkpoint=tmp_path / "payoffs.npz")
    with pytest.raises(KeyboardInterrupt):
        quick(utility=model).fit(X, Y)
    again = quick(utility=model).fit(X, Y)
    assert len(asked) == n_all + 1
    assert np.array_equal(again.values_, whole.values_)


def test_an_interruption_says_how_to_begin_again_and_how_to_lose_less():
    with pytest.raises(KeyboardInterrupt) as stopped:
        fitted(None, 5)
    (note,) = stopped.value.__notes__
    assert "random_state=0 for the same values; nothing was kept" in note
    assert "utility=Retrained(estimator=…, checkpoint='payoffs.npz')" in note


def test_what_is_paid_for_is_written_while_it_is_paid_for(tmp_path, monkeypatch):
    monkeypatch.setattr("hcdv.valuation.checkpoint.EVERY", 0.0)
    path = tmp_path / "payoffs.npz"
    found = []

    def payoff(rows):
        found.append(sum(len(one["payoffs"]) for one in Checkpoint(path).held.values()))
        return len(rows) / 60

    quick(utility=Payoffs(function=payoff, checkpoint=path)).fit(X, Y)
    assert found == sorted(found)
    assert found[-1] > len(found) // 2


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all"])
def test_a_file_that_holds_no_payoffs_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "payoffs.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="checkpoint must be a file of payoffs"):
        Checkpoint(path)
    assert path.read_bytes() == content


def test_arrays_of_something_else_are_refused(tmp_path):
    path = tmp_path / "payoffs.npz"
    np.savez(path, X=X)
    with pytest.raises(DataError, match="checkpoint must be a file of payoffs"):
        Checkpoint(path)
    np.savez(path, **{"game payoffs": np.zeros(3)})
    with pytest.raises(DataError, match="arrays are missing"):
        Checkpoint(path)


def test_objects_are_never_unpickled(tmp_path):
    path = tmp_path / "payoffs.npz"
    np.savez(path, **{"game payoffs": np.array([{}], dtype=object)})
    with pytest.raises(DataError, match="Object arrays cannot be loaded"):
        Checkpoint(path)


def test_a_place_that_cannot_be_written_is_refused_before_any_payoff(tmp_path):
    with pytest.raises(StoreError, match="a folder that exists"):
        Checkpoint(tmp_path / "none" / "payoffs.npz")
    with pytest.raises(StoreError, match="checkpoint must be writable"):
        Checkpoint(tmp_path / ("a" * 250))


def test_a_game_is_told_from_another_by_its_players(tmp_path):
    checkpoint = Checkpoint(tmp_path / "payoffs.npz")
    first = CallableGame(lambda rows: len(rows) / 6, 6, np.arange(6) % 3)
    first(MASKS)
    checkpoint.keep([first], now=True)
    same = CallableGame(lambda rows: len(rows) / 6, 6, np.arange(6) % 3)
    other = CallableGame(lambda rows: len(rows) / 6, 6, np.arange(6) // 2)
    for game in (same, other):
        Checkpoint(Path(checkpoint.path)).take_up(game)
    assert same.report.fits == 3
    assert other.report.fits == 0
