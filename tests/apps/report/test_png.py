"""Pictures come back from the files as they went in, and have the colours meant."""

from __future__ import annotations

import io

import matplotlib.image
import numpy as np
import pytest

from hcdv.apps.report.palette import CLASSES, OTHER, WORTH, diverging, of_classes, rgb
from hcdv.apps.report.png import data_uri, png

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(1, 1), (8, 5), (7, 9, 3), (6, 4, 4)])
def test_another_reader_sees_every_pixel_as_it_was(shape):
    picture = RNG.integers(0, 256, shape).astype(np.uint8)
    seen = matplotlib.image.imread(io.BytesIO(png(picture)), format="png")
    assert np.array_equal(np.rint(seen * 255).astype(np.uint8), picture)


def test_gray_with_opacity_is_a_png_too():
    content = png(RNG.integers(0, 256, (3, 4, 2)).astype(np.uint8))
    assert content[25] == 4  # PNG's colour type of gray and alpha


def test_a_picture_is_an_address_that_holds_it():
    assert data_uri(np.zeros((2, 2), np.uint8)).startswith("data:image/png;base64,iVBOR")


def test_the_scale_runs_from_low_through_zero_to_high_and_stops_there():
    colours = diverging(np.array([-5.0, -1.0, 0.0, 1.0, 9.0, np.nan]))
    low, zero, high = map(rgb, WORTH)
    assert [tuple(each) for each in colours.tolist()] == [low, low, zero, high, high, zero]


def test_the_commonest_classes_have_colours_and_the_others_one_together():
    colours = of_classes(np.array([0, 9, 10, -1]))
    expected = [rgb(CLASSES[0]), rgb(CLASSES[9]), rgb(OTHER), rgb(OTHER)]
    assert [tuple(each) for each in colours.tolist()] == expected
