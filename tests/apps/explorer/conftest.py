"""Runs of every kind to be looked through, made once, and someone who asks."""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest

from datasets import people, valued, written
from explored import HERE, PORT, TOKEN, customers, table_run
from fits import quick, two_classes
from hcdv.apps.explorer.server import application
from hcdv.apps.explorer.session import Session


@pytest.fixture(scope="session")
def made(tmp_path_factory) -> Path:
    """A folder of runs: of a table, of another like it, of images, numbers and a data set."""
    folder = tmp_path_factory.mktemp("runs")
    table_run(folder / "shop", customers())
    table_run(folder / "later", customers(70, first=20), leaf_size=16)
    X, y = two_classes(48, d=64)
    quick(encoder="pca").fit(abs(X).reshape(-1, 8, 8), y).save(folder / "pictures")
    X, _ = two_classes(60)
    quick().fit(X, X[:, 0] * 2 + 5).save(folder / "numbers")
    valued(written(folder / "clicks", people(400)), folder / "clicks.hcdv")
    return folder


@pytest.fixture
def shop(made, tmp_path) -> Path:
    """A run of its own, for tests that change it."""
    return Path(shutil.copytree(made / "shop", tmp_path / "shop"))


@pytest.fixture
def asking(made):
    """Ask a run: asking("shop")("/rows", q="oslo") gives what the JSON holds."""
    from starlette.testclient import TestClient

    with ExitStack() as open_ones:

        def of(run, other=None):
            paths = [
                made / each if isinstance(each, str) else each for each in (run, other)
            ]
            session = Session(*paths)
            open_ones.callback(session.close)
            client = TestClient(
                application(session, TOKEN, PORT),
                base_url=HERE,
                raise_server_exceptions=False,
            )
            client.cookies.set(f"hcdv-explore-{PORT}", TOKEN)

            def ask(path, status=200, **params):
                answer = client.get(f"{path}.json", params=params)
                assert answer.status_code == status, answer.text
                said = answer.json()
                return said if status == 200 else said["error"]

            ask.client, ask.session = client, session
            return ask

        yield of
