"""Kernels on torch's tensors: numpy's answers to 1e-5 of the largest, on any device.

Where no CUDA device is found these run on torch's CPU device alone, and say so. The kernels
and these tests import numpy and torch alone.
"""

from __future__ import annotations

import numpy as np
import pytest

from hcdv import HCDV, ParameterError
from hcdv.engines import arrays
from hcdv.engines.arrays import NUMPY, arrays_in_use, arrays_on, used
from hcdv.hierarchy.assignment import Prototypes
from hcdv.hierarchy.growth import grow
from hcdv.valuation.consistency import agreement, context_models
from hcdv.valuation.contexts import hashed_uniform, mix, semivalue_contexts, share_contexts
from hcdv.valuation.features import fourier_features, kernel_features, linear_features
from hcdv.valuation.knn import knn_regression_shapley, knn_shapley
from hcdv.valuation.marginals import point_marginals
from hcdv.valuation.moments import judge_moments
from hcdv.valuation.neighbours import nearest
from hcdv.valuation.points import Points
from hcdv.valuation.probe import coefficients
from hcdv.valuation.statistics import Statistics, context_statistics, group_statistics

torch = pytest.importorskip("torch")
F, R = 4, 4  # folds, orders
SINGLE, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
no_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="PyTorch finds no CUDA device on this machine"
)


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=no_cuda)])
def tensors(request):
    return arrays.torch_arrays(request.param)


def some_points(n: int = 3000, classes: int = 3, seed: int = 0) -> Points:
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 6)) + rng.integers(3, size=(n, 1))
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    target = (Z @ rng.normal(size=(6, max(classes, 1)))).argmax(axis=1)
    target = target if classes else Z[:, 0] - Z[:, 0].mean()
    key = mix(np.arange(n, dtype=np.uint64))
    weight = rng.random(n) + 0.5 if seed else None
    return Points(Z.astype(np.float32), target, classes, key, np.arange(n) % F, weight)


def close(found, expected) -> None:
    assert isinstance(found, np.ndarray)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())


def alike(tensors, kernel) -> None:
    """What a kernel finds of numpy's arrays in memory, on the device, and of tensors there."""
    expected = kernel(lambda x: x)
    with used(tensors):
        for a, b in zip(kernel(lambda x: x), expected, strict=True):
            close(a, b)
    there = kernel(lambda points: points.on(tensors))
    for a, b in zip(there, expected, strict=True):
        assert a.device.type == tensors.device.type
        close(tensors.get(a), b)


def test_hashes_have_the_bits_of_numpys(tensors):
    key = np.random.default_rng(0).integers(2**64, size=1000, dtype=np.uint64)
    there = hashed_uniform(tensors.put(key), 7, 2**20 + 3)
    assert np.array_equal(tensors.get(there), hashed_uniform(key, 7, 2**20 + 3))
    assert np.array_equal(tensors.get(mix(tensors.put(key))).view(np.uint64), mix(key))


@pytest.mark.parametrize("make", [
    linear_features,
    lambda Z: fourier_features(Z, 20, np.random.default_rng(0)),
    lambda Z: kernel_features(Z, 20, np.random.default_rng(0)),
])  # fmt: skip
@pytest.mark.parametrize("classes", [3, 0])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("dtype", [SINGLE, DOUBLE])
def test_statistics_are_numpys(tensors, make, classes, seed, dtype):
    points = some_points(classes=classes, seed=seed)
    features, contexts = make(points.Z), semivalue_contexts(R, 5, 0)
    barred = np.eye(R, F, dtype=bool)
    code = np.arange(len(points)) % 7

    def kernel(place):
        own = place(points)
        options = {"weight": points.weight, "dtype": dtype, "n_jobs": 2}
        of = context_statistics(own, features, contexts, barred, **options)
        groups = group_statistics(own, features, code, 6, **options)
        return of.gram, of.cross, groups.gram, groups.cross

    alike(tensors, kernel)


@pytest.mark.parametrize("rows", [100, arrays._PIECE, 2 * arrays._PIECE + 5])
def test_products_of_many_rows_are_summed_in_double(tensors, rows):
    x = np.random.default_rng(0).normal(size=(rows, 3)).astype(np.float32) + 10
    expected = x.astype(float).T @ x.astype(float)
    there = tensors.put(x)
    found = tensors.get(tensors.gram(there, there))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if rows > arrays._PIECE:
        assert found.dtype == np.float64


@pytest.mark.parametrize("classes", [3, 0])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("sketch", [None, 4])
def test_marginals_of_points_are_numpys(tensors, classes, seed, sketch):
    points = some_points(classes=classes, seed=seed)
    features = kernel_features(points.Z, 20, np.random.default_rng(0))
    judge = judge_moments(some_points(500, classes, 2), features, "loss")
    contexts, barred = semivalue_contexts(R, 5, 0), np.eye(R, F, dtype=bool)

    def kernel(place):
        own = place(points)
        stats = context_statistics(own, features, contexts, barred, weight=points.weight)
        asked = [
            coefficients(
                Statistics(gram, cross), judge, 3.0, sketch, np.random.default_rng(order)
            )
            for order, (gram, cross) in enumerate(zip(stats.gram, stats.cross, strict=True))
        ]
        found = point_marginals(
            own, features, contexts, asked, [judge] * R, barred, n_jobs=2
        )
        return (found,)

    alike(tensors, kernel)


