import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from games import trees
from hcdv.embedding.dispersion import (
    class_sums,
    cross_label_dispersion,
    cross_label_pairs,
    dispersion_shapley,
)
from hcdv.errors import DataError, ParameterError
from hcdv.valuation.coalition_game import shapley_exact, winter_exact
from hcdv.valuation.orders import nesting

SEEDS = st.integers(0, 2**32 - 1)


def sphere(n, seed, n_classes=3, d=4):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d))
    return Z / np.linalg.norm(Z, axis=1, keepdims=True), rng.integers(0, n_classes, n)


def by_pairs(Z, y, mask, ratio):
    """The definition: every unordered pair inside with two labels."""
    inside = np.flatnonzero(mask)
    apart = [1 - Z[i] @ Z[j] for i in inside for j in inside if i < j and y[i] != y[j]]
    return sum(apart) / max(1, len(apart)) if ratio else sum(apart)


def dispersion_game(Z, y, n_classes):
    """Coalitions paid by their pairs, over |P(D)|."""
    n_pairs = max(1.0, float(cross_label_pairs(np.bincount(y, minlength=n_classes))))
    everyone = np.array
    return lambda masks: (
        everyone([by_pairs(Z, y, mask, ratio=False) for mask in masks]) / n_pairs
    )


@given(st.integers(0, 12), SEEDS, st.booleans())
def test_class_sums_give_what_the_pairs_give(n, seed, ratio):
    Z, y = sphere(n, seed)
    got = cross_label_dispersion(*class_sums(Z, y, 3), ratio=ratio)
    assert got == pytest.approx(by_pairs(Z, y, np.ones(n, bool), ratio), abs=1e-12)


def test_many_coalitions_are_scored_at_once_from_the_sums_of_their_groups():
    Z, y = sphere(60, 0)
    group = np.random.default_rng(1).integers(0, 4, 60)
    counts, sums = class_sums(Z, 3 * group + y, 12)
    counts, sums = counts.reshape(4, 3), sums.reshape(4, 3, -1)
    masks = np.random.default_rng(2).random((5, 4)) < 0.5
    got = cross_label_dispersion(masks @ counts, np.tensordot(masks.astype(float), sums, 1))
    assert got == pytest.approx([by_pairs(Z, y, mask[group], ratio=True) for mask in masks])


@given(st.integers(1, 7), SEEDS, st.integers(1, 3))
def test_the_closed_form_is_the_shapley_value(n, seed, n_classes):
    Z, y = sphere(n, seed, n_classes)
    expected = shapley_exact(dispersion_game(Z, y, n_classes), n)
    assert dispersion_shapley(Z, y, n_classes) == pytest.approx(expected, abs=1e-12)


@given(trees(), SEEDS)
def test_the_closed_form_is_the_winter_value_of_any_tree(parent, seed):
    leaves = nesting(parent).leaves
    Z, y = sphere(leaves.size, seed)
    expected = winter_exact(dispersion_game(Z, y, 3), parent)[leaves]
    assert dispersion_shapley(Z, y, 3) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [200, 33_000, 70_000])
def test_values_sum_to_the_dispersion_over_several_blocks(n):
    Z, y = sphere(n, 0)
    total = float(cross_label_dispersion(*class_sums(Z, y, 3)))
    assert dispersion_shapley(Z, y).sum() == pytest.approx(total, rel=1e-10)
    single = dispersion_shapley(Z.astype(np.float32), y)
    assert single == pytest.approx(dispersion_shapley(Z, y), rel=1e-4, abs=1e-4 / n)


def test_a_single_class_has_no_dispersion():
    Z, _ = sphere(5, 0)
    assert np.array_equal(dispersion_shapley(Z, np.zeros(5, dtype=int), 4), np.zeros(5))
    assert dispersion_shapley(np.zeros((0, 2)), np.zeros(0, dtype=int)).shape == (0,)


@pytest.mark.parametrize(
    "codes", [[0, 1], [0, 1, 3], [0, -1, 1], [0.0, 1.0, 1.0], [[0], [1], [1]]]
)
def test_codes_that_are_not_classes_are_refused(codes):
    with pytest.raises(DataError, match="codes must"):
        class_sums(np.eye(3), codes, 3)


def test_no_class_at_all_is_refused():
    with pytest.raises(ParameterError, match="n_classes must be at least 1, got 0"):
        class_sums(np.eye(3), [0, 0, 0], 0)
