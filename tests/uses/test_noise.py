"""The share of wrong labels and who is taken for whom, held against labels flipped on purpose."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from fits import flipped, quick, two_classes
from hcdv import HCDV
from hcdv.errors import ParameterError
from hcdv.uses.noise import label_odds

RATE = 0.1


@pytest.fixture(scope="module")
def made():
    X, y = load_digits(return_X_y=True)
    X, y = X[:1000], y[:1000].astype(int)
    given, wrong = flipped(y, RATE, np.random.default_rng(0), "pair")
    return HCDV(random_state=0).fit(X, given), y, given, wrong


def test_the_rate_is_within_its_interval(made):
    v, _, _, wrong = made
    told = v.noise()
    assert told.low <= wrong.mean() + 0.015
    assert told.high >= wrong.mean() - 0.015
    assert told.low < told.rate < told.high
    assert told.rate == pytest.approx(v.suspects()["probability"].mean())
    assert v.noise(0.5).high < told.high


def test_the_matrix_finds_what_is_taken_for_what(made):
    v, y, given, _ = made
    told = v.noise()
    assert told.matrix.to_numpy().sum() == pytest.approx(1000)
    assert told.matrix.sum(axis=1).to_numpy() == pytest.approx(np.bincount(given))
    assert told.shares.sum(axis=1).to_numpy() == pytest.approx(np.ones(10))
    true = np.zeros((10, 10))
    np.add.at(true, (given, y), 1)
    off = ~np.eye(10, dtype=bool)
    assert np.corrcoef(told.matrix.to_numpy()[off], true[off])[0, 1] > 0.9
    pairs = told.pairs()
    assert ((pairs["given"] - pairs["true"]) % 10 == 1)[:8].all()
    assert pairs["rows"].is_monotonic_decreasing


def test_chances_of_a_row_are_those_of_its_label_shared_out(made):
    v = made[0]
    odds = label_odds(v.run_)
    assert odds.sum(axis=0) == pytest.approx(np.ones(1000))
    own = odds[v.run_.case.points.target, np.arange(1000)]
    assert own == pytest.approx(1 - v.run_.valuation.doubts.chance)


def test_it_is_told_in_words_and_as_data(made):
    told = made[0].noise()
    assert str(told).startswith(f"{told.rate:.1%} of 1,000 labels are wrong (95% interval ")
    assert ", rather " in str(told)
    assert told.to_dict()["pairs"][0]["rows"] > 1


def test_where_nothing_can_be_known_it_says_so():
    rng = np.random.default_rng(0)
    told = quick().fit(rng.normal(size=(60, 3)), np.arange(60) % 2).noise()
    if told.knows_nothing:
        assert str(told).endswith("nothing is known")
    else:
        assert told.high > told.low


def test_numbers_have_a_rate_and_no_matrix():
    X, _ = two_classes(80)
    told = quick().fit(X, X[:, 0] + 0.25).noise()
    assert told.matrix is None
    assert told.shares is None
    assert told.pairs().empty
    assert 0 <= told.low <= told.rate <= told.high <= 1


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, "most"])
def test_a_confidence_that_is_none_is_refused(made, confidence):
    with pytest.raises(ParameterError, match="confidence must be above 0 and below 1, got"):
        made[0].noise(confidence)