@pytest.mark.parametrize("classes", [3, 0])
def test_margins_and_scores_are_numpys(tensors, classes):
    points = some_points(classes=classes)
    features, contexts = linear_features(points.Z), share_contexts(R, 3, 0, 0.3, 0.9)
    judged = np.eye(R, F, dtype=bool) | (np.arange(R) > 1)[:, None]
    weight = np.random.default_rng(1).random(len(points)) + 0.5

    def kernel(place):
        own = place(points)
        stats = context_statistics(own, features, contexts, ~judged, weight=weight)
        models = [
            context_models(Statistics(g, c), 2.0, None, np.random.default_rng(0))
            for g, c in zip(stats.gram, stats.cross, strict=True)
        ]
        said = agreement(own, features, contexts, models, judged, ~judged, weight)
        return said.margin[2:], said.scores  # the first orders have nan for rows not judged

    alike(tensors, kernel)


def test_kernels_mix_no_array_of_memory_into_those_of_a_device():
    """Tensors of torch's meta device hold no numbers, and refuse company from elsewhere."""
    points, nowhere = some_points(classes=3), arrays.torch_arrays("meta")
    features, contexts = linear_features(points.Z), semivalue_contexts(R, 5, 0)
    judge, barred = judge_moments(points, features, "loss"), np.eye(R, F, dtype=bool)
    stats = context_statistics(points, features, contexts, barred)
    asked, models = [], []
    for gram, cross in zip(stats.gram, stats.cross, strict=True):
        own = Statistics(nowhere.put(gram), nowhere.put(cross))
        rng = np.random.default_rng(0)
        asked.append(coefficients(own, judge, 3.0, 4, rng))
        models.append(context_models(own, 3.0, 4, rng))
    there, weight = points.on(nowhere), np.ones(len(points))
    found = point_marginals(there, features, contexts, asked, [judge] * R, barred)
    said = agreement(there, features, contexts, models, ~barred, barred, weight)
    assert found.device.type == said.margin.device.type == said.scores.device.type == "meta"
    assert found.shape == said.margin.shape == (R, len(points))


def test_rows_go_to_the_leaves_numpy_finds(tensors):
    points = some_points()
    tree = grow(points.Z[:800], branching=4, leaf_size=40, rng=np.random.default_rng(0))
    prototypes = Prototypes.of(tree, points.Z[:800])
    expected = prototypes.leaves(points.Z)
    with used(tensors):
        assert np.mean(prototypes.leaves(points.Z) == expected) > 0.999  # but for ties
    there = prototypes.leaves(tensors.put(points.Z))
    assert np.mean(tensors.get(there) == expected) > 0.999


@pytest.mark.parametrize("count", [1, 7, 60])
def test_neighbours_and_their_ties_are_numpys(tensors, count):
    distance = np.random.default_rng(0).integers(9, size=(40, 60)).astype(float)
    found = tensors.get(nearest(tensors.put(distance), count))
    assert np.array_equal(found, nearest(distance, count))


@pytest.mark.parametrize("tolerance", [0.0, 0.01])
def test_values_of_neighbours_are_numpys(tensors, tolerance):
    points, judges = some_points(600), some_points(200, seed=3)
    rows = (points.Z, points.target, judges.Z, judges.target)
    centred = (points.Z, points.Z[:, 0], judges.Z, judges.Z[:, 0])
    expected = (
        knn_shapley(*rows, 5, tolerance=tolerance),
        knn_regression_shapley(*centred, 5),
    )
    with used(tensors):
        close(knn_shapley(*rows, 5, tolerance=tolerance), expected[0])
        close(knn_regression_shapley(*centred, 5), expected[1])


@pytest.mark.parametrize("settings", [{}, {"utility": "linear", "metric": "auc"}])
@pytest.mark.parametrize("numbers", [False, True])
def test_a_fit_on_a_device_finds_the_values_of_memory(
    monkeypatch, tensors, settings, numbers
):
    points = some_points(700, 2)
    y = points.Z[:, 0] * 2.0 if numbers else points.target
    settings = {"random_state": 0, **({} if numbers else settings)}
    here = HCDV(**settings).fit(points.Z, y)
    monkeypatch.setattr("hcdv.estimator.arrays_on", lambda _: tensors)
    there = HCDV(**settings).fit(points.Z, y)
    close(there.values_, here.values_)
    assert arrays_in_use() is NUMPY


def test_the_device_is_memory_unless_another_is_asked_for():
    assert arrays_on("cpu") is NUMPY
    assert arrays_on("auto") is NUMPY
    if torch.cuda.is_available():
        assert arrays_on("cuda").device.type == "cuda"
        return
    with pytest.raises(
        ParameterError, match='device must be "auto" or "cpu" where PyTorch'
    ):
        HCDV(device="cuda").fit(np.eye(8), np.arange(8) % 2)


def test_a_device_needs_torch(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    assert arrays_on("auto") is NUMPY
    with pytest.raises(ImportError, match=r"hcdv\[torch\]"):
        arrays_on("cuda")
