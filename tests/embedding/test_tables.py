"""Columns of any kind become numbers by what the training rows alone have taught."""

from __future__ import annotations

import datetime as dt
import decimal
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hcdv.embedding.tables import TableEncoder, read_rows
from hcdv.errors import DataError, ParameterError


def encoded(frame, **settings):
    encoder = TableEncoder(**settings).fit(read_rows(frame))
    return encoder, encoder.transform(read_rows(frame))


def column(frame, label, **settings):
    encoder, Z = encoded(frame, **settings)
    return Z[:, encoder.feature_names_out.index(label)]


def mixed(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "pay": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n)),
            "member": rng.random(n) < 0.3,
            "town": rng.choice(["ash", "bow", "cam"], n),
            "size": pd.Categorical(rng.choice(["S", "M"], n), categories=["S", "M", "L"]),
            "when": pd.Timestamp("2024-03-01")
            + pd.to_timedelta(rng.integers(0, 9e6, n), "s"),
            "code": [f"{i % 60:x}" for i in range(n)],
            "same": 7,
        }
    )


def test_a_mixed_frame_goes_in_as_it_is():
    encoder, Z = encoded(mixed())
    assert Z.dtype == np.float64
    assert Z.shape == (200, len(encoder.feature_names_out))
    assert np.isfinite(Z).all()


def test_missing_numbers_take_the_median_and_are_standardised():
    found = column(pd.DataFrame({"a": [1.0, None, 3.0, 8.0]}), "a")
    filled = np.array([1.0, 3.0, 3.0, 8.0])
    assert found == pytest.approx((filled - filled.mean()) / filled.std())


def test_only_training_rows_set_the_scale():
    train, test = read_rows(mixed(seed=0)), read_rows(mixed(seed=1))
    encoder = TableEncoder().fit(train)
    before = encoder.transform(train)
    encoder.transform(test)
    assert (encoder.transform(train) == before).all()
    one_by_one = [encoder.transform(read_rows(test.frame.iloc[[i]])) for i in range(5)]
    assert (np.vstack(one_by_one) == encoder.transform(test)[:5]).all()


def test_constant_columns_become_zero_with_a_note():
    encoder, Z = encoded(pd.DataFrame({"a": [5.0, 5.0], "b": [1.0, 2.0], "s": ["x", "x"]}))
    assert (Z[:, 0] == 0).all()
    assert [note for note in encoder.notes if "constant" in note and "'a'" in note]
    assert [note for note in encoder.notes if "constant" in note and "'s'" in note]


def test_a_column_without_a_single_value_becomes_zero():
    assert (column(pd.DataFrame({"a": [None, None], "b": [1, 2]}), "a") == 0).all()


def test_a_large_mean_does_not_drown_a_small_deviation():
    found = column(pd.DataFrame({"a": 1e9 + np.array([0.0, 1.0, 2.0])}), "a")
    assert found == pytest.approx([-(1.5**0.5), 0, 1.5**0.5], rel=1e-6)


@pytest.mark.parametrize(
    "cells",
    [
        [True, False, True],
        pd.array([True, False, True], dtype="boolean"),
        np.array([True, False, True], dtype=object),
    ],
)
def test_booleans_are_zero_and_one(cells):
    assert column(pd.DataFrame({"b": cells}), "b").tolist() == [1, 0, 1]


def test_missing_booleans_take_the_commoner_value():
    frame = pd.DataFrame({"b": pd.array([True, True, None, False], dtype="boolean")})
    assert column(frame, "b").tolist() == [1, 1, 1, 0]


def test_few_valued_integers_stay_one_numeric_column():
    encoder, _ = encoded(pd.DataFrame({"a": [0, 1, 2, 1]}))
    assert encoder.feature_names_out == ["a"]


def test_levels_get_a_column_each_and_missing_is_a_level():
    frame = pd.DataFrame({"s": ["x", None, "y", "x"]})
    encoder, Z = encoded(frame)
    assert encoder.feature_names_out == ["s=x", "s=y", "s=(missing)"]
    assert Z.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]


def test_rare_and_unseen_levels_share_other():
    frame = pd.DataFrame({"s": ["x"] * 60 + ["y"] * 60 + ["rare"]})
    encoder, Z = encoded(frame)
    assert encoder.feature_names_out == ["s=x", "s=y", "s=(other)"]
    assert Z[-1].tolist() == [0, 0, 1]
    unseen = encoder.transform(read_rows(pd.DataFrame({"s": ["new", "x"]})))
    assert unseen.tolist() == [[0, 0, 1], [1, 0, 0]]


