"""Rows as they were given lie in the run folder, and leave it when they are forgotten."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from fits import quick
from hcdv import HCDV, DataError, StoreError
from hcdv.given import Part
from hcdv.store import rows as store_rows
from hcdv.store import updating

N = 60
FRAME = pd.DataFrame({
    "x": np.random.default_rng(0).normal(size=N),
    "who": [f"person-{n}" for n in range(N)],
    "mixed": [n if n % 2 else f"m{n}" for n in range(N)],
})  # fmt: skip
Y = np.arange(N) % 2


@pytest.fixture
def run(tmp_path):
    return quick().fit(FRAME[:50], Y[:50]).save(tmp_path / "run")


def held(run) -> str:
    """All that the run folder says of its rows."""
    parts = [store_rows.part_at(path) for path in sorted((run / "rows").glob("*.parquet"))]
    return " ".join(" ".join(part.table["who"]) for part in parts)


def test_rows_come_back_with_the_run(run):
    again = HCDV.load(run)
    found = again.given_.rows(again.ids_).table
    assert found["who"].tolist() == FRAME["who"][:50].tolist()
    assert found["mixed"].tolist() == FRAME["mixed"][:50].astype(str).tolist()


def test_rows_are_left_out_on_request(tmp_path):
    run = quick().fit(FRAME, Y).save(tmp_path / "run", rows=False)
    assert not (run / "rows").exists()
    assert HCDV.load(run).given_ is None


def test_rows_that_come_later_are_there_too(run):
    with updating(run) as writer:
        writer.commit(writer.model.partial_fit(FRAME[50:], Y[50:]))
        writer.commit(writer.model.relabel([0], [1]))
    again = HCDV.load(run)
    assert again.given_.rows(again.ids_).table["who"].tolist() == FRAME["who"].tolist()
    assert sorted(path.name for path in (run / "rows").iterdir()) == [
        "000000.parquet", "000001.parquet",
    ]  # fmt: skip


def test_forgotten_rows_are_in_no_file(run):
    with updating(run) as writer:
        writer.commit(writer.model.partial_fit(FRAME[50:], Y[50:]))
        writer.commit(writer.model.forget([3, 52]))
    assert "person-3 " not in held(run)
    assert "person-52" not in held(run)
    assert "person-53" in held(run)
    again = HCDV.load(run)
    assert len(again.given_.rows(again.ids_).ids) == 58


def test_forgotten_rows_go_even_if_the_power_fails_after_the_commit(run, monkeypatch):
    from hcdv.store import writer as store_writer

    with monkeypatch.context() as patch, updating(run) as writer:
        patch.setattr(store_writer, "settle", lambda *_, **__: None)
        writer.commit(writer.model.forget([3]))
    assert "person-3 " in held(run)
    with updating(run):
        pass
    assert "person-3 " not in held(run)


def test_rows_stay_if_the_forgetting_is_not_committed(run, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    def forget():
        with updating(run) as writer:
            monkeypatch.setattr("hcdv.store.writer.insert", full)
            writer.commit(writer.model.forget([3]))

    with pytest.raises(StoreError, match="disk is full"):
        forget()
    monkeypatch.undo()
    with updating(run) as writer:
        writer.commit(writer.model.refresh())
    assert "person-3 " in held(run)


def test_rows_out_of_age_leave_with_the_next_refresh(tmp_path):
    run = quick(max_rows=50).fit(FRAME[:50], Y[:50]).save(tmp_path / "run")
    with updating(run) as writer:
        writer.commit(writer.model.partial_fit(FRAME[50:], Y[50:]))
        assert "person-3 " in held(run)
        writer.commit(writer.model.refresh())
    assert "person-3 " not in held(run)
    again = HCDV.load(run)
    assert again.given_.rows(again.ids_).table["who"].tolist() == FRAME["who"][10:].tolist()


def test_an_id_that_comes_again_after_it_was_forgotten_is_kept(run):
    with updating(run) as writer:
        writer.commit(writer.model.forget([3]))
        writer.commit(writer.model.partial_fit(FRAME[55:56], Y[55:56], ids=[3]))
        writer.commit(writer.model.refresh())
    assert HCDV.load(run).given_.rows(np.array([3])).table["who"].tolist() == ["person-55"]


def test_images_come_back_pixel_by_pixel(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (7, 4, 5, 3)).astype(np.uint8)
    path = tmp_path / "some.parquet"
    path.write_bytes(store_rows.bytes_of(Part(np.array(list("abcdefg")), images)))
    again = store_rows.part_at(path)
    assert np.array_equal(again.table, images)
    assert again.ids.tolist() == list("abcdefg")


def test_a_damaged_file_is_named_with_the_way_out(run):
    path = run / "rows" / "000000.parquet"
    content = bytearray(path.read_bytes())
    content[40] ^= 255
    path.write_bytes(content)
    again = HCDV.load(run)
    with pytest.raises(
        StoreError, match=r"000000\.parquet' must hold rows .* Delete the file"
    ):
        again.given_.rows(again.ids_)
    path.unlink()
    assert HCDV.load(run).given_ is None


def test_ids_that_were_never_there_are_refused(run):
    with pytest.raises(DataError, match="got 99"):
        HCDV.load(run).given_.rows(np.array([99]))


def test_what_kind_the_rows_are_is_known_without_reading_them(run, monkeypatch):
    monkeypatch.setattr(store_rows, "part_at", lambda path: pytest.fail("rows were read"))
    with updating(run) as writer:
        assert writer.model.given_.kind == "table"
        writer.commit(writer.model.partial_fit(FRAME[50:], Y[50:]))
