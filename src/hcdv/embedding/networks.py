"""The two networks: a perceptron of two hidden layers, and a small ConvNet (torch)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

CHANNELS = (1, 3, 4)


def mlp_network(n_inputs: int, n_hidden: int, n_outputs: int) -> Any:
    """Smooth activations: Ω_FD measures a gradient, which a kink does not have."""
    from torch import nn

    return nn.Sequential(
        nn.Linear(n_inputs, n_hidden),
        nn.GELU(),
        nn.Linear(n_hidden, n_hidden),
        nn.GELU(),
        nn.Linear(n_hidden, n_outputs),
    )


def conv_network(n_channels: int, n_outputs: int) -> Any:
    """Three convolutions, a 3 × 3 grid of averages, one linear map; any image size."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(n_channels, 16, 3, stride=2, padding=1),
        nn.GELU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.GELU(),
        nn.AvgPool2d(2, ceil_mode=True),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(64 * 9, n_outputs),
    )


def image_batch(images: NDArray[Any]) -> NDArray[Any]:
    """(n, h, w), (n, h, w, c) or (n, c, h, w) as (n, c, h, w); c is 1, 3 or 4."""
    if images.ndim == 3:
        return images[:, None]
    is_first = images.shape[1] in CHANNELS and images.shape[3] not in CHANNELS
    return images if is_first else np.moveaxis(images, 3, 1)
