"""What the pages say is what the run holds, for runs of every kind."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from explored import EVIL, customers, table_run
from hcdv import HCDV
from hcdv.apps.explorer import pages
from hcdv.store import updating

KINDS = ("shop", "pictures", "numbers", "clicks.hcdv")


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_answers_for_a_run_of_every_kind(asking, kind):
    ask = asking(kind)
    for path in (
        "/overview",
        "/coalitions",
        "/rows",
        "/suspects",
        "/decisions",
        "/history",
    ):
        assert ask(path)
    row = ask("/rows", limit=1)["rows"][0]
    assert ask("/row", id=row["id"])["row"]["value"] == row["value"]
    assert ask("/worth", filter="value<1e9")["n_rows"] == ask("/overview")["run"]["n_rows"]


def test_the_overview_adds_up(asking, made):
    said, v = asking("shop")("/overview"), HCDV.load(made / "shop")
    assert said["surplus"] == pytest.approx(v.surplus_)
    assert sum(said["parts"].values()) == pytest.approx(v.surplus_)
    assert sum(said["spread"]["counts"]) == 90
    assert said["n_suspects"] == int(v.suspects()["is_suspect"].sum())
    assert said["spread"]["n_below_zero"] == (v.values_ < 0).sum()
    assert [each["label"] for each in said["labels"]] == ["yes", "no"] or said["labels"]
    assert sum(each["value"] for each in said["labels"]) == pytest.approx(v.surplus_)


def test_a_coalition_leads_to_its_rows(asking, made):
    ask, v = asking("shop"), HCDV.load(made / "shop")
    frame = v.coalitions_
    for node in range(len(frame)):
        said = ask("/coalitions", node=node)
        assert said["node"]["value"] == pytest.approx(frame["value"][node])
        assert said["path"][0]["id"] == 0
        assert said["path"][-1]["id"] == node
        rows = ask("/rows", coalition=node, limit=200)["rows"]
        assert sorted(row["row"] for row in rows) == sorted(v.tree_.rows(node).tolist())
    children = [each["id"] for each in ask("/coalitions")["below"] if each["parent"] == 0]
    assert children == v.tree_.children(0).tolist()


def test_a_coalition_has_words(asking):
    said = asking("shop")("/description", node=1)["words"]
    assert isinstance(said, str)
    assert asking("shop")("/description", node=0)["words"] == ""


def test_rows_are_sorted_paged_and_shown_as_they_were_given(asking, made):
    ask, v = asking("shop"), HCDV.load(made / "shop")
    best = np.argsort(-v.values_, kind="stable")
    first = ask("/rows", sort="value", down=1, limit=10)
    second = ask("/rows", sort="value", down=1, limit=10, offset=10)
    found = [row["row"] for row in first["rows"] + second["rows"]]
    assert found == best[:20].tolist()
    given = customers().iloc[found[0]]
    cells = first["rows"][0]["cells"]
    assert (cells["city"], cells["age"]) == (given["city"], given["age"])
    assert cells["value (given)"] == given["value"]  # the values of hcdv have that name
    by_age = [row["cells"]["age"] for row in ask("/rows", sort="age", down=1)["rows"]]
    assert by_age == sorted(customers()["age"], reverse=True)[:50]


@pytest.mark.parametrize(
    ("asked", "is_in"),
    [
        ({"filter": "value<0"}, lambda f, v: v < 0),
        ({"filter": ["age>=60", "back=yes"]}, None),
        ({"filter": "age>=60"}, lambda f, v: f["age"] >= 60),
        ({"filter": "city=Oslo"}, lambda f, v: f["city"] == "Oslo"),
        ({"filter": "city!=Oslo"}, lambda f, v: f["city"] != "Oslo"),
        ({"filter": "label=yes"}, lambda f, v: f["back"] == "yes"),
        ({"filter": "income="}, lambda f, v: f["income"].isna()),
        ({"filter": "income!="}, lambda f, v: f["income"].notna()),
        ({"filter": "city~OSL"}, lambda f, v: f["city"] == "Oslo"),
        ({"filter": f"city={EVIL}"}, lambda f, v: f["city"] == EVIL),
        ({"q": "oslo"}, lambda f, v: f["city"] == "Oslo"),
        ({"q": "OSLO yes"}, lambda f, v: (f["city"] == "Oslo") & (f["back"] == "yes")),
        ({"q": "c-007"}, lambda f, v: f["key"] == "c-007"),
        ({"q": "'; DROP TABLE points --"}, lambda f, v: np.zeros(len(f), bool)),
    ],
    ids=lambda each: str(each) if isinstance(each, dict) else "",
)
def test_filters_and_searches_find_what_they_say(asking, made, asked, is_in):
    ask = asking("shop")
    if is_in is None:
        assert "column" in ask("/rows", status=400, **asked)  # `back` is the label here
        return
    frame, values = customers(), HCDV.load(made / "shop").values_
    wanted = np.flatnonzero(is_in(frame, values))
    said = ask("/rows", limit=200, **asked)
    assert sorted(row["row"] for row in said["rows"]) == wanted.tolist()
    assert said["totals"]["n_rows"] == len(wanted)
    assert said["totals"]["value"] == pytest.approx(values[wanted].sum(), abs=1e-12)


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("/rows", {"sort": "valu"}, "Did you mean 'value'?"),
        ("/rows", {"sort": "value; DROP TABLE points"}, "column must be one of the run's"),
        ("/rows", {"filter": "agee>3"}, "Did you mean 'age'?"),
        ("/rows", {"filter": "age>old"}, "filter on 'age' must be a number, got 'old'"),
        ("/rows", {"filter": "age>"}, "filter must compare with a value"),
        ("/rows", {"limit": "1000"}, "limit must lie from 1 to 200"),
        ("/rows", {"limit": "many"}, "limit must be a number"),
        ("/rows", {"limit": "1.5"}, "limit must be a whole number"),
        ("/rows", {"offset": "200000"}, "offset must be at most 100,000"),
        ("/rows", {"polygon": "0,0;1,1"}, "polygon must have 3 to 100 corners"),
        ("/rows", {"polygon": "0,0;1,1;nan,1"}, "polygon must be a number, got 'nan'"),
        ("/rows", {"decision": "maybe"}, "decision must be one of wrong, keep, drop"),
        ("/rows", {"down": "yes"}, "down must be 0 or 1"),
        ("/spots", {"x0": "2", "x1": "1"}, "x0 and y0 must lie below"),
        ("/worth", {"filter": "value>1e9"}, "the selection must hold rows, got none"),
        ("/row", {}, "id must be given"),
        ("/compare", {}, "a comparison needs two runs, got one"),
    ],
)
def test_what_cannot_be_answered_is_told_in_a_sentence(asking, path, asked, said):
    error = asking("shop")(path, status=400, **asked)
    assert said in error
    assert "Traceback" not in error
    assert "\n" not in error


def test_what_is_not_there_is_not_found(asking):
    ask = asking("shop")
    assert "id must be that of a row" in ask("/row", status=404, id="c-999")
    assert "coalition must be a number" in ask("/coalitions", status=404, node=10**6)
    assert ask("/rows", status=404, coalition=10**6)
    assert ask.client.get("/nothing").json() == {"error": "there is no such page."}


def test_a_row_says_why(asking, made):
    ask, v = asking("shop"), HCDV.load(made / "shop")
    said, own = ask("/row", id="c-007"), v.explain(7)
    assert said["rank"] == own.rank
    assert [step["id"] for step in said["path"]] == [step["id"] for step in own.path]
    assert [each["row"] for each in said["same"]] == [
        each["row"] for each in own.supporters
    ]
    assert [each["row"] for each in said["others"]] == [
        each["row"] for each in own.opponents
    ]
    assert said["row"]["doubt"] == pytest.approx(own.label["probability"])
    assert said["row"]["suggested"] == own.label["suggested"]
    assert said["cells"]["age"] == customers()["age"][7]


def test_suspects_are_those_of_the_run(asking, made):
    v = HCDV.load(made / "shop")
    frame = v.suspects()
    rows = [row["row"] for row in asking("shop")("/suspects")["rows"]]
    assert rows
    assert set(rows) == set(frame["row"][frame["is_suspect"]])


def test_pictures_are_shown(asking):
    from PIL import Image

    ask = asking("pictures")
    answer = ask.client.get("/image.png", params={"id": "3"})
    assert answer.headers["content-type"] == "image/png"
    import io

    picture = np.asarray(Image.open(io.BytesIO(answer.content)))
    given = HCDV.load(ask.session.folder).given_.rows(np.array([3])).table[0]
    assert np.array_equal(picture, given)
    assert ask.client.get("/image.png", params={"id": "999"}).status_code == 404
    assert asking("shop").client.get("/image.png?id=c-001").status_code == 404


def test_rows_of_numbers_have_near_and_far_neighbours(asking, made):
    v = HCDV.load(made / "numbers")
    said, own = asking("numbers")("/row", id="5"), v.explain(5)
    assert [each["row"] for each in said["same"]] == [
        each["row"] for each in own.supporters
    ]
    assert said["row"]["suggested"] == pytest.approx(own.label["suggested"])


def test_a_data_set_shows_the_cells_of_its_files(asking):
    ask = asking("clicks.hcdv")
    said = ask("/row", id="17")
    assert said["cells"]["city"].startswith("town ")
    assert "label" not in said["cells"]
    assert said["same"] == []
    assert "keeps none" in ask("/map", status=400)
    assert "keeps none" in ask("/rows", status=400, polygon="0,0;1,0;1,1")
    assert ask("/worth", coalition=1)["alone"] is None


def test_the_map_has_every_row_once(asking):
    ask = asking("shop")
    said = ask("/map")
    assert 0 < said["share"] <= 1
    spots = ask("/spots")
    assert spots["n_rows"] == 90
    assert sorted(spots["points"]["id"]) == sorted(customers()["key"])
    x, y = spots["points"]["x"], spots["points"]["y"]
    assert said["extent"] == [min(x), min(y), max(x), max(y)]


def test_many_rows_are_drawn_as_cells(asking, monkeypatch):
    from hcdv.apps.explorer import queries

    monkeypatch.setattr(queries, "_SPOTS", 20)
    ask = asking("shop")
    for colour in ("value", "doubt", "label", "density"):
        spots = ask("/spots", colour=colour)
        assert sum(spots["cells"]["n"]) == spots["n_rows"] == 90
    assert set(ask("/spots", colour="label")["cells"]["c"]) == {"yes", "no"}


def test_a_lasso_holds_the_rows_inside(asking):
    from matplotlib.path import Path

    ask = asking("shop")
    spots = ask("/spots")["points"]
    corners = [(-0.5, -0.6), (0.6, -0.4), (0.1, 0.0), (0.5, 0.5), (-0.3, 0.4)]
    inside = Path(corners).contains_points(np.c_[spots["x"], spots["y"]])
    text = ";".join(f"{x},{y}" for x, y in corners)
    found = ask("/rows", polygon=text, limit=200)["rows"]
    assert 5 < len(found) < 85
    assert {row["id"] for row in found} == set(np.array(spots["id"])[inside])


def test_a_selection_is_weighed_as_one_coalition(asking, made):
    from hcdv.uses.together import Worth

    ask, v = asking("shop"), HCDV.load(made / "shop")
    rows = v.tree_.rows(2)
    found, said = Worth(v.run_).of(rows), ask("/worth", coalition=2)
    assert said["n_rows"] == len(rows)
    assert said["summed"]["value"] == pytest.approx(v.values_[rows].sum())
    assert said["alone"]["utility"] == pytest.approx(found.alone["utility"])
    assert said["to_others"]["value"] == pytest.approx(sum(found.to_others.values()))
    assert said["of_all"]["value"] == pytest.approx(v.surplus_)


def test_two_runs_are_compared_by_id(asking, made):
    said = asking("shop", "later")("/compare", limit=5)
    a, b = (
        HCDV.load(made / name).to_frame().set_index("id")["value"]
        for name in ("shop", "later")
    )
    both = pd.concat([a, b], axis=1, join="inner", keys=["a", "b"])
    facts = said["facts"]
    assert facts["n_common"] == len(both) == 70
    assert facts["correlation"] == pytest.approx(both["a"].corr(both["b"]))
    assert facts["rank_correlation"] == pytest.approx(both["a"].corr(both["b"], "spearman"))
    assert facts["first"]["surplus"] == pytest.approx(a.sum())
    moved = (both["b"] - both["a"]).abs().sort_values(ascending=False)
    assert [each["id"] for each in said["movers"]] == moved.index[:5].tolist()
    tree = HCDV.load(made / "shop")
    node = said["coalitions"][0]
    ids = [i for i in tree.ids_[tree.tree_.rows(node["id"])] if i in both.index]
    assert node["n_common"] == len(ids)
    assert node["other_value"] == pytest.approx(both["b"][ids].sum())


def test_runs_without_a_common_row_are_refused(made):
    from hcdv import DataError
    from hcdv.apps.explorer.session import Session

    with pytest.raises(
        DataError, match=r"OTHER must have rows of RUN by id, .*'c-000' and '0'"
    ):
        Session(made / "shop", made / "numbers")


def test_an_update_is_shown_once_it_is_committed(asking, shop):
    ask = asking(shop)
    assert ask("/history")["updates"] == []
    before = ask("/overview")["run"]["n_rows"]
    more = customers(10, first=200, seed=5)
    with updating(shop) as writer:
        writer.commit(
            writer.model.partial_fit(
                more.drop(columns=["back", "key"]), more["back"], ids=more["key"]
            )
        )
        for _ in range(200):
            if ask("/history")["shown"] == 1:
                break
            time.sleep(0.05)
        said = ask("/history")
        assert said["shown"] == said["latest"] == 1
        assert [update["came"] for update in said["updates"]] == [90, 10]
        assert ask("/history", since=0)["updates"][0]["kind"] == "update"
        assert ask("/overview")["run"]["n_rows"] == before + 10
        assert ask("/row", id="c-203")["cells"]["city"] == more["city"][3]
        assert [each["number"] for each in ask("/row", id="c-003")["past"]] == [0, 1]
        past = ask("/coalitions", node=0)["past"]
        assert [each["size"] for each in past] == [90, 100]
        writer.commit(writer.model.forget([0]))  # the explorer stands in nobody's way
    assert ask("/rows", filter="stale=true")["totals"]["n_rows"] in (0, 90)


def test_a_row_that_is_nowhere_kept_is_shown_without_its_cells(made, tmp_path, asking):
    frame = customers(40)
    quick_run = table_run(tmp_path / "bare", frame)
    for path in (quick_run / "rows").glob("*"):
        path.unlink()
    ask = asking(quick_run)
    assert ask("/row", id="c-003")["cells"] is None
    assert ask("/rows", q="c-003")["totals"]["n_rows"] == 1


def test_a_question_that_takes_too_long_is_ended(asking):
    ask = asking("shop")
    database = ask.session.now.queries.database
    database.seconds = 0.05
    with pytest.raises(pages.DataError, match=r"answered within 0\.05 s"):
        database.all("SELECT count(*) FROM range(1000000000) a, range(1000) b")


def test_the_database_reads_the_run_and_nothing_else(asking, tmp_path):
    from hcdv import StoreError

    (tmp_path / "secret.csv").write_text("a\n1\n")
    database = asking("shop").session.now.queries.database
    for sql in (
        f"SELECT * FROM read_csv('{tmp_path}/secret.csv')",
        f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
        "SET enable_external_access = true",
        "SELECT * FROM 'https://example.org/a.parquet'",
    ):
        with pytest.raises(StoreError):
            database.all(sql)
    assert not (tmp_path / "out.csv").exists()


def test_what_was_answered_once_is_answered_again(asking):
    """Answers are kept; taking one apart must not spoil it."""
    ask = asking("clicks.hcdv")
    assert ask("/worth") == ask("/worth")
