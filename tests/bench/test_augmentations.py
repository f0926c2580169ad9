"""Candidates are what the paper's four transformations make of images."""

from __future__ import annotations

import numpy as np

from hcdv.bench import augmentations as stand


def test_cutout_blackens_one_square_of_eight_and_nothing_else():
    grey = np.full((50, 28, 28), 9, dtype=np.uint8)
    made = stand.cutout(grey, np.random.default_rng(0))
    for image in made:
        row, column = np.nonzero(image == 0)
        assert len(row) == 64
        assert np.ptp(row) == np.ptp(column) == 7
    assert np.all(made[made != 0] == 9)


def test_colour_keeps_shapes_and_stays_within_the_factors():
    grey = np.full((200, 28, 28), 100, dtype=np.uint8)
    made = stand.colour(grey, np.random.default_rng(0))
    assert made.std(axis=(1, 2)).max() == 0.0  # contrast about the mean leaves a flat image
    assert 70 <= made.min() < 80
    assert 120 < made.max() <= 130


def test_affine_moves_the_middle_by_no_more_than_a_tenth_of_the_side():
    point = np.zeros((100, 29, 29), dtype=np.uint8)
    point[:, 13:16, 13:16] = 255
    made = stand.affine(point, np.random.default_rng(0)).astype(float)
    mass = made.sum(axis=(1, 2))
    at = [
        (made.sum(axis=2) @ np.arange(29)) / mass,
        (made.sum(axis=1) @ np.arange(29)) / mass,
    ]
    off = np.abs(np.array(at) - 14.0)
    assert off.max() <= 0.1 * 29 + 0.3
    assert off.max() > 2.0


def bars(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Images of three classes: a bright bar at the left, in the middle or at the right."""
    labels = np.arange(n) % 3
    images = np.zeros((n, 28, 28), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[2:26, 3 + 8 * label : 9 + 8 * label] = 200
    return images, labels


def test_candidates_are_a_quarter_of_each_kind():
    made = stand.candidates(*bars(60), 40, 0, epochs=1)
    assert np.bincount(made.kind).tolist() == [10] * 4
    assert made.X.shape == (40, 28, 28)
    assert made.X.dtype == np.uint8
    assert np.bincount(made.y[made.kind == 3]).tolist() == [4, 3, 3]


def test_what_is_made_from_an_image_keeps_its_label():
    made = stand.candidates(*bars(300), 240, 0, epochs=1)
    light = made.X[:, 2:26, 2:26].astype(float).reshape(len(made.y), 24, 3, 8)
    brightest = light.sum(axis=(1, 3)).argmax(axis=1)
    for kind in range(len(stand.FROM_ONE)):
        rows = made.kind == kind
        assert np.array_equal(brightest[rows], made.y[rows])


def test_the_generator_learns_what_a_class_looks_like():
    left, right = np.zeros((2, 64, 28, 28), dtype=np.uint8)
    left[:, :, :14] = right[:, :, 14:] = 255
    images, labels = np.concatenate([left, right]), np.repeat([0, 1], 64)
    wanted = np.arange(40) % 2
    made = stand.generated(images, labels, wanted, 0, epochs=25).astype(float)
    lighter_left = made[:, :, :14].mean(axis=(1, 2)) > made[:, :, 14:].mean(axis=(1, 2))
    assert np.array_equal(lighter_left, wanted == 0)
    again = stand.generated(images, labels, wanted, 0, epochs=25)
    assert np.array_equal(made, again)
