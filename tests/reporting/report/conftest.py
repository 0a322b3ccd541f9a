"""Nights with hostile texts, and a real browser. The nights are made by the same maker as tests/reporting."""

import shutil
from pathlib import Path

import pytest

from tests.support.hostile_texts import hostile_nights
from tests.support.pages import finish, maker_in

CHROMIUM = shutil.which("chromium")
# No network for the browser itself: on a closed network it would try for ever.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture
def maker(tmp_path):
    """`maker("thresholds: {...}", n=300)` -> a NightMaker in an empty folder."""
    return maker_in(tmp_path)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    """A workspace with three nights whose texts attack the page; .ws, .day, .page, .texts."""
    return hostile_nights(tmp_path_factory.mktemp("hostile"), finish)


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, driven by Playwright; its event loop ends with the module, for other tests make their own."""
    if CHROMIUM is None:
        pytest.skip("no chromium: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    with api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


class Watched:
    """A page that remembers what it asked for, said and raised."""

    def __init__(self, browser, path: Path, width: int = 1440, scheme: str = "light", **more) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, **more)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.trouble: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.trouble.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda fault: self.trouble.append(f"error: {fault}"))
        self.page.on("dialog", lambda dialog: (self.trouble.append("a dialog"), dialog.dismiss()))
        self.url = path.as_uri()
        self.page.goto(self.url)


@pytest.fixture
def visit(browser):
    """`visit(path, width=390, scheme="dark")` -> Watched; after the test: no request but the page, no console line."""
    open_pages: list[Watched] = []

    def go(path: Path, **more) -> Watched:
        open_pages.append(Watched(browser, path, **more))
        return open_pages[-1]

    yield go
    for seen in open_pages:
        assert seen.trouble == []
        assert [r for r in seen.requests if not r.startswith(("file:", "data:"))] == []
        seen.context.close()
