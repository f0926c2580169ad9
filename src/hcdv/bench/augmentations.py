"""Candidates made from images by the paper's four transformations, a VAE for the diffusion one.

affine      rotation up to ±15° and a shift up to ±10 % of the side, bilinear, black outside
colour      brightness and contrast (about the image's mean) by a factor from 0.7 to 1.3
cutout      one 8×8 square, wholly inside, set to black
generated   decoded, given a class, by a variational autoencoder trained on the originals,
            from noise of the normal law of the codes of that class (from the prior, a third
            of the images would not show their class): it stands in for Stable Diffusion and
            is a far weaker generator
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from hcdv.errors import need

Images = NDArray[np.uint8]  # (n, h, w)
Labels = NDArray[np.intp]

DEGREES, SHIFT, FACTOR, HOLE = 15.0, 0.1, (0.7, 1.3), 8


@dataclass(frozen=True)
class Candidates:
    """Images that are not in the data, their labels, and how they were made."""

    X: Images
    y: Labels
    kind: Labels  # index into KINDS


def affine(images: Images, rng: np.random.Generator) -> Images:
    """Each turned and shifted at random."""
    from scipy.ndimage import affine_transform

    n, *side = images.shape
    angle = np.deg2rad(rng.uniform(-DEGREES, DEGREES, n))
    shift = rng.uniform(-SHIFT, SHIFT, (n, 2)) * side
    centre = (np.array(side) - 1.0) / 2.0
    out = np.empty_like(images)
    for i in range(n):
        cos, sin = np.cos(angle[i]), np.sin(angle[i])
        turn = np.array([[cos, -sin], [sin, cos]])
        offset = centre - turn @ (centre + shift[i])
        moved = affine_transform(images[i].astype(float), turn, offset, order=1)
        out[i] = np.clip(np.rint(moved), 0, 255)
    return out


def colour(images: Images, rng: np.random.Generator) -> Images:
    """Each brighter or darker, and of more or less contrast, at random."""
    brightness, contrast = rng.uniform(*FACTOR, (2, len(images), 1, 1))
    bright = images * brightness
    mean = bright.mean(axis=(1, 2), keepdims=True)
    changed = mean + contrast * (bright - mean)
    return np.clip(np.rint(changed), 0, 255).astype(np.uint8)


def cutout(images: Images, rng: np.random.Generator) -> Images:
    """Each with one black square."""
    n, height, width = images.shape
    top = rng.integers(0, height - HOLE + 1, (n, 1, 1))
    left = rng.integers(0, width - HOLE + 1, (n, 1, 1))
    row, column = np.arange(height)[:, None], np.arange(width)
    hole = (row >= top) & (row < top + HOLE) & (column >= left) & (column < left + HOLE)
    return np.where(hole, 0, images).astype(np.uint8)


FROM_ONE: dict[str, Callable[[Images, np.random.Generator], Images]] = {
    "affine": affine,
    "colour": colour,
    "cutout": cutout,
}
KINDS = (*FROM_ONE, "generated")


def candidates(
    images: Images, labels: Labels, n: int, seed: int, *, epochs: int = 10
) -> Candidates:
    """A quarter of each kind; those made from an image keep its label, the rest are even."""
    rng = np.random.default_rng([seed, 61])
    made: list[Images] = []
    given: list[Labels] = []
    for transform in FROM_ONE.values():
        rows = rng.choice(len(images), n // 4, replace=False)
        made.append(transform(images[rows], rng))
        given.append(labels[rows])
    n_left = n - 3 * (n // 4)
    classes = np.unique(labels)
    given.append(classes[np.arange(n_left) % len(classes)])
    made.append(generated(images, labels, given[-1], seed, epochs=epochs))
    kind = np.repeat(np.arange(len(KINDS)), [len(part) for part in given])
    return Candidates(np.concatenate(made), np.concatenate(given), kind)


def generated(
    images: Images, labels: Labels, wanted: Labels, seed: int, *, epochs: int
) -> Images:
    """New images of the classes wanted, by a conditional VAE taught on the images."""
    torch = need("torch", extra="bench", what="the generator of images")
    with threadpool_limits(limits=1):  # the same bits for any number of cores
        return _generated(torch, images, labels, wanted, seed, epochs)


def _generated(
    torch: Any, images: Images, labels: Labels, wanted: Labels, seed: int, epochs: int
) -> Images:
    n_classes = int(labels.max()) + 1
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        encoder, decoder = _networks(int(np.prod(images.shape[1:])), n_classes)
    pixels = torch.as_tensor(images.reshape(len(images), -1)).float() / 255
    classes = torch.eye(n_classes)[torch.as_tensor(labels)]
    adam = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(images), generator=generator).split(128):
            adam.zero_grad()
            _bound(encoder, decoder, pixels[rows], classes[rows], generator).backward()
            adam.step()
    with torch.no_grad():
        mean, log_variance = encoder(torch.cat([pixels, classes], dim=1)).chunk(2, dim=1)
        code = torch.randn(len(wanted), LATENT, generator=generator)
        for c in np.unique(wanted):
            of, asked = torch.as_tensor(labels == c), torch.as_tensor(wanted == c)
            code[asked] = _of_class(code[asked], mean[of], log_variance[of].exp())
        given = torch.eye(n_classes)[torch.as_tensor(wanted)]
        drawn = decoder(torch.cat([code, given], dim=1)).sigmoid()
    shape = (len(wanted), *images.shape[1:])
    return (drawn * 255).round().byte().numpy().reshape(shape)


def _of_class(noise: Any, mean: Any, variance: Any) -> Any:
    """Standard normal noise as codes: of mean and covariance of the codes given."""
    import torch

    middle = mean.mean(dim=0)
    spread = (mean - middle).T @ (mean - middle) / len(mean) + variance.mean(dim=0).diag()
    return middle + noise @ torch.linalg.cholesky(spread).T


LATENT, WIDTH = 16, 256


def _networks(n_pixels: int, n_classes: int) -> tuple[Any, Any]:
    from torch import nn

    encoder = nn.Sequential(
        nn.Linear(n_pixels + n_classes, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2 * LATENT)
    )
    decoder = nn.Sequential(
        nn.Linear(LATENT + n_classes, WIDTH), nn.ReLU(), nn.Linear(WIDTH, n_pixels)
    )
    return encoder, decoder


def _bound(encoder: Any, decoder: Any, pixels: Any, classes: Any, generator: Any) -> Any:
    """Reconstruction loss and divergence from the prior, a row."""
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy

    mean, log_variance = encoder(torch.cat([pixels, classes], dim=1)).chunk(2, dim=1)
    noise = torch.randn(mean.shape, generator=generator)
    code = mean + noise * (log_variance / 2).exp()
    lost = cross_entropy(
        decoder(torch.cat([code, classes], dim=1)), pixels, reduction="sum"
    )
    apart = (mean**2 + log_variance.exp() - 1.0 - log_variance).sum() / 2
    return (lost + apart) / len(pixels)
