"""The page in a browser: nothing goes wrong, and mouse, keyboard and paper all serve."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from datasets import people, valued, written
from fits import flipped, quick, two_classes
from hcdv.apps.report import scatter
from hcdv.apps.report.facts import report_facts
from hcdv.apps.report.page import page as page_of

pytestmark = pytest.mark.slow  # a browser under load may answer late: make test-browser

EVIL = '</script><img src=x onerror=alert(1)>"'
WIDE, PHONE = {"width": 1200, "height": 900}, {"width": 390, "height": 800}


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    held = load_digits()
    y, wrong = flipped(held.target, 0.1, np.random.default_rng(0))
    model = quick(leaf_size=40).fit(held.images, y)
    return model.report(
        tmp_path_factory.mktemp("page") / "digits.html", is_wrong=wrong
    ), model


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_it_opens_without_a_complaint_and_fits_its_width(
    digits, scheme, size, browse, shot
):
    with browse(digits[0], viewport=size, color_scheme=scheme) as page:
        assert page.locator("h1").inner_text() == "What 1,797 rows are worth"
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert page.locator(".node").count() > 20
        drawn = page.evaluate(
            "(() => { const c = document.getElementById('points');"
            "return c.getContext('2d').getImageData(0, 0, c.width, c.height).data.some(x => x) })()"
        )
        assert drawn
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == {"light": "rgb(253, 252, 250)", "dark": "rgb(22, 23, 25)"}[scheme]
        shot(page, f"digits-{scheme}-{size['width']}")


def test_groups_open_by_mouse_and_the_way_back_is_shown(digits, browse):
    with browse(digits[0], viewport=WIDE) as page:
        page.locator('.node[aria-level="2"]').nth(1).click()
        assert page.locator("#crumbs button").count() == 2
        head = page.locator("#detail h3").inner_text()
        assert head.startswith("Group #")
        assert page.locator("#detail img").count() > 0
        page.locator("#crumbs button").first.click()
        assert page.locator("#crumbs button").count() == 1
        assert page.locator("#detail h3").inner_text() == "All rows"


def test_groups_are_walked_by_keyboard(digits, browse):
    tree = digits[1].tree_
    with browse(digits[0], viewport=WIDE) as page:

        def at() -> int:
            text = page.evaluate("document.activeElement.getAttribute('aria-label')")
            return int(text.split(":")[0].removeprefix("group "))

        page.locator('.node[aria-selected="true"]').focus()
        page.keyboard.press("ArrowDown")
        first, second = tree.children(0)[:2]
        assert at() == first
        page.keyboard.press("ArrowRight")
        assert at() == second
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
        assert tree.parent[at()] == first
        page.keyboard.press("ArrowUp")
        assert at() == first
        page.keyboard.press("Enter")
        assert page.locator("#crumbs button").count() == 2
        page.keyboard.press("Backspace")
        assert page.locator("#crumbs button").count() == 1
        assert at() == 0


def test_the_map_is_coloured_by_value_class_and_suspects(digits, browse):
    with browse(digits[0], viewport=WIDE) as page:
        seen = []
        for name in ("Value", "Class", "Suspects"):
            page.get_by_role("radio", name=name).click()
            assert (
                page.get_by_role("radio", name=name).get_attribute("aria-checked") == "true"
            )
            assert page.locator("#plane-key ul:visible").count() == 1
            seen.append(page.evaluate("document.getElementById('points').toDataURL()"))
        assert len(set(seen)) == 3
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.textContent") == "Value"
        page.locator("#points").hover()
        page.mouse.move(400, 400)
        box = page.locator("#points").bounding_box()
        for step in range(40):
            page.mouse.move(
                box["x"] + box["width"] * (0.3 + step / 100), box["y"] + box["height"] / 2
            )
        assert page.locator("#tip").inner_text().startswith("row ")


def test_light_and_dark_are_switched_by_a_button(digits, browse):
    with browse(digits[0], viewport=WIDE, color_scheme="dark") as page:
        page.get_by_role("button", name="Light").click()
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        assert page.locator("#theme").inner_text() == "Dark"


def test_on_paper_it_is_light_and_without_buttons(digits, browse, shot):
    with browse(digits[0], viewport=WIDE, color_scheme="dark") as page:
        paper = page.pdf(prefer_css_page_size=True)
        assert paper.startswith(b"%PDF")
        assert 3 <= paper.count(b"/Type /Page\n") <= 12
        page.emulate_media(media="print")
        assert (
            page.evaluate("getComputedStyle(document.body).backgroundColor")
            == "rgb(255, 255, 255)"
        )
        assert not page.locator("#theme").is_visible()
        shot(page, "digits-paper")


def test_hostile_text_stays_text(tmp_path, browse, shot):
    X, y = two_classes(120, noise=0.05)
    y, _ = flipped(y, 0.1, np.random.default_rng(0))
    frame = pd.DataFrame({EVIL: X[:, 0], "kind": np.where(X[:, 1] > 0, EVIL, "plain")})
    model = quick().fit(frame, np.array([EVIL, "right"])[y])
    with browse(model.report(tmp_path / "evil.html"), viewport=WIDE) as page:
        page.locator('.node[aria-level="2"]').first.click()
        assert page.locator("img[src=x]").count() == 0
        assert EVIL in page.locator("#suspects").inner_text()
        shot(page, "hostile")


def test_a_density_is_switched_like_points(tmp_path, monkeypatch, browse):
    monkeypatch.setattr(scatter, "MOST_POINTS", 100)
    X, y = two_classes(400)
    path = quick().fit(X, y).report(tmp_path / "density.html")
    with browse(path, viewport=WIDE) as page:
        assert page.locator("#plane img:visible").count() == 1
        page.get_by_role("radio", name="Suspects").click()
        assert page.locator("#plane-suspect").is_visible()
        assert not page.locator("#plane-value").is_visible()


def test_a_data_sets_run_and_numbers_to_predict_open_too(tmp_path, browse, shot):
    run = valued(written(tmp_path / "data", people(1500)), tmp_path / "run")
    with browse(run.report(tmp_path / "stored.html"), viewport=WIDE) as page:
        assert "no map" in page.locator("#map").inner_text()
        shot(page, "stored")
    X, _ = two_classes(90)
    path = quick().fit(X, X[:, 0] ** 2 + 0.5).report(tmp_path / "numbers.html")
    with browse(path, viewport=WIDE) as page:
        page.get_by_role("radio", name="Target").click()
        shot(page, "numbers")


def test_what_goes_wrong_in_a_page_fails_its_test(tmp_path, browse):
    page = tmp_path / "bad.html"
    page.write_text(
        "<script>console.log('said'); fetch('http://localhost:9/'); nothing()</script>"
    )
    with pytest.raises(AssertionError) as found, browse(page) as opened:
        opened.wait_for_timeout(200)
    for what in ("said", "request: http://localhost:9/", "nothing is not defined"):
        assert what in str(found.value)


@pytest.mark.slow
def test_a_million_rows_make_a_page_of_three_megabytes_at_most(tmp_path, browse, shot):
    rng = np.random.default_rng(0)
    n = 1_000_000
    frame = pd.DataFrame(
        rng.normal(size=(n, 8)).astype(np.float32), columns=list("abcdefgh")
    )
    frame["site"] = np.array(["north", "south", "east"])[rng.integers(0, 3, n)]
    y = (frame["a"] + frame["b"] + 0.5 * rng.normal(size=n) > 0).to_numpy().astype(int)
    model = quick(leaf_size=64, branching=8, n_contexts=8, n_permutations=2).fit(frame, y)
    path = tmp_path / "million.html"
    path.write_text(page_of(report_facts(model)), encoding="utf-8")
    assert path.stat().st_size <= 3_000_000
    with browse(path, viewport=WIDE) as page:
        page.locator('.node[aria-level="3"]').first.click()
        page.get_by_role("radio", name="Class").click()
        shot(page, "million")
