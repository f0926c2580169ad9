"""From any table to a case: what is refused, what is noted, and what row order means."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy import sparse
from torch.utils.data import TensorDataset

from fits import quick, two_classes
from hcdv.errors import DataError
from hcdv.intake import EncoderSettings, build_case, read_table, row_keys

X, Y = two_classes(40, 4)
X_VAL, Y_VAL = two_classes(12, 4, seed=1)
FRAME = pd.DataFrame(X, columns=list("abcd"))
FRAME_VAL = pd.DataFrame(X_VAL, columns=list("abcd"))


def with_cell(table, value):
    table = table.copy()
    table[3, 1] = value
    return table


REFUSED = {
    # what: (arguments of fit, what the message says of it)
    "an empty table": ((np.zeros((0, 3)), []), "at least one row.*got 0 rows"),
    "no columns": ((np.zeros((12, 0)), Y[:12]), r"0 feature\(s\) \(shape=\(12, 0\)\)"),
    "one row": ((X[:1], Y[:1]), "at least 2 rows, got n_samples = 1"),
    "one dimension": ((X[:, 0], Y), r"one dimension of 40.*reshape\(-1, 1\)"),
    "complex numbers": ((X + 1j, Y), "complex128.*Complex data not supported"),
    "a missing cell of an array": ((with_cell(X, np.nan), Y), "NaN at row 3, column 1.*DataFrame"),
    "infinity": ((with_cell(X, np.inf), Y), "infinity at row 3, column 1"),
    "infinity in a frame": ((pd.DataFrame(with_cell(X, np.inf)), Y), "got inf at row 3"),
    "numbers whose squares overflow": ((X * 1e300, Y), "square overflows. Rescale"),
    "fewer labels than rows": ((X, Y[:-1]), "one label for each of 40 rows, got 39"),
    "a validation set without labels": ((X, Y, X_VAL), "y_val must hold a label"),
    "labels without a validation set": ((X, Y, None, Y_VAL), "X_val must be given with y_val"),
    "fewer validation labels": ((X, Y, X_VAL, Y_VAL[:-1]), "y_val.*each of 12 rows, got 11"),
    "a validation set of one class": ((X, Y, X_VAL, Y_VAL * 0), "y_val.*2 classes, got one: 0"),
    "an unknown class": ((X, Y, X_VAL, Y_VAL * 7), "classes seen in training, got 7"),
    "fewer validation columns": ((X, Y, X_VAL[:, :3], Y_VAL), r"X_val: .*\(4,\).*got \(3,\)"),
    "a validation set without a column": (
        (FRAME, Y, FRAME_VAL.drop(columns="d"), Y_VAL), "X_val: .*missing 'd'",
    ),
    "a validation set with a column more": (
        (FRAME, Y, FRAME_VAL.assign(e=1), Y_VAL), "X_val: .*not known 'e'",
    ),
    "a frame judged by an array": ((FRAME, Y, X_VAL, Y_VAL), "X_val: .*frame.*got array"),
    "infinity in the validation set": (
        (X, Y, with_cell(X_VAL, np.inf), Y_VAL),
        "X_val: .*infinity",
    ),
    "validation numbers that are all one": (
        (X, X[:, 0], X_VAL, np.full(12, 0.5)), "y_val must vary, got 0.5 in all 12 rows",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "says"), REFUSED.values(), ids=REFUSED)
def test_data_that_cannot_be_valued_are_refused(given, says):
    with pytest.raises(DataError, match=says):
        quick().fit(*given)


BESIDE = {
    "ids that repeat": ({"ids": [1, 1, *range(38)]}, "ids must be unique, got 1 3 times"),
    "text ids that repeat": (
        {"ids": ["a", "a", *"bcd"] + list("efghi") * 7},
        "ids must be unique",
    ),
    "too few ids": ({"ids": [1, 2]}, r"ids must have one entry for each of 40 rows"),
    "a missing id": (
        {"ids": [None, *range(39)]},
        "ids must have no missing entries, got 1",
    ),
    "a missing number as id": ({"ids": [np.nan, *range(39)]}, "no missing entries"),
    "negative weights": (
        {"sample_weight": -np.ones(40)},
        "none negative.*got values from -1.0",
    ),
    "weights of zero": ({"sample_weight": np.zeros(40)}, "not all zero"),
    "missing weights": ({"sample_weight": np.full(40, np.nan)}, "must be finite"),
    "weights of text": (
        {"sample_weight": ["much"] * 40},
        "sample_weight must hold numbers",
    ),
    "too few weights": ({"sample_weight": np.ones(3)}, r"each of 40 rows.*\(3,\)"),
    "weights of two dimensions": ({"sample_weight": np.ones((40, 2))}, "one-dimensional"),
    "too few groups": ({"groups": np.zeros(3)}, r"groups must have one entry.*\(3,\)"),
    "one group": ({"groups": np.zeros(40)}, "at least 2 groups.*got one: 0.0"),
    "a missing group": (
        {"groups": ["a", None] * 20},
        "groups must have no missing entries, got 20",
    ),
    "a group column that is not there": (
        {"groups": "e"},
        "name a column of X, got 'e'; X has 'a'",
    ),
}


@pytest.mark.parametrize(("given", "says"), BESIDE.values(), ids=BESIDE)
def test_what_comes_with_the_rows_is_refused_where_it_does_not_fit_them(given, says):
    with pytest.raises(DataError, match=says):
        quick().fit(FRAME, Y, **given)


def test_a_column_is_not_found_in_a_table_without_names():
    with pytest.raises(DataError, match="X has no named columns"):
        quick(time="day").fit(X, Y)


@pytest.mark.parametrize("encoder", ["linear", "mlp"])
def test_unknown_classes_are_refused_before_an_encoder_is_fitted(encoder, monkeypatch):
    from hcdv.embedding.linear import LinearContrastive
    from hcdv.embedding.neural import NeuralEncoder

    for kind in (LinearContrastive, NeuralEncoder):
        monkeypatch.setattr(kind, "fit", lambda *_: pytest.fail("work was started"))
    with pytest.raises(DataError, match="classes seen in training"):
        quick(encoder=encoder).fit(X, Y, X_VAL, Y_VAL * 7)


ACCEPTED = {
    "float32": lambda: (X.astype(np.float32), Y),
    "small integers": lambda: ((X * 10).astype(np.int8), Y),
    "lists": lambda: (X.tolist(), Y.tolist()),
    "pandas": lambda: (FRAME, pd.Series(Y)),
    "pandas, nullable": lambda: (FRAME.convert_dtypes(), pd.Series(Y, dtype="Int64")),
    "polars": lambda: (pl.DataFrame(X), pl.Series(Y)),
    "pyarrow": lambda: (pa.table({"a": X[:, 0], "b": X[:, 1]}), pa.chunked_array([Y])),
    "scipy csr": lambda: (sparse.csr_matrix(X), Y, sparse.csc_array(X_VAL), Y_VAL),
    "scipy coo": lambda: (sparse.coo_array(X), Y),
    "a torch tensor": lambda: (torch.tensor(X), torch.tensor(Y)),
    "a torch data set": lambda: (TensorDataset(torch.tensor(X), torch.tensor(Y)), None),
    "torch data sets": lambda: (
        TensorDataset(torch.tensor(X), torch.tensor(Y)), None,
        TensorDataset(torch.tensor(X_VAL), torch.tensor(Y_VAL)), None,
    ),
    "images": lambda: (np.random.default_rng(0).random((40, 4, 4, 3)), Y),
    "dates": lambda: (FRAME.assign(day=pd.date_range("2020-01-01", periods=40)), Y),
    "tiny numbers": lambda: (X * 1e-300, Y),
}  # fmt: skip


@pytest.mark.parametrize("given", ACCEPTED.values(), ids=ACCEPTED)
def test_any_kind_of_table_is_valued(given):
    v = quick().fit(*given())
    assert v.values_.shape == (40,)
    assert np.isfinite(v.values_).all()
    assert v.checks_["sum_error"] <= 1e-9


NOTED = {
    # what: (arguments of fit, the note)
    "missing cells": (
        (FRAME.mask(FRAME > 1.2), Y),
        f"{int((FRAME > 1.2).to_numpy().sum())} missing cells filled",
    ),
    "a constant column": ((FRAME.assign(e=1.0), Y), "column 'e' is constant"),
    "constant columns of an array": (
        (np.c_[X, np.ones((40, 2))], Y), "2 columns are constant and carry nothing: 4, 5",
    ),
    "a column that is all missing": ((FRAME.assign(e=np.nan), Y), "40 missing cells filled"),
    "repeated rows": (
        (np.r_[X, X[:6]], np.r_[Y, 1 - Y[:2], Y[2:6]]),
        "12 rows are there more than once, 4 of them with different labels",
    ),
    "repeated sparse rows": (
        (sparse.csr_array(np.r_[X, X[:6]]), np.r_[Y, Y[:6]]), "12 rows are there more than once, 0",
    ),
    "nothing but one row": ((np.repeat(X[:1], 40, axis=0), Y), "all rows are identical"),
    "nothing but zeros": ((np.zeros((40, 3)), Y), "all rows are identical"),
    "one example of a class": ((X, np.arange(40) == 7), "class True has only 1 of 40 rows"),
    "a rare class": (
        (X, np.arange(40) > 37), 'class True has 5.0% of the rows, which move loss little',
    ),
    "text for labels": ((X, np.array(["no", "yes"])[Y]), "labels are text: 2 classes, 'no', 'yes'"),
    "booleans for labels": ((X, Y > 0), "labels are booleans: 2 classes, False, True"),
    "a wide table": ((np.random.default_rng(0).normal(size=(50, 3000)), np.arange(50) % 2), "PCA"),
    "a very short table": ((X[:4], [0, 1, 0, 1]), "only 4 rows"),
    "two rows": ((X[:2], [0, 1]), "only 2 rows"),
    "a class that no validation row has": (
        (X, np.arange(40) % 3, X_VAL, Y_VAL), "validation has no row of class 2",
    ),
    "a level not seen in training": (
        (FRAME.assign(s=["x", "y"] * 20), Y, FRAME_VAL.assign(s=["x", "w"] * 6), Y_VAL),
        "column 's': 6 cells of a level not seen",
    ),
    "no validation set": ((X, Y), "no validation set: folds of the training rows"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "note"), NOTED.values(), ids=NOTED)
def test_odd_data_are_valued_and_the_oddity_is_noted(given, note):
    v = quick().fit(*given)
    assert any(note in told for told in v.notes_), v.notes_
    assert np.isfinite(v.values_).all()
    assert np.isfinite(v.stderr_).all()
    assert v.checks_["sum_error"] <= 1e-9


def test_plain_data_get_no_note_on_repeats_constants_or_labels():
    notes = " ".join(quick().fit(X, Y, X_VAL, Y_VAL).notes_)
    for what in ("more than once", "constant", "labels are", "of the rows"):
        assert what not in notes


def test_no_other_metric_is_proposed_where_every_class_counts_alike():
    notes = quick(metric="balanced_accuracy").fit(X, np.arange(40) > 37).notes_
    assert not any("of the rows" in note for note in notes)


@pytest.mark.parametrize("metric", ["accuracy", "balanced_accuracy", "auc", "loss"])
@pytest.mark.parametrize("validated", [False, True])
def test_one_example_of_a_class_is_valued_under_every_metric(metric, validated):
    y = (np.arange(40) == 7).astype(int)
    given = (X_VAL, (np.arange(12) == 7).astype(int)) if validated else ()
    v = quick(metric=metric).fit(X, y, *given)
    assert np.isfinite(v.values_).all()
    assert v.checks_["sum_error"] <= 1e-9


# Order of rows.


@pytest.mark.parametrize("names", ["numbers", "text"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"utility": "knn"}, {"encoder": "linear"}, {"method": "winter"}],
    ids=str,
)
def test_the_order_of_rows_with_ids_does_not_matter_to_the_last_bit(names, settings):
    ids = np.arange(40) * 3 + 1
    ids = ids if names == "numbers" else np.array([f"row {i}" for i in ids])
    order = np.random.default_rng(0).permutation(40)
    weight, groups = np.arange(1.0, 41.0), np.arange(40) // 5
    weight = None if "knn" in settings.values() else weight
    a = quick(**settings).fit(X, Y, ids=ids, sample_weight=weight, groups=groups)
    moved = None if weight is None else weight[order]
    b = quick(**settings).fit(
        X[order], Y[order], ids=ids[order], sample_weight=moved, groups=groups[order]
    )
    assert np.array_equal(a.values_[order], b.values_)
    assert np.array_equal(a.stderr_[order], b.stderr_)
    assert np.array_equal(b.ids_, ids[order])
    assert a.coalitions_.equals(b.coalitions_)
    assert set(order[b.select(0.3)]) == set(a.select(0.3))
    assert order[b.suspects()["row"]].tolist() == a.suspects()["row"].tolist()
    assert np.array_equal(a.tree_.leaf_of_row[order], b.tree_.leaf_of_row)


def test_rows_are_keyed_by_their_ids_alone():
    ids = np.array(["b", "a", "c"])
    assert np.array_equal(row_keys(ids)[::-1], row_keys(ids[::-1]))
    assert len(np.unique(row_keys(np.arange(1000)))) == 1000


def test_weights_and_groups_can_be_columns_of_numbers_or_text():
    named = FRAME.assign(seller=["a", "b", "c", "d"] * 10)
    by_name = quick(groups="seller").fit(named, Y)
    by_array = quick().fit(named, Y, groups=named["seller"].to_numpy())
    assert np.array_equal(by_name.values_, by_array.values_)


def test_one_weight_for_all_is_no_weight():
    assert np.allclose(
        quick().fit(X, Y, sample_weight=2.0).values_, quick().fit(X, Y).values_, atol=1e-9
    )


def test_a_row_of_weight_zero_teaches_nothing():
    weight = np.ones(40)
    weight[[3, 9]] = 0.0
    # utility alone: consistency judges all rows, taught or not
    v = quick(branching="flat").fit(X, Y, X_VAL, Y_VAL, sample_weight=weight)
    flat = v.parts_["utility"][[3, 9]]
    assert flat[0] == pytest.approx(flat[1], abs=1e-12)
    other = quick(branching="flat").fit(
        X, np.where(weight, Y, 1 - Y), X_VAL, Y_VAL, sample_weight=weight
    )
    assert np.allclose(v.parts_["utility"], other.parts_["utility"], atol=1e-12)


def case_of(X, y, encoder="auto", seed=0, **given):
    table = read_table(X, y, **given)
    return build_case(table, EncoderSettings(encoder), None, None, seed, 1).case


def test_folds_judge_rows_they_do_not_hold_and_each_row_once():
    case = case_of(X, Y)
    held = np.concatenate([judge.points.key for judge in case.judges])
    assert sorted(held) == sorted(case.points.key)
    for k, judge in enumerate(case.judges):
        assert not np.isin(case.points.key[case.taught(judge)], judge.points.key).any()
        assert np.array_equal(
            case.points.fold == k, np.isin(case.points.key, judge.points.key)
        )


def test_vectors_are_of_length_one_and_a_zero_row_stays_zero():
    rows = X.copy()
    rows[5] = 0.0
    v = quick(encoder="identity").fit(rows, Y)
    length = np.linalg.norm(v.embedding_, axis=1)
    assert np.allclose(np.delete(length, 5), 1.0)
    assert length[5] == 0.0
