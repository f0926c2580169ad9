"""The mini-batch objective: each part against its definition, and its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hcdv.embedding.networks import mlp_network
from hcdv.embedding.objective import (
    Weights,
    batch_dispersion,
    cross_label_partners,
    finite_difference,
    head_utility,
    objective,
    one_hot_centred,
    unit,
)


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(24, 5, generator=generator, dtype=torch.float64)
    return x, torch.arange(24) % 3


@pytest.fixture
def network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return mlp_network(5, 8, 4).double()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_dispersion_from_class_sums_is_the_mean_over_cross_label_pairs(batch):
    x, codes = batch
    z = unit(x)
    pairs = [
        1 - float(z[i] @ z[j]) for i in range(24) for j in range(i) if codes[i] != codes[j]
    ]
    assert float(batch_dispersion(z, codes, 3)) == pytest.approx(np.mean(pairs))


def test_dispersion_of_one_class_is_zero(batch):
    z = unit(batch[0])
    assert float(batch_dispersion(z, torch.zeros(24, dtype=torch.long), 3)) == 0


def test_the_head_is_ridge_regression_scored_against_the_uniform_guess(batch):
    x, codes = batch
    z, target = unit(x), one_hot_centred(codes, 3, x)
    A = np.column_stack([z[:12].numpy(), np.ones(12)])
    W = np.linalg.solve(A.T @ A + 2.0 * np.eye(6), A.T @ target[:12].numpy())
    B = np.column_stack([z[12:].numpy(), np.ones(12)])
    loss = ((target[12:].numpy() - B @ W) ** 2).sum(axis=1).mean()
    found = head_utility(z[:12], target[:12], z[12:], target[12:], 2.0)
    assert float(found) == pytest.approx(1 - loss / (1 - 1 / 3))


def test_a_head_held_at_zero_is_worth_nothing(batch):
    x, codes = batch
    target = one_hot_centred(codes, 3, x)
    assert float(head_utility(x, target, x, target, 1e12)) == pytest.approx(0, abs=1e-9)


def test_partners_always_have_another_label(batch):
    codes = batch[1]
    anchors, partners = cross_label_partners(codes, 4, generator())
    assert anchors.tolist() == list(range(24))
    assert partners.shape == (24, 4)
    assert (codes[partners] != codes[anchors][:, None]).all()


def test_smoothness_is_zero_where_all_labels_agree(batch, network):
    x, _ = batch
    codes = torch.zeros(24, dtype=torch.long)
    found = finite_difference(network, x, unit(network(x)), codes, Weights(), generator())
    assert float(found) == 0


def gradient_squares(network, x, codes, partners):
    """Mean over the pairs drawn of ‖∇_{x_p} d(f(x_p), f(x_q))‖², by autograd."""
    squares = []
    for p, row in enumerate(partners):
        for q in row:
            anchor = x[p].clone().requires_grad_()
            with torch.no_grad():
                z_q = unit(network(x[q][None]))
            d = 1 - (unit(network(anchor[None])) * z_q).sum()
            squares.append(float(torch.autograd.grad(d, anchor)[0].square().sum()))
    return np.mean(squares)


def test_the_finite_difference_is_the_squared_gradient_in_expectation(batch, network):
    """Eq. (33): E_r[(Δ/ε)²] → ‖∇‖²; 1,500 draws, within five of their standard errors."""
    x, codes = batch
    weights = Weights(step=1e-5, n_partners=3, n_draws=1)
    z = unit(network(x))
    _, partners = cross_label_partners(codes, 3, generator(7))
    expected = gradient_squares(network, x, codes, partners.tolist())
    shared = generator(3)
    draws = []
    with torch.no_grad():
        for _ in range(1500):
            # The same pairs each time, new directions r.
            at = _WithPartners(generator(7), shared)
            draws.append(float(_finite_difference_at(at, network, x, z, codes, weights)))
    error = np.std(draws) / len(draws) ** 0.5
    assert abs(np.mean(draws) - expected) < 5 * error
    assert error < 0.08 * expected


class _WithPartners:
    """Two generators: one for the partners, one for the directions."""

    def __init__(self, partners, directions):
        self.partners, self.directions = partners, directions


def _finite_difference_at(at, network, x, z, codes, weights):
    from hcdv.embedding import objective as room

    drawn = cross_label_partners(codes, weights.n_partners, at.partners)
    original = room.cross_label_partners
    room.cross_label_partners = lambda *_: drawn
    try:
        return finite_difference(network, x, z, codes, weights, at.directions)
    finally:
        room.cross_label_partners = original


def test_perturbed_inputs_stay_within_the_bounds(batch, network):
    x, codes = batch
    seen = []

    def watching(rows):
        seen.append(rows)
        return network(rows)

    weights = Weights(step=10.0, n_draws=2)
    z = unit(network(x))
    finite_difference(watching, x, z, codes, weights, generator(), (-0.5, 0.5))
    assert len(seen) == 2  # one forward pass a draw, whatever the number of partners
    assert all(rows.abs().max() <= 0.5 for rows in seen)


def test_the_objective_is_the_sum_of_its_parts(batch, network):
    x, codes = batch
    weights = Weights(dispersion=0.7, smoothness=0.3)
    found = objective(network, x, codes, 3, weights, generator())
    expected = found.utility + 0.7 * found.dispersion - 0.3 * found.smoothness
    assert float(found.total.detach()) == pytest.approx(float(expected.detach()))
    assert float(found.smoothness.detach()) > 0


def test_the_gradient_is_that_of_finite_differences(batch, network):
    """Every parameter, in double precision, with the same random draws on both sides."""
    x, codes = batch
    weights = Weights(dispersion=0.7, smoothness=0.3, step=0.1)

    def value():
        return objective(network, x, codes, 3, weights, generator()).total

    value().backward()
    step = 1e-6
    for parameter in network.parameters():
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        for k in range(0, len(flat), max(1, len(flat) // 6)):
            old = float(flat[k])
            flat[k] = old + step
            above = float(value().detach())
            flat[k] = old - step
            below = float(value().detach())
            flat[k] = old
            assert float(gradient[k]) == pytest.approx(
                (above - below) / (2 * step), rel=1e-4, abs=1e-8
            )


def test_a_zero_vector_has_a_finite_gradient():
    z = torch.zeros(1, 3, requires_grad=True)
    unit(z).sum().backward()
    assert torch.isfinite(z.grad).all()
