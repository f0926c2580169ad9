"""The page holds what the facts say, escapes all that users wrote, and fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from fits import flipped, quick, two_classes
from hcdv import StoreError
from hcdv.apps.report.facts import report_facts
from hcdv.apps.report.figures import bar, chart, ticks
from hcdv.apps.report.page import MARK, Worth, chance, page
from hcdv.apps.report.verdict import verdict
from hcdv.apps.report.writing import write_report

EVIL = "</script><img src=x onerror=alert(1)>\"'&\u2028"


class Tags(HTMLParser):
    """Every tag with its attributes, and the text inside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.held: dict[str, list[str]] = {"script": [], "style": []}
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag):
        self.inside = ""

    def handle_data(self, data):
        if self.inside in self.held:
            self.held[self.inside].append(data)


@pytest.fixture(scope="module")
def hostile():
    X, y = two_classes(150, noise=0.05)
    y, _ = flipped(y, 0.1, np.random.default_rng(0))
    frame = pd.DataFrame(X[:, :2], columns=[EVIL, "plain"])
    frame["story"] = [
        f"{EVIL} a text that is long enough to be read as one, row {i}" for i in range(150)
    ]
    frame["kind"] = np.where(X[:, 2] > 0, EVIL, "plain")
    model = quick().fit(
        frame,
        np.array([EVIL, "right"])[y],
        ids=np.array([f"{EVIL}{i}" for i in range(150)]),
    )
    model.run_.notes.append(EVIL)
    return report_facts(model, run={"folder": EVIL, "source": {"table": EVIL}})


@pytest.fixture(scope="module")
def html(hostile):
    return page(hostile)


def test_nothing_a_user_wrote_becomes_a_tag(html):
    tags = Tags(html)
    assert [dict(a).get("type") for t, a in tags.tags if t == "script"] == [
        "application/json",
        None,
    ]
    for tag, attributes in tags.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert "style" not in attributes  # the policy would not apply it
        assert tag != "img" or attributes["src"].startswith("data:image/png;base64,")


def test_the_data_of_the_script_is_what_went_in(html, hostile):
    inside = "".join(Tags(html).held["script"][:1])
    assert json.loads(inside)["tree"] == hostile["tree"]
    assert not re.search("[<>&\u2028]", inside)


def test_the_policy_allows_this_script_and_style_and_nothing_else(html):
    tags = Tags(html)
    policy = next(a["content"] for t, a in tags.tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for what in (tags.held["script"][-1], "".join(tags.held["style"])):
        digest = base64.b64encode(hashlib.sha256(what.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_no_address_leads_out_of_the_page(html):
    for _, attributes in Tags(html).tags:
        for name in ("src", "href", "action", "data"):
            value = attributes.get(name) or "#"
            assert value.startswith(("#", "data:image/png")), value
    assert "http" not in html.replace("http-equiv", "").replace("https-", "")


def test_ids_are_unique_and_every_jump_lands(html):
    tags = Tags(html).tags
    ids = [a["id"] for _, a in tags if "id" in a]
    assert len(ids) == len(set(ids))
    jumps = {a["href"][1:] for t, a in tags if t == "a"}
    named = {name for _, a in tags for name in a.get("aria-labelledby", "").split()}
    assert jumps | named <= set(ids)


def test_every_figure_has_words_for_those_who_do_not_see_it(html):
    for tag, attributes in Tags(html).tags:
        if tag == "img":
            assert attributes["alt"]
        if tag in ("svg", "canvas"):
            assert attributes["role"] == "img"
            assert attributes["aria-label"]


def contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        ]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_its_ground(html, theme):
    style = "".join(Tags(html).held["style"])
    own = dict(re.findall(r"--(\w+): (#\w{6})", style.split("@media")[0]))
    if theme == "dark":
        dark = style.split('[data-theme="dark"] {')[1].split("}")[0]
        own |= dict(re.findall(r"--(\w+): (#\w{6})", dark))
    for ink in ("ink", "soft", "accent", "warn", "good", "best", "worst", "any", "chosen"):
        for ground in ("ground", "panel"):
            assert contrast(own[ink], own[ground]) >= 4.5, (ink, ground)


def test_values_are_told_in_average_rows_or_as_they_are():
    worth = Worth({"size": 0.002, "is_average": True})
    told = [worth(v) for v in (0.0, 0.002, -0.13, 0.00001, 2e-9, 3.0)]
    assert told == ["0", "+1.00×", "−65×", "+0.005×", "+1e−06×", "+1,500×"]
    assert Worth({"size": 1.0, "is_average": False})(-0.00031) == "−3.10e−04"
    assert chance(0.99999) == "> 99.9 %"
    assert chance(0.5) == "50.0 %"


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (-0.31, 0.02), (3.0, 900.0), (1.0, 1.0)]
)
def test_ticks_are_round_and_inside(low, high):
    found = ticks(low, high)
    assert found
    assert all(low - 1e-9 <= each <= high + 1e-9 for each in found)


