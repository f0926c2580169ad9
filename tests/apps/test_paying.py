"""payout and gaps on the command line: whose rows, from which table, and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hcdv.apps.cli import main

N = 90
QUICK = ["--contexts", "8", "--permutations", "2", "--leaf-size", "16", "--branching", "3",
         "--utility", "linear", "--jobs", "1", "--quiet", "--metric", "accuracy"]  # fmt: skip


def hcdv(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def table(n=N, first=0):
    rng = np.random.default_rng([3, first])
    y = np.arange(n) % 3
    frame = pd.DataFrame({"a": rng.normal(size=n) + 2 * y, "b": rng.normal(size=n), "y": y})
    keys = [f"k{first + i:04}" for i in range(n)]
    return frame.assign(key=keys, seller=np.array(["007", "ann"])[np.arange(n) % 2])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Runs of one table: its seller a feature, dropped, and with ids."""
    place = tmp_path_factory.mktemp("paying")
    table().to_csv(place / "t.csv", index=False)
    base = ("value", place / "t.csv", "--target", "y", *QUICK)
    assert hcdv(*base, "--drop", "key", "--out", place / "kept").exit_code == 0
    dropped = ("--drop", "seller", "--drop", "key")
    assert hcdv(*base, *dropped, "--out", place / "dropped").exit_code == 0
    ids = ("--id", "key", "--drop", "seller")
    assert hcdv(*base, *ids, "--out", place / "ids").exit_code == 0
    return place


def amounts(done):
    assert done.exit_code == 0, done.stderr
    return {
        one["seller"]: Decimal(one["amount"]) for one in json.loads(done.stdout)["sellers"]
    }


@pytest.mark.parametrize("run", ["dropped", "ids"])
def test_the_owner_may_be_a_column_that_was_left_out(folder, run):
    done = hcdv(
        "payout", folder / run, "--owner", "seller", "--revenue", "100.01", "--json"
    )
    found = amounts(done)
    assert set(found) == {"007", "ann"}  # text stays as it stands
    assert sum(found.values()) == Decimal("100.01")


def test_the_owner_may_be_a_column_of_the_rows_kept(folder):
    done = hcdv("payout", folder / "kept", "--owner", "seller", "--revenue", "10", "--json")
    assert len(amounts(done)) == 2


def test_a_table_in_any_order_will_do_where_rows_have_ids(folder):
    asked = ("--owner", "seller", "--revenue", "100", "--json")
    table().sample(frac=1, random_state=0).to_parquet(folder / "shuffled.parquet")
    one = amounts(hcdv("payout", folder / "ids", *asked))
    other = hcdv("payout", folder / "ids", *asked, "--table", folder / "shuffled.parquet")
    assert amounts(other) == one
    table().head(50).to_parquet(folder / "few.parquet")
    done = hcdv("payout", folder / "ids", *asked, "--table", folder / "few.parquet")
    assert done.exit_code == 1
    assert "none for 40 of 90, first id 'k0050'" in done.stderr


def test_rows_that_came_later_need_a_table_that_has_them(folder, tmp_path):
    import shutil

    run = shutil.copytree(folder / "ids", tmp_path / "run")
    table(9, first=200).to_csv(tmp_path / "more.csv", index=False)
    assert hcdv("update", run, tmp_path / "more.csv").exit_code == 0
    asked = ("payout", run, "--owner", "seller", "--revenue", "100", "--json")
    done = hcdv(*asked)
    assert done.exit_code == 1
    assert "none for 9 of 99, first id 'k0200'" in done.stderr
    pd.concat([table(), table(9, first=200)]).to_csv(tmp_path / "all.csv", index=False)
    assert sum(amounts(hcdv(*asked, "--table", tmp_path / "all.csv")).values()) == 100


