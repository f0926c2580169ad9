"""Coalitions in the data's own words: levels, ranges and words that set a node apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import a_tree
from fits import quick
from hcdv.errors import ParameterError
from hcdv.hierarchy.growth import tree_from_levels
from hcdv.uses.description import Trait, described, readable, words
from hcdv.uses.legible import legible

RNG = np.random.default_rng(0)
N = 900
GROUP = RNG.integers(0, 3, N)


def told(frame, most=3, group=GROUP):
    """The words of each group, the whole set aside."""
    tree = tree_from_levels([group])
    traits = described(frame, tree, range(tree.n_nodes), most)
    assert traits[0] == []  # nothing sets all rows apart from all rows
    return [words(each) for each in traits[1:]]


def test_levels_ranges_and_missing_cells_are_named():
    frame = pd.DataFrame({
        "sex": np.where(GROUP == 0, "Female", RNG.choice(["Female", "Male"], N)),
        "age": np.where(GROUP == 1, RNG.integers(18, 25, N), RNG.integers(25, 90, N)),
        "plan": np.where(GROUP == 2, None, "basic"),
        "noise": RNG.normal(size=N),
    })  # fmt: skip
    women, young, unplanned = told(frame)
    assert "sex Female" in women.split(", ")
    assert young.split(", ")[0] in ("age under 25", "age under 26")
    assert unplanned.split(", ")[0] == "plan missing"


def test_shares_are_those_of_the_rows_and_lift_is_their_ratio():
    frame = pd.DataFrame({"colour": np.where(GROUP == 1, "red", "blue")})
    tree = tree_from_levels([GROUP])
    (red,) = described(frame, tree, [2])[0]
    assert red == Trait("colour", "red", 1.0, float(np.mean(GROUP == 1)))
    assert red.lift == pytest.approx(1 / np.mean(GROUP == 1))
    assert words([red], at_length=True) == (
        f"colour red (100% of them, {np.mean(GROUP == 1):.0%} of all)"
    )


@given(st.integers(0, 10**6), st.integers(30, 200))
@settings(max_examples=30, deadline=None)
def test_what_is_said_is_true_of_at_least_half_of_a_node_and_counted_right(seed, n):
    rng = np.random.default_rng(seed)
    tree = a_tree(n, seed)
    group = tree.leaf_of_row
    frame = pd.DataFrame({
        "level": np.array(list("abcdefgh"))[(group + rng.integers(0, 2, n)) % 8],
        "number": group % 5 + rng.normal(size=n).round(2),
    })  # fmt: skip
    for node, traits in enumerate(described(frame, tree, range(tree.n_nodes))):
        for trait in traits:
            assert 0.5 <= trait.inside <= 1
            assert trait.lift >= 1.25
            if trait.column == "level":
                holds = frame["level"].isin(trait.said.split(" or ")).to_numpy()
            else:
                holds = _holds(frame["number"].to_numpy(), trait.said)
            assert trait.inside == pytest.approx(holds[tree.rows(node)].mean())
            assert trait.overall == pytest.approx(holds.mean())


def _holds(x, said):
    if said.startswith("under "):
        return x < float(said[6:])
    if said.startswith("up to "):
        return x <= float(said[6:])
    if said.startswith("over "):
        return x > float(said[5:])
    if said.endswith(" or more"):
        return x >= float(said[:-8])
    low, _, high = said.partition(" to ")
    return (x >= float(low)) & (x < float(high))


def test_edges_are_round_where_numbers_allow():
    ages = pd.Series(RNG.integers(17, 91, 5000))
    edges = legible(ages, "age").low
    assert np.all(edges == np.rint(edges))
    wide = legible(pd.Series(RNG.lognormal(10, 1, 5000)), "pay").low[1:]
    assert np.mean([float(f"{x:.1e}") == x for x in wide]) >= 0.9


def test_a_number_that_many_cells_hold_is_said_by_itself():
    gain = np.where(GROUP == 0, RNG.integers(1000, 9000, N), 0)
    some, none, nothing = told(pd.DataFrame({"gain": gain}))
    assert some == "gain over 0"
    assert none == nothing == "gain 0"


def test_dates_are_said_as_dates():
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(100 * GROUP, "D")
    frame = pd.DataFrame({"when": day + pd.to_timedelta(RNG.integers(0, 100, N), "D")})
    first, middle, last = told(frame)
    assert first.startswith("when before 2024-04-")
    assert middle.startswith("when 2024-04-")
    assert " to 2024-07-" in middle
    assert last.startswith("when from 2024-07-")


def test_of_columns_that_say_the_same_one_is_taken():
    frame = pd.DataFrame({
        "level": np.array(["low", "mid", "high"])[GROUP],
        "years": np.array([8, 12, 16])[GROUP],
        "flag": GROUP == 0,
    })  # fmt: skip
    assert told(frame, most=3)[2] in ("level high", "years 16")


def test_texts_are_told_by_their_words():
    kinds = [["refund", "late"], ["screen", "battery"], ["love", "great"]]
    text = [
        " ".join([*RNG.choice(["the", "was", "item", "bought"], 4), *kinds[k], f"n{i}"])
        for i, k in enumerate(GROUP)
    ]
    said = told(pd.DataFrame({"review": text}), most=2)
    assert said[0].split(", ") == ['review with "late"', 'review with "refund"']
    assert 'review with "battery"' in said[1]


def test_few_rows_and_chance_say_nothing():
    frame = pd.DataFrame({"noise": RNG.choice(list("abc"), N), "x": RNG.normal(size=N)})
    assert told(frame) == ["", "", ""]
    few = pd.DataFrame({"noise": list("abcabcab")})
    assert told(few, group=np.arange(8) % 2) == ["", ""]


def test_arrays_vectors_and_constants_have_no_words():
    assert readable(pd.DataFrame(RNG.normal(size=(5, 3)), columns=["x0", "x1", "x2"])) == []
    frame = pd.DataFrame({"emb[0]": GROUP, "emb[1]": GROUP, "same": "a", "one": 1.0})
    assert readable(frame) == ["same", "one"]
    assert told(frame) == ["", "", ""]
    assert described(None, tree_from_levels([GROUP]), [0, 1]) == [[], []]


def test_a_node_without_rows_is_not_described():
    tree = tree_from_levels([GROUP]).restrict(GROUP != 1)
    frame = pd.DataFrame({"colour": np.array(["red", "blue", "green"])[GROUP[GROUP != 1]]})
    assert [words(each) for each in described(frame, tree, [1, 2, 3])] == [
        "colour red", "", "colour green",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def v():
    """Two kinds of people in one table, and a label that the kind does not tell."""
    far = np.arange(160) % 2
    frame = pd.DataFrame({
        "town": np.where(far == 0, "Ulm", "Bonn"), "age": 20 + 40 * far, "x": RNG.normal(size=160),
    })  # fmt: skip
    return quick().fit(frame, (frame["x"] > 0).astype(int))


def test_a_model_describes_its_coalitions_and_the_way_down_to_a_row(v, tmp_path):
    told = v.describe()
    assert told["id"].tolist() == list(range(v.tree_.n_nodes))
    assert told["size"].tolist() == v.tree_.size.tolist()
    assert told["description"][0] == ""
    assert told["description"].str.contains("Ulm|Bonn|age").sum() >= 2
    leaf = int(v.tree_.leaf_of_row[3])
    (one,) = v.describe(leaf).to_dict("records")
    assert one == told.to_dict("records")[leaf]
    assert v.explain(3).path[-1]["description"] == one["description"]
    assert one["description"] in str(v.explain(3))
    assert set(v.describe([leaf], most=1)["description"].str.count(", ")) == {0}
    v.save(tmp_path / "run")
    pd.testing.assert_frame_equal(type(v).load(tmp_path / "run").describe(), told)


def test_a_model_without_rows_of_its_own_says_nothing(v, tmp_path):
    v.save(tmp_path / "run", rows=False)
    again = type(v).load(tmp_path / "run")
    assert set(again.describe()["description"]) == {""}
    assert again.describe()["label_mix"].tolist() == v.describe()["label_mix"].tolist()


@pytest.mark.parametrize("nodes", [-1, 10**6, 1.5, [[1, 2]], "all"])
def test_a_coalition_that_is_not_there_is_refused(v, nodes):
    with pytest.raises(ParameterError, match="nodes must be ids of coalitions, from 0 to"):
        v.describe(nodes)
