"""Rows are shown as what they are, and no longer than a person reads."""

from __future__ import annotations

import base64
import io

import matplotlib.image
import numpy as np
import pandas as pd

from hcdv.apps.report.looks import MOST_CELLS, SIDE, cells, looks, thumbnails
from hcdv.given import Given, Part


def seen(look: dict) -> np.ndarray:
    content = base64.b64decode(look["image"].partition(",")[2])
    return np.rint(matplotlib.image.imread(io.BytesIO(content), format="png") * 255)


def test_small_images_stay_as_they_are_and_large_ones_are_averaged_down():
    small = np.arange(0, 256, 4, dtype=np.uint8).reshape(1, 8, 8)
    assert np.array_equal(seen(thumbnails(small)[0]), small[0])
    large = np.zeros((1, 300, 200, 3), np.uint8)
    large[0, :150] = 200
    picture = seen(thumbnails(large)[0])
    assert max(picture.shape[:2]) <= SIDE
    assert picture[0, 0].tolist() == [200, 200, 200]
    assert picture[-1, -1].tolist() == [0, 0, 0]


def test_images_that_use_a_fraction_of_the_range_are_not_shown_black():
    dim = np.full((2, 4, 4), 8, np.uint8)
    dim[:, 0, 0] = 16
    assert seen(thumbnails(dim)[0]).max() == 255


def test_a_strip_thinner_than_a_block_is_still_shown():
    assert seen(thumbnails(np.full((1, 2, 500), 90, np.uint8))[0]).size > 0


def test_a_column_of_texts_is_read_as_text_and_the_rest_as_cells():
    frame = pd.DataFrame({
        "age": [31, 40], "story": ["word " * 200, "once upon a time there was a king " * 2],
        "city": ["Ulm", None],
    })  # fmt: skip
    first, second = cells(frame)
    assert first["text"].endswith("…")
    assert len(first["text"]) <= 320
    assert first["cells"] == [["age", "31"], ["city", "Ulm"]]
    assert second["cells"][1] == ["city", "missing"]


def test_of_a_wide_row_the_first_cells_are_shown_and_the_others_counted():
    (look,) = cells(pd.DataFrame(np.zeros((1, 40))))
    assert len(look["cells"]) == MOST_CELLS
    assert look["n_more"] == 40 - MOST_CELLS


def test_rows_are_found_by_id():
    given = Given.of(Part(np.array(["a", "b"]), pd.DataFrame({"x": [1, 2]})))
    assert looks(given, np.array(["b"]))[0]["cells"] == [["x", "2"]]
    assert looks(given, np.array([], dtype="U1")) == []
