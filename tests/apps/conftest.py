"""A browser without a window, for tests that look at pages and use them.

Screenshots go to build/screenshots, which git ignores.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
]  # fmt: skip


@pytest.fixture(scope="module")
def browse() -> Iterator[Callable[..., Any]]:
    """Open a page: `with browse(path, viewport=…) as page`. No browser here: skipped.

    Whatever its console says, and any request to somewhere else, fails the test.
    """
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next((path for name in _NAMES if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip(f"no browser on this machine: none of {', '.join(_NAMES)}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=program, args=_ARGUMENTS)

        @contextmanager
        def opened(path: Path | str, **settings: Any) -> Iterator[Any]:
            address = path.resolve().as_uri() if isinstance(path, Path) else path
            wrong: list[str] = []
            page = chromium.new_page(**settings)
            _listen(page, wrong, address)
            page.goto(address)
            yield page
            page.close()
            assert wrong == []

        yield opened
        chromium.close()


def _listen(page: Any, wrong: list[str], address: str) -> None:
    own = (
        address.split("://", maxsplit=1)[0]
        + "://"
        + address.split("://")[1].split("/", maxsplit=1)[0],
        "data:",
    )

    def asked(request: Any) -> None:
        if not request.url.startswith((*own, "blob:")):
            wrong.append(f"request: {request.url}")

    def opened_dialog(dialog: Any) -> None:
        wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    page.on("request", asked)
    page.on("dialog", opened_dialog)
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda said: wrong.append(f"{said.type}: {said.text}"))


@pytest.fixture
def shot() -> Callable[[Any, str], None]:
    """Keep what a page looks like, all of it: `shot(page, "digits-dark")`."""

    def taken(page: Any, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    return taken