def test_a_level_not_seen_where_nothing_was_pooled_is_none_of_them_and_is_noted():
    encoder, _ = encoded(pd.DataFrame({"s": ["x", "y"]}))
    assert (
        encoder.transform(read_rows(pd.DataFrame({"s": ["z", None]}))).tolist()
        == [[0, 0]] * 2
    )
    assert any("2 cells of a level not seen" in note for note in encoder.notes)


def test_a_level_is_the_same_whether_text_a_category_or_a_whole_float():
    frame = pd.DataFrame({"c": pd.Categorical([1, 2, 1])})
    encoder, Z = encoded(frame)
    assert encoder.feature_names_out == ["c=1", "c=2"]
    for again in (["1", "2", "1"], pd.Categorical([1.0, 2.0, 1.0])):
        assert (encoder.transform(read_rows(pd.DataFrame({"c": again}))) == Z).all()


def test_unused_categories_get_no_column():
    encoder, _ = encoded(pd.DataFrame({"c": pd.Categorical(["S"], categories=["S", "L"])}))
    assert encoder.feature_names_out == ["c=S"]


def test_too_many_levels_are_hashed_the_same_way_each_time():
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(500)]})
    encoder, Z = encoded(frame, n_hash=16)
    assert Z.shape == (500, 16)
    assert (np.abs(Z).sum(axis=1) == 1).all()
    assert set(np.unique(Z)) == {-1.0, 0.0, 1.0}
    assert abs(Z.sum()) < 100  # signs of both kinds
    backwards = encoder.transform(read_rows(frame.iloc[::-1]))
    assert (backwards[::-1] == Z).all()


def test_the_hash_does_not_change_between_processes():
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(40)]})
    _, Z = encoded(frame, max_levels=8, n_hash=8)
    expected = [-4, -3, 3, 2]
    spots = [int(np.flatnonzero(row)[0]) * int(row.sum()) for row in Z[:4]]
    assert spots == expected


def test_a_long_tail_of_rare_levels_is_pooled_rather_than_hashed():
    often = [f"l{i}" for i in range(5)] * 400
    frame = pd.DataFrame({"s": often + [f"once{i}" for i in range(50)]})
    encoder, _ = encoded(frame)
    assert len(encoder.feature_names_out) == 6


