"""The built book and slides (`make book slides` builds them), and a browser to look at them with."""

import functools
import http.server
import shutil
import threading

import pytest

from kscore.project import ROOT

BUILD = ROOT / "build"
BOOK, SLIDES = BUILD / "book", BUILD / "slides"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pages(folder):
    """Return the pages of a build; none fails every test that asks for them, rather than none of them."""
    return sorted(set(folder.rglob("*.html")) - set((folder / "_static").rglob("*"))) or [folder / "index.html"]


@pytest.fixture(scope="package")  # not longer: while it is there, nothing else can run an event loop in this thread
def chromium():
    if CHROMIUM is None:
        pytest.skip("no browser is installed: the book is looked at in chromium, a package of that name on Debian")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def site():
    """The address of the build folder on this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=BUILD))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


class Reader:
    """A window of the browser that remembers what went wrong in it."""

    def __init__(self, browser, site):
        self.site, self.complaints = site, []
        self.page = browser.new_page(viewport={"width": 1280, "height": 900})
        self.page.on("console", lambda message: message.type == "error" and self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.route("**/*", self._asked)

    def _asked(self, route):
        """Let nothing out that is for another machine, and remember it."""
        if route.request.url.startswith((self.site, "file:", "data:", "blob:")):
            route.continue_()
        else:
            self.complaints.append(f"asks the network for {route.request.url}")
            route.abort("internetdisconnected")

    def open(self, path, query=""):
        """Open a page of the build and wait until its formulas are typeset."""
        return self.go(f"{self.site}/{path.relative_to(BUILD)}{query}")

    def go(self, address):
        self.page.goto(address)
        self.page.evaluate("() => window.MathJax && window.MathJax.startup.promise")
        return self.page


@pytest.fixture
def reader(chromium, site):
    reader = Reader(chromium, site)
    yield reader
    reader.page.close()
