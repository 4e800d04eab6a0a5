"""A real browser: Chromium from the system, driven by Playwright, which downloads nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragtrace.reports import page
from ragtrace.store import database
from tests.browser import strange

WIDE = {"width": 1200, "height": 800}

CHROMIUM = os.environ.get("RAGTRACE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


class Opened:
    """A page in a tab of its own, with what went wrong in it and what it asked for."""

    def __init__(self, tab: Any) -> None:
        self.tab = tab
        self.problems: list[str] = []
        self.requests: list[str] = []
        tab.on("console", lambda message: self.problems.append(message.text))
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("request", lambda request: self.requests.append(request.url))

    def go(self, path: Path, fragment: str = "") -> Opened:
        """Open the file and wait until its list is there."""
        self.tab.goto(f"{path.as_uri()}{fragment}")
        self.tab.wait_for_selector("html[data-list=ready]", state="attached")
        return self

    def with_charts(self) -> Opened:
        """Every chart drawn, the unseen ones too."""
        self.tab.wait_for_selector("html[data-charts=ready]", state="attached")
        for chart in self.tab.locator("[data-chart]").all():
            chart.scroll_into_view_if_needed()
            chart.locator(".main-svg").first.wait_for()
        return self


Open = Callable[..., Opened]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window; the tests are skipped where there is none.

    Not for the session: while Playwright runs, a loop runs in this thread, and tests of other files could start none.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium is on the PATH (Debian: apt-get install chromium; or RAGTRACE_CHROMIUM=…)")
    with sync_api.sync_playwright() as playwright:
        # Root, as in containers, has no sandbox of its own.
        own = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield own
        own.close()


def tab_of(browser: Any) -> Any:
    """A tab with nothing of another's in it, offline."""
    context = browser.new_context(viewport=WIDE, color_scheme="light", reduced_motion="reduce", offline=True)
    context.set_default_timeout(20_000)
    return context.new_page()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Open]:
    """Opens a page file in a tab of its own."""
    tabs = []

    def open_(path: Path, *, fragment: str = "") -> Opened:
        tabs.append(tab_of(browser))
        return Opened(tabs[-1]).go(path, fragment)

    yield open_
    for tab in tabs:
        tab.context.close()


@pytest.fixture(scope="module")
def _drawn(browser: Any, strange_page: Path) -> Opened:
    """Unpacking and reading the chart library takes a second or two: once for all."""
    return Opened(tab_of(browser)).go(strange_page).with_charts()


@pytest.fixture
def shown(_drawn: Opened) -> Iterator[Opened]:
    """The strange page with all its charts, as it is when it has just been opened."""
    yield _drawn
    tab = _drawn.tab
    tab.keyboard.press("Escape")
    tab.set_viewport_size(WIDE)
    tab.emulate_media(color_scheme="light")
    tab.locator("#search").fill("")
    tab.locator("#pick-verdict").select_option("")
    tab.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = false; })")
    n = len(strange.QUESTIONS)
    tab.wait_for_function(f"() => document.querySelector('#found').textContent.startsWith('{n} of')")


@pytest.fixture(scope="session")
def strange_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the strange service."""
    folder = tmp_path_factory.mktemp("strange")
    strange.build(folder / "traces.duckdb")
    with database.connect(folder / "traces.duckdb", read_only=True) as connection:
        page.write(connection, folder / "page.html", f"traces {strange.IMAGE}.duckdb")
    return folder / "page.html"
