r"""The embedding objective of Eq. (10) on one mini-batch, differentiable in θ (torch).

    J(θ) = M(S) + λ·Δ̄_c(S) − α·Ω_FD(θ)

Notation (paper → code):  f_θ → network · λ → dispersion_weight · α → smoothness_weight
ε → step · m → n_partners · d(u, v) = 1 − cos(u, v)

paper silent: M(S) is not differentiable as defined. Here it is a ridge head, fitted in
closed form on one half of the batch and scored on the other, and the reverse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Weights(NamedTuple):
    """Weights and constants of the objective."""

    dispersion: float = 0.1  # λ
    smoothness: float = 0.01  # α
    ridge: float = 1.0
    step: float = 0.01  # ε
    n_partners: int = 2  # m
    n_draws: int = 1


class Objective(NamedTuple):
    """J and its three parts, each a scalar tensor."""

    total: Tensor
    utility: Tensor
    dispersion: Tensor
    smoothness: Tensor


def objective(
    network: Any,
    x: Tensor,
    codes: Tensor,
    n_classes: int,
    weights: Weights,
    generator: torch.Generator,
    bounds: tuple[float, float] | None = None,
) -> Objective:
    """J on a batch already shuffled, so that its halves are random."""
    z = unit(network(x))
    half = len(z) // 2
    target = one_hot_centred(codes, n_classes, z)
    there = head_utility(z[:half], target[:half], z[half:], target[half:], weights.ridge)
    back = head_utility(z[half:], target[half:], z[:half], target[:half], weights.ridge)
    utility = (there + back) / 2
    dispersion = batch_dispersion(z, codes, n_classes)
    smoothness = z.new_zeros(())
    if weights.smoothness > 0:
        smoothness = finite_difference(network, x, z, codes, weights, generator, bounds)
    total = utility + weights.dispersion * dispersion - weights.smoothness * smoothness
    return Objective(total, utility, dispersion, smoothness)


def unit(z: Tensor) -> Tensor:
    """Rows at length one; the floor keeps the gradient of a zero row finite."""
    return z / z.square().sum(dim=1, keepdim=True).add(1e-12).sqrt()


def one_hot_centred(codes: Tensor, n_classes: int, like: Tensor) -> Tensor:
    """One-hot − 1/C, so that the head of no data, W = 0, guesses uniformly."""
    target = like.new_full((len(codes), n_classes), -1.0 / n_classes)
    return target.scatter_add(1, codes[:, None], like.new_ones((len(codes), 1)))


def head_utility(
    z: Tensor, target: Tensor, z_val: Tensor, target_val: Tensor, ridge: float
) -> Tensor:
    """M = 1 − loss/loss(∅) of a ridge head with intercept, fitted on z, scored on z_val."""
    import torch

    rows, rows_val = _with_ones(z), _with_ones(z_val)
    bound = ridge * torch.eye(rows.shape[1], dtype=z.dtype, device=z.device)
    head = torch.linalg.solve(rows.T @ rows + bound, rows.T @ target)
    loss = (target_val - rows_val @ head).square().sum(dim=1).mean()
    return 1 - loss / target_val.square().sum(dim=1).mean()


def _with_ones(z: Tensor) -> Tensor:
    import torch

    return torch.cat([z, z.new_ones((len(z), 1))], dim=1)


def batch_dispersion(z: Tensor, codes: Tensor, n_classes: int) -> Tensor:
    """Δ̄_c of unit vectors, Eq. (18), by class sums: no pair is formed.

    Σ_P (1 − z_i·z_j) = |P| − (‖Σ_c s_c‖² − Σ_c ‖s_c‖²)/2
    """
    sums = z.new_zeros((n_classes, z.shape[1])).index_add(0, codes, z)
    counts = z.new_zeros(n_classes).index_add(0, codes, z.new_ones(len(codes)))
    n_pairs = (counts.sum() ** 2 - counts.square().sum()) / 2
    products = (sums.sum(dim=0).square().sum() - sums.square().sum()) / 2
    return (n_pairs - products) / n_pairs.clamp(min=1.0)


def finite_difference(
    network: Any,
    x: Tensor,
    z: Tensor,
    codes: Tensor,
    weights: Weights,
    generator: torch.Generator,
    bounds: tuple[float, float] | None = None,
) -> Tensor:
    """Ω_FD, Eq. (33): mean over pairs and draws of ((d(f(x_p+εr), z_q) − d(z_p, z_q))/ε)².

    Each anchor p has m partners of other labels; r ~ N(0, I) is shared by them, so that a
    draw costs one forward pass. Perturbed inputs are kept within bounds, if given.
    """
    anchors, partners = cross_label_partners(codes, weights.n_partners, generator)
    if not len(anchors):
        return z.new_zeros(())
    z_anchor, z_partner = z[anchors], z[partners]  # (b, d), (b, m, d)
    before = _cosine_distances(z_anchor, z_partner)
    squares: list[Tensor] = []
    for _ in range(weights.n_draws):
        r = _normal_like(x[anchors], generator)
        moved = x[anchors] + weights.step * r
        if bounds is not None:
            moved = moved.clamp(*bounds)
        after = _cosine_distances(unit(network(moved)), z_partner)
        squares.append(((after - before) / weights.step).square().mean())
    return sum(squares[1:], squares[0]) / len(squares)


def cross_label_partners(
    codes: Tensor, n_partners: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Anchors (b,) that have a row of another label, and m such rows for each, (b, m)."""
    differs = codes[:, None] != codes[None, :]
    anchors = differs.any(dim=1).nonzero()[:, 0]
    if not len(anchors):
        return anchors, anchors[:, None]
    chances = differs[anchors].float().cpu()
    drawn = chances.multinomial(n_partners, replacement=True, generator=generator)
    return anchors, drawn.to(codes.device)


def _cosine_distances(z_anchor: Tensor, z_partner: Tensor) -> Tensor:
    return 1 - (z_anchor[:, None, :] * z_partner).sum(dim=2)


def _normal_like(x: Tensor, generator: torch.Generator) -> Tensor:
    import torch

    # Drawn on the CPU whatever the device, so that a seed means the same everywhere.
    return torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
