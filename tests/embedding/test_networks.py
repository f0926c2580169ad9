"""The networks take what they say, and images in either layout."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hcdv.embedding.networks import conv_network, image_batch, mlp_network


def test_the_perceptron_maps_rows_to_vectors():
    assert mlp_network(7, 16, 3)(torch.zeros(5, 7)).shape == (5, 3)


@pytest.mark.parametrize("size", [(28, 28), (8, 8), (33, 17), (2, 2)])
def test_the_convolutions_take_images_of_any_size(size):
    assert conv_network(3, 4)(torch.zeros(5, 3, *size)).shape == (5, 4)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ((5, 9, 8), (5, 1, 9, 8)),
        ((5, 9, 8, 3), (5, 3, 9, 8)),
        ((5, 3, 9, 8), (5, 3, 9, 8)),
        ((5, 3, 8, 3), (5, 3, 3, 8)),
    ],
)
def test_images_are_turned_to_channels_first(given, taken):
    assert image_batch(np.zeros(given)).shape == taken
