"""Nobody is answered but the browser that was given the token, on this machine, on this page."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest

from explored import HERE, PORT, TOKEN

COOKIE = f"hcdv-explore-{PORT}"


@pytest.fixture
def stranger(asking):
    """Someone without the cookie."""
    client = asking("shop").client
    client.cookies.clear()
    return client


PATHS = [
    "/", "/overview", "/overview.json", "/rows.json", "/static/app.js", "/static/style.css",
    "/openapi.json", "/image.png?id=1", "/decisions.csv", "/nothing",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_told(stranger, path):
    for headers in (
        {},
        {"cookie": f"{COOKIE}=wrong"},
        {"authorization": f"Bearer {TOKEN}"},
    ):
        answer = stranger.get(path, headers=headers, follow_redirects=False)
        assert answer.status_code == 403
        assert list(answer.json()) == ["error"]
    assert stranger.get(f"/overview.json?token={TOKEN[:-1]}").status_code == 403
    assert stranger.get("/overview.json?token=").status_code == 403


def test_the_token_opens_once_and_the_cookie_from_then_on(stranger):
    answer = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert answer.headers["location"] == f"/overview?token={TOKEN}"
    answer = stranger.get(f"/overview?token={TOKEN}")
    cookie = answer.headers["set-cookie"]
    assert cookie == f"{COOKIE}={TOKEN}; Path=/; HttpOnly; SameSite=Strict"
    stranger.cookies.clear()
    answer = stranger.get("/overview.json", headers={"cookie": f"{COOKIE}={TOKEN}"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", f"127.0.0.1:{PORT + 1}", f"evil.example:{PORT}", "",
             f"127.0.0.1:{PORT}.evil.example", f"0.0.0.0:{PORT}"],
)  # fmt: skip
def test_another_host_name_is_refused_even_with_the_token(stranger, host):
    answer = stranger.get(f"/overview.json?token={TOKEN}", headers={"host": host})
    assert answer.status_code == 403
    assert "Host" in answer.json()["error"]


def test_this_machines_other_name_will_do(stranger):
    answer = stranger.get(
        f"/overview.json?token={TOKEN}", headers={"host": f"localhost:{PORT}"}
    )
    assert answer.status_code == 200


def decide(client, **headers):
    body = json.dumps({"ids": ["c-001"], "decision": "keep"})
    return client.post("/decisions.json", content=body, headers=headers)


@pytest.mark.parametrize(
    "origin", [None, "null", "https://evil.example", f"http://127.0.0.1:{PORT + 1}",
               f"https://127.0.0.1:{PORT}"],
)  # fmt: skip
def test_changes_come_from_this_page_alone(asking, shop, origin):
    ask = asking(shop)
    headers = {} if origin is None else {"origin": origin}
    answer = decide(ask.client, **headers)
    assert answer.status_code == 403
    assert "Origin" in answer.json()["error"]
    assert not (shop / "explorer" / "decisions.jsonl").exists()
    assert decide(ask.client, origin=HERE).status_code == 200
    ask.client.cookies.clear()
    assert decide(ask.client, origin=HERE).status_code == 403


def test_what_is_posted_is_small(asking, shop):
    client = asking(shop).client
    answer = client.post(
        "/decisions.json", content=b"x" * 300_000, headers={"origin": HERE}
    )
    assert answer.status_code == 413
    streamed = client.post(
        "/decisions.json", content=iter([b"{", b"}"]), headers={"origin": HERE}
    )
    assert streamed.status_code == 413


def test_other_methods_are_refused(asking):
    client = asking("shop").client
    for method in ("PUT", "DELETE", "PATCH"):
        answer = client.request(
            method, "/rows.json", headers={"origin": HERE, "content-length": "0"}
        )
        assert answer.status_code == 405
        assert "error" in answer.json()
    assert client.request("TRACE", "/rows.json").status_code == 403


@pytest.mark.parametrize(
    "path",
    ["/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/server.py",
     "/static//etc/passwd", "/static/page.html", "/static/..\\server.py", "/..%2f..%2fetc/passwd"],
)  # fmt: skip
def test_no_path_leads_out_of_the_front_end(asking, path):
    assert asking("shop").client.get(path).status_code == 404


def test_every_answer_forbids_what_is_not_needed(asking):
    client = asking("shop").client
    for path in ("/overview", "/overview.json", "/static/app.js", "/nothing"):
        heads = client.get(path).headers
        policy = heads["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert heads["x-content-type-options"] == "nosniff"
        assert heads["referrer-policy"] == "no-referrer"
    assert client.get("/overview.json").headers["cache-control"] == "no-store"


def test_the_front_end_never_makes_markup_of_text_and_asks_nobody_else():
    folder = resources.files("hcdv.apps.explorer").joinpath("static")
    for file in folder.iterdir():
        text = file.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(",
                     "new Function", "srcdoc", "javascript:"):  # fmt: skip
            assert word not in text, f"{file.name} has {word}"
        hosts = re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]+", text)
        assert set(hosts) <= {"http://www.w3.org"}, f"{file.name} names {hosts}"
    shell = folder.joinpath("page.html").read_text(encoding="utf-8")
    assert not re.search(r"\son[a-z]+=|<style|style=|<script(?![^>]*src=)", shell)


def test_a_fault_of_our_own_is_one_sentence(asking, monkeypatch):
    from hcdv.apps.explorer import pages

    monkeypatch.setattr(pages, "overview", lambda *_: 1 / 0)
    answer = asking("shop").client.get("/overview.json")
    assert answer.status_code == 500
    assert list(answer.json()) == ["error"]
    assert "ZeroDivisionError" not in answer.text