def test_the_pieces_of_a_bar_fill_it_and_those_below_zero_go_back():
    up, down = bar([3.0, -1.0])
    assert (up["x"], up["width"], up["is_below"]) == (0.0, 400.0, 0.0)
    assert (round(down["x"], 6), round(down["width"], 6), down["is_below"]) == (
        266.666667,
        133.333333,
        1.0,
    )


def test_a_chart_goes_up_where_its_figures_do():
    (line,) = chart([("best", [0.0, 1.0], [0.2, 0.9])])["lines"]
    (x0, y0), (x1, y1) = (map(float, each.split(",")) for each in line["points"].split())
    assert x1 > x0
    assert y1 < y0


def test_the_verdict_names_commands_for_where_the_run_is(hostile):
    on_disk = verdict(hostile)["next"]
    assert any(
        "hcdv suspects '</script>" in step["line"] for step in on_disk
    )  # shell-quoted
    at_hand = verdict({**hostile, "run": None})["next"]
    assert any(step["line"].startswith("v.suspects(") for step in at_hand)


def test_no_suspects_and_no_worth_are_said_as_that(hostile):
    poor = {
        **hostile,
        "n_suspects": 0,
        "share_wrong": 0.0,
        "surplus": {"total": -0.02, "parts": []},
    }
    said = verdict(poor)
    assert said["headline"].startswith("A model taught with these rows is worse than none")
    slight = {**poor, "surplus": {"total": 0.004, "parts": []}}
    assert verdict(slight)["headline"].startswith("These rows teach next to nothing")
    curves = [{**each, "whole": each["empty"] - 0.1} for each in hostile["curves"]]
    assert not any(
        "is enough" in line for line in verdict({**poor, "curves": curves})["worth"]
    )
    assert said["rotten"][0] == "No label is more likely wrong than right."


def test_a_report_is_replaced_and_another_file_is_not(tmp_path):
    X, y = two_classes(40)
    model = quick().fit(X, y)
    path = tmp_path / "report.html"
    assert model.report(path) == path
    assert MARK in path.read_text(encoding="utf-8")
    model.report(path, rows=False)
    other = tmp_path / "mine.html"
    other.write_text("mine")
    with pytest.raises(StoreError, match="which is another file"):
        model.report(other)
    assert other.read_text() == "mine"
    with pytest.raises(StoreError, match="must lie in a folder that exists"):
        write_report(model, tmp_path / "none" / "report.html")


@pytest.mark.parametrize(
    "settings",
    [
        {"branching": "flat"},
        {"semivalue": "banzhaf"},
        {"method": "winter"},
        {"method": "paper"},
        {"utility": "knn"},
    ],
)
def test_every_way_of_valuing_has_a_report(settings):
    X, y = two_classes(40)
    assert MARK in page(report_facts(quick(**settings).fit(X, y)))


def test_many_classes_and_hardly_any_rows_have_a_report():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 4)
    assert MARK in page(
        report_facts(quick().fit(rng.normal(size=(120, 3)) + y[:, None], y))
    )
    assert MARK in page(report_facts(quick().fit(np.eye(4), [0, 1, 0, 1])))


def test_a_run_whose_rows_are_worth_less_than_nothing_has_a_report():
    rng = np.random.default_rng(2)
    found = report_facts(quick().fit(rng.normal(size=(60, 5)), rng.integers(0, 2, 60)))
    found["surplus"]["parts"][0]["value"] = -0.2
    assert 'class="part0 below"' in page(found)
