"""The documentation's site: every link leads somewhere, its search finds pages, and pages fit a phone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

from docs.how_pictures import PICTURES
from tests.documents import ROOT
from tests.thresholdout.report.browser import missing, started

pytestmark = pytest.mark.slow


class Links(HTMLParser):
    """Where a page leads to, and the places in it that links can lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.places: set[str] = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attributes if value}
        self.places |= {found[name] for name in ("id", "name") if name in found}
        self.targets |= {found[name] for name in ("href", "src") if name in found}


def dead(pages: dict[Path, Links]) -> list[str]:
    """Return the links of pages to files, or places in pages, that are not there."""
    wrong = []
    for page, links in pages.items():
        for target in links.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.exists() or (path in pages and unquote(parts.fragment) not in pages[path].places):
                wrong.append(f"{page.name}: {target}")
    return sorted(wrong)


def newest(*folders: Path) -> float:
    """Return when a source of the site was last changed."""
    sources = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".md", ".css")]
    made = {ROOT / "docs" / name for name in ("_build", "generated", "gallery")}
    read = [*ROOT.glob("*.md"), *(path for path in sources if made.isdisjoint(path.parents))]
    return max(path.stat().st_mtime for path in read)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site of `make docs` where it is newer than its sources, or build one without running examples."""
    built = ROOT / "docs" / "_build"
    folders = [ROOT / name for name in ("docs", "examples", "benchmarks", "graphs", "thresholdout")]
    last = built / "searchindex.js"
    if last.exists() and last.stat().st_mtime > newest(*folders):
        return built.resolve()
    folder = tmp_path_factory.mktemp("site")
    options = ["-q", "-W", "--keep-going", "-b", "html", "-D", "plot_gallery=0"]
    command = [sys.executable, "-m", "sphinx", *options, "-d", str(folder / "trees"), "docs", str(folder / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return (folder / "html").resolve()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine, as pages that search expect it."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page: Links(page) for page in site.rglob("*.html") if "_static" not in page.parts}
    assert {site / "index.html", site / "start.html", site / "papers.html"} <= set(pages)
    shown = (site / "how.html").read_text(encoding="utf-8")
    assert all(f"{name}.svg" in shown for name in PICTURES)
    assert dead(pages) == []


def test_dead_links_are_seen(tmp_path: Path) -> None:
    page = tmp_path.resolve() / "a.html"
    page.write_text('<a id="here" href="#here"></a><a href="b.html"></a><a href="#there"></a><a href="http://x/y"></a>')
    assert dead({page: Links(page)}) == ["a.html: #there", "a.html: b.html"]


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_search_and_a_phone(site: Path) -> None:
    said: list[str] = []
    with served(site) as address, started() as driver:
        page = driver.new_page(viewport={"width": 1000, "height": 900})
        page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{address}/search.html?q=ladder")
        page.locator("#search-results a[href*='how.html']").first.wait_for(timeout=20_000)
        phone = driver.new_page(viewport={"width": 390, "height": 844}, is_mobile=True)
        phone.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
        pages = ("index", "start", "model_selection", "dependence", "how", "papers", "reference")
        for name in (*pages, "gallery/index", "gallery/gate"):
            phone.goto(f"{address}/{name}.html")
            assert phone.evaluate("document.documentElement.scrollWidth") <= 390, name
    assert said == []
