"""Tables from files: what is refused in one line, and what is read all the same."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

from hcdv.apps.cli import main
from hcdv.apps.reading import Roles, read_frame, read_sheet, read_validation

RNG = np.random.default_rng(2)
N = 36
QUICK = ["--contexts", "8", "--permutations", "2"]


def names(folder: Path = Path()) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def good(n: int = N, n_classes: int = 3) -> pd.DataFrame:
    y = np.arange(n) % n_classes
    return pd.DataFrame({"a": RNG.normal(size=n) + y, "b": RNG.normal(size=n), "y": y})


def csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def npz(**arrays: np.ndarray) -> bytes:
    np.savez("made.npz", **arrays)
    content = Path("made.npz").read_bytes()
    Path("made.npz").unlink()
    return content


def written(frame: pd.DataFrame, how: str) -> bytes:
    getattr(frame, how)("made")
    content = Path("made").read_bytes()
    Path("made").unlink()
    return content


def stream(frame: pd.DataFrame) -> bytes:
    table = pa.Table.from_pandas(frame)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def value(name: str, content: bytes | None, *options: str, target: str | None = "y"):
    if content is not None:
        Path(name).write_bytes(content)
    asked = [] if target is None else ["--target", target]
    return CliRunner().invoke(
        main, ["value", name, "--out", "run", *asked, *QUICK, *options]
    )


X = RNG.normal(size=(N, 2))
Y = np.arange(N) % 2

# what it is: (file, its content, what the one line must say)
REFUSED = {
    "no rows": ("t.csv", lambda: b"a,b,y\n", "got 0 rows"),
    "one row": ("t.csv", lambda: csv(good(1)), "at least 2 rows"),
    "one class": ("t.csv", lambda: csv(good().assign(y=1)), "one class: 1"),
    "the target alone": ("t.csv", lambda: csv(good()[["y"]]), "at least one column beside 'y'"),
    "labels all different": ("t.csv", lambda: csv(good().assign(y=range(N))), "36 different"),
    "names as labels": (
        "t.csv", lambda: csv(good().assign(y=[f"n{i}" for i in range(N)])), "an id column?",
    ),
    "a label missing": (
        "t.csv", lambda: csv(good().assign(y=[np.nan, *[0, 1] * 17, 1])), "NaN in 1 of 36 rows",
    ),
    "an infinite cell": ("t.csv", lambda: csv(good().replace({"b": {0: 0}}).assign(b=np.inf)),
                         "column 'b' must be finite, got inf at row 0"),
    "a misspelt target": ("t.csv", lambda: csv(good().rename(columns={"y": "Y"})),
                          "got 'y'. Did you mean 'Y'?"),
    "two columns of a name": ("t.csv", lambda: b"a,a,y\n1,2,0\n1,2,1\n", "'a' more than once"),
    "no file": ("t.csv", lambda: None, "'t.csv', which does not exist"),
    "an empty file": ("t.csv", lambda: b"", "empty (0 bytes)"),
    "empty lines": ("t.csv", lambda: b"\n\n", "no columns"),
    "a kind unknown": ("t.xlsx", lambda: b"PK", "must end in .csv"),
    "latin-1": ("t.csv", lambda: "a,b,y\n1,2,0\n1,caf\xe9,1\n".encode("latin-1"),
                "byte 0xe9 in line 3 of 't.csv'. Convert it: iconv -f WINDOWS-1252"),
    "utf-16": ("t.csv", lambda: "a,b,y\n1,2,0\n".encode("utf-16"), "iconv -f UTF-16"),
    "longer rows": ("t.csv", lambda: b"a,y\n1,0\n1,1,5,6\n2,1\n", "Expected 2 fields"),
    "all rows longer": ("t.csv", lambda: b"a,y\n1,0,7\n1,1,7\n2,1,7\n", "t.csv"),
    "an open quote": ("t.csv", lambda: b'a,y\n1,"0\n1,1\n', "EOF inside string"),
    "zero bytes": ("t.csv", lambda: b"a,\0b,y\n1,2,0\n", "zero bytes"),
    "a cut gzip": ("t.csv.gz", lambda: gzip.compress(csv(good()))[:90], "end-of-stream"),
    "no gzip": ("t.csv.gz", lambda: csv(good()), "Not a gzipped file"),
    "a cut parquet": ("t.parquet", lambda: written(good(), "to_parquet")[:-9], "as parquet"),
    "no parquet": ("t.parquet", lambda: csv(good()), "as parquet"),
    "a cut arrow": ("t.arrow", lambda: written(good(), "to_feather")[:700], "as arrow"),
    "no arrow": ("t.arrow", lambda: csv(good()), "as arrow"),
    "a cut npz": ("t.npz", lambda: npz(X=X, y=Y)[:300], "as npz"),
    "no npz": ("t.npz", lambda: b"a,b", "as npz"),
    "objects in an npz": (
        "t.npz", lambda: npz(X=X, y=np.array([0, "a"] * 18, object)), "Object arrays",
    ),
    "an npz without labels": ("t.npz", lambda: npz(X=X, lab=Y), "got 'X', 'lab' in 't.npz'"),
    "one dimension": ("t.npz", lambda: npz(X=X[:, 0], y=Y), "got one dimension of 36"),
    "NaN in an array": (
        "t.npz", lambda: npz(X=np.where(X > 1, np.nan, X), y=Y), "must be finite, got NaN",
    ),
    "lengths that differ": ("t.npz", lambda: npz(X=X, y=Y[:-1]), "for each of 36 rows, got 35"),
    "complex labels": ("t.npz", lambda: npz(X=X, y=Y + 1j), "complex"),
    "two label columns": ("t.npz", lambda: npz(X=X, y=np.eye(N)), "one label a row"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_table_is_refused_in_one_line_and_nothing_is_written(case):
    name, make, says = REFUSED[case]
    done = value(name, make(), target=None if name.endswith("npz") else "y")
    assert done.exit_code == 1, done.output
    assert says in done.stderr
    assert done.stderr.startswith("hcdv: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert set(names()) <= {name}


def test_one_array_saved_alone_is_no_npz():
    np.save("t.npy", X)
    Path("t.npy").rename("t.npz")
    done = value("t.npz", None, target=None)
    assert done.exit_code == 1
    assert "np.savez with names" in done.stderr


def test_a_folder_is_no_table_and_a_close_name_is_offered(here):
    assert "a Parquet file, a folder of them or a pattern" in value(str(here), None).stderr
    Path("digits.csv").write_bytes(b"")
    assert "Did you mean 'digits.csv'?" in value("digit.csv", None).stderr
    assert "no folder 'nowhere'" in value("nowhere/t.csv", None).stderr


ROLES = {
    "a role that is no column": (
        ["--id", "bb"],
        "--id must name a column of 't.csv', got 'bb'",
    ),
    "nothing but roles": (["--id", "a", "--drop", "b"], "at least one column beside"),
    "an unknown column dropped": (["--drop", "c"], "--drop must name a column"),
    "ids that repeat": (["--id", "one"], "ids must be unique, got 1 36 times"),
    "ids with holes": (
        ["--id", "hole"],
        "--id must have no missing cells, got 1 in column",
    ),
    "one group": (["--groups", "one"], "at least 2 groups"),
    "one moment": (["--time", "one"], "at least 2 different moments"),
    "dates in no order": (["--time", "day"], "dates like 2024-01-31, got '3/2/2024'"),
    "weights of text": (["--weight", "day"], "--weight must be numbers"),
    "negative weights": (["--weight", "minus"], "none negative"),
    "more parts than rows": (
        ["--branching", "99", "--leaf-size", "1"],
        "at most 36 for 36 rows",
    ),
    "a metric of other targets": (
        ["--metric", "r2", "--target", "day"],
        "metric must be one of",
    ),
    "images asked of a table": (["--encoder", "conv"], "must be given images"),
}


@pytest.mark.parametrize("case", ROLES)
def test_a_column_in_a_role_it_cannot_have_is_refused(case):
    options, says = ROLES[case]
    frame = good().assign(one=1, minus=-1.0, day="1/2/2024", hole=[None, *range(1, N)])
    frame.loc[::2, "day"] = "3/2/2024"
    done = value("t.csv", csv(frame[["a", "b", "y", *_others(options)]]), *options)
    assert done.exit_code == 1, done.output
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert names() == ["t.csv"]


def _others(options: list[str]) -> list[str]:
    return [name for name in ("one", "minus", "day", "hole") if name in options]


VALIDATION = {
    "a column missing": (good()[["a", "y"]], "missing 'b'"),
    "a column too many": (good().assign(c=1), "not known 'c'"),
    "no target": (good()[["a", "b"]], "--target must name a column of 'v.csv', got 'y'"),
    "a class not seen": (good().assign(y=[7, 0] * 18), "classes seen in training, got 7"),
    "one class": (good().assign(y=1), "at least 2 classes, got one: 1"),
    "no rows": (good()[:0], "got 0 rows"),
    "text for numbers": (good().assign(a="hi"), "column 'a' must hold numbers"),
    "a label missing": (good().assign(y=[np.nan, *[0, 1] * 17, 1]), "NaN in 1 of 36"),
    "an infinite cell": (good().assign(b=-np.inf), "column 'b' must be finite"),
}


@pytest.mark.parametrize("case", VALIDATION)
def test_validation_rows_that_do_not_fit_are_refused(case):
    frame, says = VALIDATION[case]
    frame.to_csv("v.csv", index=False)
    done = value("t.csv", csv(good()), "--validation", "v.csv")
    assert done.exit_code == 1, done.output
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert names() == ["t.csv", "v.csv"]


def test_a_validation_file_that_is_not_there_is_refused_by_its_option():
    done = value("t.csv", csv(good()), "--validation", "v.csv")
    assert "--validation must be a file, got 'v.csv'" in done.stderr


WORKS = {
    "missing cells": (lambda: good().assign(b=[np.nan, 1.0] * 18), "18 missing cells filled"),
    "a constant column": (lambda: good().assign(b=1), "'b' is constant"),
    "repeated rows": (lambda: pd.concat([good(12)] * 3), "more than once"),
    "equal rows": (lambda: good().assign(a=1, b=1), "all rows are identical"),
    "labels of text": (lambda: good().assign(y=["no", "ja"] * 18), "no validation set"),
    "boolean labels": (lambda: good().assign(y=[True, False] * 18), "no validation set"),
    "one row of a class": (lambda: good().assign(y=[1] + [0] * 35), "class 1 has only 1 of 36"),
    "more columns than rows": (
        lambda: pd.DataFrame(RNG.normal(size=(12, 40))).assign(y=[0, 1] * 6), "more columns (40)",
    ),
    "two rows": (lambda: good(2, 2), "only 2 rows"),
    "numbers to predict": (lambda: good().assign(y=RNG.normal(size=N)), "no validation set"),
    "a column of row numbers": (
        lambda: good().reset_index(), "leave it out with --drop 'index'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WORKS)
def test_an_odd_table_is_valued_with_a_note(case):
    make, note = WORKS[case]
    done = value("t.csv", csv(make()))
    assert done.exit_code == 0, done.stderr
    assert note in done.stdout


def test_a_class_absent_from_validation_and_levels_not_seen_are_noted():
    good()[lambda d: d["y"] < 2].assign(c="new").to_csv("v.csv", index=False)
    frame = good().assign(c=["p", "q", "r"] * 12)
    done = value("t.csv", csv(frame), "--validation", "v.csv")
    assert done.exit_code == 0, done.stderr
    assert "validation has no row of class 2" in done.stdout
    assert "column 'c': 24 cells of a level not seen" in done.stdout


FRAME = good()
FORMS = {
    "t.csv": lambda: csv(FRAME),
    "bom.csv": lambda: b"\xef\xbb\xbf" + csv(FRAME),
    "semicolons.csv": lambda: FRAME.to_csv(index=False, sep=";").encode(),
    "tabs.csv": lambda: FRAME.to_csv(index=False, sep="\t").encode(),
    "crlf.csv": lambda: FRAME.to_csv(index=False, lineterminator="\r\n").encode(),
    "t.tsv": lambda: FRAME.to_csv(index=False, sep="\t").encode(),
    "t.csv.gz": lambda: gzip.compress(csv(FRAME)),
    "t.csv.bz2": lambda: bz2.compress(csv(FRAME)),
    "T.CSV": lambda: csv(FRAME),
    "t.parquet": lambda: written(FRAME, "to_parquet"),
    "indexed.parquet": lambda: written(FRAME.set_axis(range(9, 9 + N)), "to_parquet"),
    "t.feather": lambda: written(FRAME, "to_feather"),
    "t.arrow": lambda: stream(FRAME),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_table_reads_the_same(name):
    Path(name).write_bytes(FORMS[name]())
    pd.testing.assert_frame_equal(read_frame(Path(name)), FRAME, check_exact=False)


def test_an_index_with_a_name_is_a_column():
    FRAME.assign(key=range(N)).set_index("key").to_parquet("t.parquet")
    assert list(read_frame(Path("t.parquet")).columns) == ["key", "a", "b", "y"]


def test_cells_can_be_read_as_they_stand():
    Path("t.csv").write_bytes(b"a,b\n1.50,NA\n01,\n")
    frame = read_frame(Path("t.csv"), as_text=True)
    assert frame.to_dict("list") == {"a": ["1.50", "01"], "b": ["NA", ""]}


def test_validation_labels_that_look_like_numbers_stay_text_where_training_has_text():
    Path("t.csv").write_bytes(b"a,y\n1,0\n2,x\n3,1\n")
    Path("v.csv").write_bytes(b"a,y\n1,0\n2,1\n")
    roles = Roles("y")
    taught = read_sheet(Path("t.csv"), roles)
    assert read_validation(Path("v.csv"), roles, taught).y.tolist() == ["0", "1"]


def test_arrays_are_found_by_their_usual_names_and_labels_by_target():
    X_val = X[:4]
    Path("t.npz").write_bytes(
        npz(embeddings=X, lab=Y, ids=np.arange(N), X_val=X_val, y_val=Y[:4])
    )
    sheet = read_sheet(Path("t.npz"), Roles("lab"))
    assert np.array_equal(sheet.X, X)
    assert np.array_equal(sheet.y, Y)
    assert np.array_equal(sheet.id, np.arange(N))
    assert np.array_equal(sheet.X_val, X_val)
    assert np.array_equal(sheet.y_val, Y[:4])


def test_times_become_moments_that_sort():
    Path("t.csv").write_bytes(
        b"a,y,t\n1,0,2024-01-31T10:00:00+02:00\n2,1,2024-01-31T08:30:00Z\n"
    )
    sheet = read_sheet(Path("t.csv"), Roles("y", time="t"))
    assert sheet.time.dtype.kind == "M"
    assert sheet.time[0] < sheet.time[1]
