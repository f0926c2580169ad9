import numpy as np
import pytest

from hcdv.valuation.coalition_game import from_walks, walk
from hcdv.valuation.orders import flat, nested_orders, nesting
from hcdv.valuation.precision import stratified_stderr

TREE = np.array([-1, 0, 0, 0, *np.repeat([1, 2, 3], 5)])


def smooth_game(n, seed=2):
    """Decreasing returns: most of a gain's variance is owed to place."""
    features = np.random.default_rng(seed).normal(size=(n, 6)) ** 2
    return lambda masks: np.log1p(masks @ features).sum(axis=1)


@pytest.mark.parametrize(
    ("parent", "n_permutations", "repeats"),
    [(flat(12), 24, 300), (flat(12), 34, 200), (flat(24), 33, 150), (TREE, 60, 150)],
    ids=["one square", "a square and a part", "part of one square, odd", "two levels"],
)
def test_the_variance_told_is_the_variance_seen(parent, n_permutations, repeats):
    game = smooth_game(nesting(parent).leaves.size)
    values, told = [], []
    for seed in range(repeats):
        nested = nested_orders(parent, n_permutations, np.random.default_rng(seed))
        estimate = from_walks(parent, nested, walk(game, nested.order))
        values.append(estimate.value[1:])
        told.append(estimate.stderr[1:] ** 2)
    seen = np.var(values, axis=0, ddof=1).mean()
    assert 0.75 < np.mean(told) / seen < 1.35


def test_gains_that_depend_on_place_alone_leave_no_error_after_whole_squares():
    nested = nested_orders(flat(6), 24, np.random.default_rng(0))
    place = np.argsort(nested.order, axis=1).astype(float)
    gains = np.column_stack([place.sum(axis=1), place**3])
    assert stratified_stderr(flat(6), nested.order, gains) == pytest.approx(0, abs=1e-12)
    unfinished = nested_orders(flat(6), 20, np.random.default_rng(0)).order
    part = np.argsort(unfinished, axis=1).astype(float) ** 3
    assert np.all(stratified_stderr(flat(6), unfinished, np.c_[part[:, :1], part])[1:] > 0)


def test_too_few_pairs_to_take_place_out_give_the_plain_error():
    nested = nested_orders(flat(9), 8, np.random.default_rng(0))
    gains = np.random.default_rng(1).normal(size=(8, 10))
    pairs = (gains[::2] + gains[1::2]) / 2
    expected = pairs.std(axis=0, ddof=1) / 2
    assert stratified_stderr(flat(9), nested.order, gains)[1:] == pytest.approx(
        expected[1:]
    )


def test_orders_without_their_reverse_are_left_to_batch_means():
    order = nested_orders(flat(4), 20, np.random.default_rng(0), independent=True).order
    assert stratified_stderr(flat(4), order, np.zeros((20, 5))) is None
    paired = nested_orders(flat(4), 3, np.random.default_rng(0)).order
    assert stratified_stderr(flat(4), paired, np.zeros((3, 5))) is None
