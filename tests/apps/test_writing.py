"""Selected rows in files: the table's own, or numbers and values; never over another file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hcdv import HCDV
from hcdv.apps.cli import main
from hcdv.apps.reading import read_frame

N = 30
TEXT = "a,b,y\n" + "".join(f"{i}.50,NA{i},{'01' if i % 2 else '1e0'}\n" for i in range(N))


def names(folder: Path = Path()) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    X = np.random.default_rng(1).normal(size=(N, 2))
    model = HCDV(n_contexts=8, n_permutations=2, random_state=0).fit(X, np.arange(N) % 2)
    return model.save(folder)


@pytest.fixture
def kept(saved) -> list[int]:
    return HCDV.load(saved).select(0.2).tolist()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TEXT)
    return tmp_path


def select(saved: Path, *options: str):
    return CliRunner().invoke(main, ["select", str(saved), "--fraction", "0.2", *options])


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".arrow", ".feather"])
def test_without_the_table_rows_are_written_with_their_values(suffix, saved, kept):
    done = select(saved, "-o", f"kept{suffix}")
    assert done.exit_code == 0, done.stderr
    assert done.stdout == ""
    frame = read_frame(Path(f"kept{suffix}"))
    assert frame["row"].tolist() == kept
    assert np.allclose(frame["value"], HCDV.load(saved).values_[kept], rtol=1e-15)


def test_a_text_file_holds_row_numbers_alone(saved, kept):
    select(saved, "-o", "kept.txt")
    assert Path("kept.txt").read_text() == "".join(f"{row}\n" for row in kept)


def test_rows_of_a_csv_keep_every_cell_as_it_stood(saved, kept):
    assert select(saved, "-o", "kept.csv", "--table", "t.csv").exit_code == 0
    head, *lines = TEXT.splitlines()
    assert Path("kept.csv").read_text().splitlines() == [
        head,
        *(lines[row] for row in kept),
    ]


def test_rows_of_a_csv_become_columns_of_a_kind_in_parquet(saved, kept):
    select(saved, "-o", "kept.parquet", "--table", "t.csv")
    frame = pd.read_parquet("kept.parquet")
    assert frame["a"].tolist() == [row + 0.5 for row in kept]


REFUSED = {
    "a file that is there": (["-o", "t.csv"], "-o must be new, got 't.csv', which exists"),
    "the table itself": (["-o", "t.csv", "--table", "t.csv"], "which exists"),
    "a kind unknown": (["-o", "kept.xlsx"], "-o must end in .csv"),
    "no kind": (["-o", "kept"], "-o must end in .csv"),
    "a folder that is not there": (["-o", "no/kept.csv"], "'no' does not exist"),
    "no table": (["-o", "kept.csv", "--table", "x.csv"], "--table must be a file"),
    "another table": (["-o", "kept.csv", "--table", "short.csv"], "of 30 rows, got 1 rows"),
    "arrays for a table": (
        ["-o", "kept.csv", "--table", "x.npz"],
        "--table must have columns",
    ),
    "too few to keep one": (["--fraction", "0.001"], "at least one row"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_written_where_it_cannot_or_must_not_be(case, saved):
    options, says = REFUSED[case]
    Path("short.csv").write_text("a,b,y\n1,2,3\n")
    before = names()
    done = select(saved, *options)
    assert done.exit_code == 1
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert names() == before
    assert Path("t.csv").read_text() == TEXT


def test_a_file_on_a_full_disk_is_not_half_written(saved, monkeypatch):
    from hcdv.store import folder

    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder, "_write", full)
    done = select(saved, "-o", "kept.csv")
    assert done.exit_code == 1
    assert "No space left on device" in done.stderr
    assert names() == ["t.csv"]
