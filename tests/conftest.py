"""Settings every test shares: hypothesis profiles, and the slow tests left out by name."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No deadline: on a shared machine it would assert seconds. Derandomised in the fast
# profile, so that a failure seen by one person is seen by the next.
settings.register_profile(
    "fast",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", parent=settings.get_profile("fast"), max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

_LEFT_OUT = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Start the list of slow tests that this run leaves out."""
    config.stash[_LEFT_OUT] = set()


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Remember each slow test that was left out, by the name it is run with."""
    for item in items:
        if item.get_closest_marker("slow"):
            item.config.stash[_LEFT_OUT].add(item.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the list from a worker process to the one that prints."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["left_out"] = sorted(session.config.stash[_LEFT_OUT])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object | None) -> None:
    """Collect a worker's list; called by pytest-xdist, where it is installed."""
    output = getattr(node, "workeroutput", {})
    node.config.stash[_LEFT_OUT].update(output.get("left_out", []))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name what was not run, and the command that runs it."""
    left_out = sorted(config.stash[_LEFT_OUT])
    if left_out:
        terminalreporter.section("slow tests left out: make test-all runs them")
        for name in left_out:
            terminalreporter.line(name)