def test_statements_go_to_a_new_folder(folder, tmp_path):
    done = hcdv(
        "payout", folder / "dropped", "--owner", "seller", "--revenue", "12345.67",
        "--currency", "eur", "--minimum", "100", "--cap", "9000", "--out", tmp_path / "october",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "EUR 12,345.67 to 2 sellers" in done.stdout
    assert "at least 100; nobody gets more than 9000" in done.stdout
    paid = pd.read_csv(tmp_path / "october" / "payouts.csv", dtype=str)
    assert sum(map(Decimal, paid["amount"])) == Decimal("12345.67")
    assert paid["currency"].tolist() == ["EUR", "EUR"]
    again = hcdv(
        "payout", folder / "dropped", "--owner", "seller", "--revenue", "1",
        "--out", tmp_path / "october",
    )  # fmt: skip
    assert again.exit_code == 1


def test_csv_and_a_model_of_the_buyer(folder):
    done = hcdv(
        "payout", folder / "dropped", "--owner", "seller", "--revenue", "10", "--csv",
        "--basis", "model", "--model", "logistic",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    header = done.stdout.splitlines()[0].split(",")
    assert {"seller", "amount", "model_game", "model_leave_one_out"} <= set(header)


@pytest.mark.parametrize(
    ("args", "status", "said"),
    [
        (["--owner", "sellr", "--revenue", "1"], 1, "Did you mean 'seller'?"),
        (["--owner", "seller", "--revenue", "-1"], 2, "--revenue must be zero or more"),
        (["--owner", "seller", "--revenue", "nan"], 2, "--revenue must be zero or more"),
        (
            ["--owner", "seller", "--revenue", "1.001"],
            2,
            "at most 2 digits after the point",
        ),
        (
            ["--owner", "seller", "--revenue", "1", "--currency", "euro"],
            2,
            "--currency must be",
        ),
        (["--owner", "seller", "--revenue", "1", "--cap", "lots"], 2, "--cap must be"),
        (["--owner", "seller", "--revenue", "1", "--cap", "0.1"], 1, "Change the minimum"),
        (["--owner", "seller", "--revenue", "1", "--basis", "model"], 2, "needs --model"),
        (["--owner", "seller", "--revenue", "1", "--csv", "--json"], 2, "cannot both"),
        (["--owner", "seller", "--revenue", "1", "--table", "no.csv"], 1, "does not exist"),
        (["--owner", "seller"], 2, "Missing option '--revenue'"),
    ],
)
def test_misuse_is_one_line_and_nothing_is_written(folder, tmp_path, args, status, said):
    out = tmp_path / "out"
    done = hcdv("payout", folder / "dropped", *args, "--out", out)
    assert done.exit_code == status, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_a_table_that_is_gone_has_to_be_named(folder, tmp_path):
    table().to_csv(tmp_path / "u.csv", index=False)
    base = ("value", tmp_path / "u.csv", "--target", "y", "--drop", "seller", *QUICK)
    assert hcdv(*base, "--out", tmp_path / "run").exit_code == 0
    (tmp_path / "u.csv").unlink()
    done = hcdv("payout", tmp_path / "run", "--owner", "seller", "--revenue", "1")
    assert done.exit_code == 1
    assert "cannot be read. Name it with --table" in done.stderr


def test_gaps_are_told_in_words_csv_and_json(folder):
    said = hcdv("gaps", folder / "kept").stdout
    assert said.startswith("collect")
    assert "\nenough" in said
    assert "\nharmful" in said
    told = json.loads(hcdv("gaps", folder / "kept", "--json").stdout)
    assert {one["kind"] for one in told} <= {"collect", "enough", "harmful"}
    lines = hcdv("gaps", folder / "kept", "-k", 1, "--csv").stdout.splitlines()
    assert lines[0].startswith("kind,id,size,error,gain,if_gone")
    assert len(lines) <= 4
    assert hcdv("gaps", folder / "kept", "--csv", "--json").exit_code == 2
    assert hcdv("gaps", folder / "kept", "-k", 0).exit_code == 2
    assert hcdv("gaps", folder / "nothing").exit_code == 1
