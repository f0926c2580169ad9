"""What notebooks show: results at a glance, and nothing a user wrote as markup."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from datasets import people, valued, written
from fits import quick, two_classes
from hcdv import HCDV
from hcdv.cards import bar, card, pairs, table

EVIL = "<img src=x onerror=alert(1)>"


class Checker(HTMLParser):
    """Counts tags, and checks that they close in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, _):
        self.seen.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def v():
    X, y = two_classes(80)
    frame = pd.DataFrame(X, columns=[EVIL, *"abcd"])
    return quick().fit(
        frame, np.array([EVIL, "right"])[y], ids=[f"{EVIL}{i}" for i in range(80)]
    )


def test_a_fitted_model_shows_its_surplus_and_where_to_go_on(v):
    shown = v._repr_mimebundle_()
    assert shown["text/html"] == v._repr_html_()
    Checker(shown["text/html"])
    assert f"{v.surplus_:+.4f}" in shown["text/html"]
    assert "report(" in shown["text/html"]
    assert shown["text/plain"] == repr(v)


def test_one_that_is_not_fitted_shows_its_settings_as_scikit_learn_does():
    shown = HCDV(leaf_size=7)._repr_mimebundle_()
    assert "sk-" in shown["text/html"]
    assert "what" not in shown["text/plain"]
    assert HCDV()._repr_html_()


def test_an_explanation_shows_its_coalitions_and_neighbours_as_text(v):
    shown = v.explain(3)._repr_html_()
    assert "img" not in Checker(shown).seen
    for step in v.explain(3).path:
        assert f"#{step['id']}" in shown


def test_a_data_sets_run_shows_itself(tmp_path):
    run = valued(written(tmp_path / "data", people(800)), tmp_path / "run")
    assert f"{run.surplus_:+.4f}" in run._repr_html_()
    Checker(run._repr_html_())


def test_whatever_is_written_is_escaped():
    shown = card(
        EVIL, pairs([(EVIL, EVIL)]), table(EVIL, [EVIL], [[EVIL]]), bar({EVIL: 1.0})
    )
    assert "img" not in Checker(shown).seen


def test_a_bar_is_shared_by_size():
    shown = bar({"a": 3.0, "b": -1.0})
    assert "width:75.00%" in shown
    assert "width:25.00%" in shown
    assert "opacity:0.4" in shown
    assert 'aria-label="a +3.0000, b -1.0000"' in shown


def test_a_run_prints_as_one_line(v):
    assert repr(v.run_).startswith("Run(80 rows, ")