def test_dates_become_days_and_the_parts_that_vary():
    frame = pd.DataFrame({"d": pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-04"])})
    encoder, Z = encoded(frame)
    days = np.array([-1.0, 0.0, 2.0])
    assert Z[:, 0] == pytest.approx((days - days.mean()) / days.std())
    parts = [
        "d (weekday 0)",
        "d (weekday 1)",
        "d (weekday 3)",
    ]  # a Monday, one month, no hour
    assert encoder.feature_names_out == ["d (days)", *parts]
    assert Z[:, 1:].tolist() == np.eye(3).tolist()


@pytest.mark.parametrize(
    "cells",
    [
        [dt.date(2024, 1, 1), None, dt.date(2024, 3, 1)],
        [
            dt.datetime(2024, 1, 1, tzinfo=dt.UTC),
            None,
            dt.datetime(2024, 3, 1, tzinfo=dt.UTC),
        ],
        ["2024-01-01", None, "2024-03-01T00:00:00"],
        pd.PeriodIndex(["2024-01-01", None, "2024-03-01"], freq="D"),
    ],
)
def test_dates_of_every_make_read_alike_with_missing_ones_at_the_median(cells):
    encoder, Z = encoded(pd.DataFrame({"d": cells}))
    assert "d (days)" in encoder.feature_names_out
    assert Z[1, 0] == max(Z[0, 0], Z[1, 0])
    assert (Z[1, 1:] == 0).all()
    assert any("1 missing cells filled" in note for note in encoder.notes)


def test_text_that_only_begins_with_a_date_is_text():
    encoder, _ = encoded(pd.DataFrame({"s": ["2024-01-01", "2024-01-01 or later"]}))
    assert all(label.startswith("s=") for label in encoder.feature_names_out)


def test_durations_decimals_and_nullable_integers_are_numbers():
    frame = pd.DataFrame(
        {
            "t": pd.to_timedelta([1, 2, 3], "D"),
            "m": [decimal.Decimal("1.5"), decimal.Decimal("2.5"), None],
            "i": pd.array([1, None, 3], dtype="Int64"),
        }
    )
    encoder, Z = encoded(frame)
    assert encoder.feature_names_out == ["t", "m", "i"]
    assert Z[:, 0] == pytest.approx([-(1.5**0.5), 0, 1.5**0.5])


def test_filled_cells_are_counted_once_and_new_holes_are_told():
    frame = pd.DataFrame({"a": [1.0, None, 2.0], "b": [1.0, 2.0, 3.0]})
    encoder, _ = encoded(frame)
    encoder.transform(read_rows(frame))
    assert sum("missing" in note for note in encoder.notes) == 1
    encoder.transform(read_rows(pd.DataFrame({"a": [1.0], "b": [None]}).astype(float)))
    encoder.transform(read_rows(frame))  # a's holes were told of the first time
    told = [note for note in encoder.notes if "missing" in note]
    assert len(told) == 2
    assert "complete until now: 'b'" in told[1]


def test_very_wide_and_very_short_tables_work_with_a_note():
    encoder, Z = encoded(pd.DataFrame(np.random.default_rng(0).normal(size=(4, 300))))
    assert Z.shape == (4, 300)
    assert any("only 4 rows" in note for note in encoder.notes)
    assert any("more columns (300) than rows (4)" in note for note in encoder.notes)
    assert encoded(pd.DataFrame({"a": [1.0]}))[1].tolist() == [[0.0]]


@pytest.mark.parametrize("name", ["age", "town"])
def test_columns_that_differ_from_training_are_named(name):
    encoder = TableEncoder().fit(read_rows(mixed()))
    with pytest.raises(DataError, match=f"missing '{name}'"):
        encoder.transform(read_rows(mixed().drop(columns=name)))
    with pytest.raises(DataError, match="not known 'extra'"):
        encoder.transform(read_rows(mixed().assign(extra=1)))


def test_the_order_of_columns_does_not_matter():
    encoder, Z = encoded(mixed())
    assert (encoder.transform(read_rows(mixed().iloc[:, ::-1])) == Z).all()


def test_infinity_in_a_frame_names_the_column_and_row():
    with pytest.raises(DataError, match=r"column 'a' must be finite, got inf at row 1"):
        encoded(pd.DataFrame({"a": [1.0, np.inf]}))


def test_text_where_training_had_numbers_names_the_column():
    encoder = TableEncoder().fit(read_rows(pd.DataFrame({"a": [1.0, 2.0]})))
    with pytest.raises(DataError, match="column 'a' must hold numbers"):
        encoder.transform(read_rows(pd.DataFrame({"a": ["x"]})))


def test_numbers_too_large_to_square_are_refused_by_name():
    with pytest.raises(DataError, match="column 'a' must lie within"):
        encoded(pd.DataFrame({"a": [1.0, 1e200]}))


def test_arrays_pass_through_and_keep_their_shape():
    X = np.arange(6.0).reshape(3, 2)
    encoder = TableEncoder().fit(read_rows(X))
    assert encoder.transform(read_rows(X)) is X
    with pytest.raises(
        DataError, match=r"rows of shape \(2,\), as in training, got \(3,\)"
    ):
        encoder.transform(read_rows(np.ones((1, 3))))
    with pytest.raises(DataError, match="kind seen in training"):
        encoder.transform(read_rows(pd.DataFrame({"a": [1]})))


def test_transform_before_fit_says_so():
    with pytest.raises(DataError, match="fitted before"):
        TableEncoder().transform(read_rows([[1.0]]))


@pytest.mark.parametrize("settings", [{"max_levels": 0}, {"n_hash": 1}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ParameterError, match="must be at least"):
        TableEncoder(**settings)


@pytest.mark.parametrize("table", [mixed(), np.ones((3, 2)), np.ones((3, 4, 4))])
def test_what_was_learnt_survives_json(table):
    rows = read_rows(table)
    encoder = TableEncoder(max_levels=5, n_hash=8).fit(rows)
    Z = encoder.transform(rows)
    settings, arrays = encoder.state()
    again = TableEncoder.from_state(json.loads(json.dumps(settings)), arrays)
    assert (again.transform(rows) == Z).all()
    assert again.feature_names_out == encoder.feature_names_out
    assert again.notes == encoder.notes


CELLS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-1e6, 1e6), st.text(max_size=3)
)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12))
def test_any_cells_at_all_give_finite_numbers_that_do_not_depend_on_row_order(cells):
    frame = pd.DataFrame(cells, columns=["a", "b"], dtype=object)
    encoder, Z = encoded(frame)
    assert np.isfinite(Z).all()
    backwards, Z_backwards = encoded(frame.iloc[::-1])
    assert encoder.feature_names_out == backwards.feature_names_out
    assert Z_backwards[::-1] == pytest.approx(Z)
