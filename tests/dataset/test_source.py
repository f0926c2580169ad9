"""Parquet files as one sequence of rows, and what is said of those that cannot be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from datasets import frame_of, people, valued, written
from hcdv import DataError
from hcdv.dataset.source import open_source


def numbers(folder: Path, sizes: list[int], groups: int = 7) -> Path:
    frame = pd.DataFrame({"x": np.arange(sum(sizes)), "label": np.arange(sum(sizes)) % 2})
    return written(folder, frame, tuple(np.cumsum(sizes)[:-1]), groups=groups)


def opened(path, **options):
    return open_source(str(path), ("label",), **{"skip_damaged": False, **options})


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def spoil(path: Path) -> None:
    """Change a byte of a page: the footer still reads."""
    held = bytearray(path.read_bytes())
    held[len(held) // 3] ^= 0xFF
    path.write_bytes(held)


@pytest.mark.parametrize("start", [0, 5, 16, 40])
def test_blocks_are_cut_at_fixed_row_numbers_across_files_and_row_groups(tmp_path, start):
    source = opened(numbers(tmp_path / "data", [10, 1, 0, 33, 6]))
    blocks = list(source.blocks(start, 47, ["x"], n_rows=16))
    firsts = [start, *range(16 * (start // 16 + 1), 47, 16)]
    assert [first for first, _ in blocks] == firsts
    rows = np.concatenate([table.column("x").to_numpy() for _, table in blocks])
    assert np.array_equal(rows, np.arange(start, 47))


def test_text_of_several_row_groups_is_one_column_of_levels(tmp_path):
    frame = pd.DataFrame({"t": ["a", "b", None, "c", "a", "d"], "label": [0, 1] * 3})
    source = opened(written(tmp_path / "data", frame, (1, 4), groups=2))
    ((_, table),) = source.blocks(0, 6, ["t"], n_rows=6)
    assert table.column("t").to_pylist() == ["a", "b", None, "c", "a", "d"]


def test_empty_files_hold_no_rows_and_do_no_harm(tmp_path):
    frame = people(600)
    run = valued(written(tmp_path / "data", frame, (0, 300, 300)), tmp_path / "run")
    whole = valued(written(tmp_path / "one", frame), tmp_path / "whole")
    pd.testing.assert_frame_equal(frame_of(run), frame_of(whole), check_exact=True)


def test_a_file_of_one_class_is_valued_with_the_others(tmp_path):
    frame = people(800).sort_values("label", ignore_index=True)
    n_first = int((frame["label"] == frame["label"][0]).sum())
    run = valued(written(tmp_path / "data", frame, (n_first,)), tmp_path / "run")
    found = frame_of(run)
    assert np.isfinite(found["value"]).all()
    assert found["value"].sum() == pytest.approx(run.surplus_, rel=1e-9)


@pytest.mark.parametrize("harm", [truncate, spoil])
def test_a_damaged_file_is_named_and_nothing_is_left_half_written(tmp_path, harm):
    data = written(tmp_path / "data", people(900), (300, 600))
    harm(data / "shard-001.parquet")
    with pytest.raises(
        DataError, match=r"shard-001\.parquet' must be a whole Parquet file"
    ):
        valued(data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("harm", [truncate, spoil])
def test_a_damaged_file_is_left_out_on_request(tmp_path, harm):
    frame = people(900)
    data = written(tmp_path / "data", frame, (300, 600))
    harm(data / "shard-001.parquet")
    run = valued(data, tmp_path / "run", skip_damaged=True)
    rest = written(tmp_path / "rest", frame.drop(index=range(300, 600)), (300,))
    whole = valued(rest, tmp_path / "whole")
    pd.testing.assert_frame_equal(frame_of(run), frame_of(whole), check_exact=True)
    assert any("1 damaged files left out" in note for note in run.about["notes"])


def test_a_run_stopped_by_a_damaged_file_goes_on_once_it_is_mended(tmp_path):
    frame = people(3000)
    data = written(tmp_path / "data", frame, (2100,))
    path = data / "shard-001.parquet"
    whole = path.read_bytes()
    spoil(path)
    with pytest.raises(DataError, match=r"shard-001"):
        valued(data, tmp_path / "run")
    path.write_bytes(whole)
    again, other = valued(data, tmp_path / "run"), valued(data, tmp_path / "other")
    pd.testing.assert_frame_equal(frame_of(again), frame_of(other), check_exact=True)


def add(folder: Path, frame: pd.DataFrame) -> None:
    parquet.write_table(
        pa.Table.from_pandas(frame, preserve_index=False), folder / "z.parquet"
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda f: f.assign(age="old"),
            "column 'age' must be of one kind in all files, got text",
        ),
        (lambda f: f.drop(columns="city"), r"z\.parquet' without 'city'"),
        (lambda f: f.assign(more=1), r"z\.parquet' with a column 'more' more"),
        (lambda f: f.drop(columns="label"), "every file must have the column 'label'"),
    ],
)
def test_files_of_different_columns_are_refused(tmp_path, change, said):
    data = written(tmp_path / "data", people(400))
    add(data, change(people(50)))
    with pytest.raises(DataError, match=said):
        opened(data)


def test_whole_numbers_and_fractions_and_a_column_of_gaps_are_of_one_kind(tmp_path):
    frame = people(600).assign(age=lambda f: f["age"].round())
    data = written(tmp_path / "data", frame)
    add(data, people(100, seed=1).assign(age=np.arange(100), colour=None, income=None))
    run = valued(data, tmp_path / "run")
    assert run.n_rows == 700


def test_a_missing_label_is_told_with_its_row_and_file(tmp_path):
    frame = people(600)
    frame.loc[450, "label"] = None
    data = written(tmp_path / "data", frame, (300,))
    with pytest.raises(DataError, match=r"none at row 450 of the data set, in .*shard-001"):
        valued(data, tmp_path / "run")


@pytest.mark.parametrize("name", ["missing", "none-*.parquet"])
def test_a_name_of_nothing_is_refused(tmp_path, name):
    with pytest.raises(DataError, match="which names none"):
        opened(tmp_path / name)


def test_hidden_files_are_not_data(tmp_path):
    data = written(tmp_path / "data", people(300))
    (data / "_metadata.parquet").write_bytes(b"x")
    (data / ".part.parquet").write_bytes(b"x")
    assert opened(data).n_rows == 300
