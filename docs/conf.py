"""How the documentation is built: ``make docs``."""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from docs import examples_gallery  # noqa: E402

project = "thresholdout"
author = "the authors of thresholdout"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_gallery.gen_gallery"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "header_links_before_dropdown": 6,
}
html_title = "thresholdout"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
# Pages without pages below them would have an empty list of sections.
html_sidebars: dict[str, list[str]] = {path.stem: [] for path in HERE.glob("*.md") if path.stem != "reference"}
html_show_sourcelink = False
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True}
numpydoc_show_class_members = False

_LONG = [name for name in examples_gallery.ORDER if examples_gallery.kept(name)]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/(?!(?:" + "|".join(_LONG) + r")\.py$)\w+\.py$",
    "within_subsection_order": "docs.examples_gallery.place",
    "reset_argv": "docs.examples_gallery.arguments",
    "image_scrapers": ["docs.examples_gallery.picture"],
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
}

PAGES = {
    "proofs": (
        "thresholdout/PROOFS.md",
        "thresholdout/limits/PROOFS.md",
        "thresholdout/evaluations/PROOFS.md",
        "thresholdout/privacy/accounting/RELEASES.md",
        "graphs/PROOFS.md",
        "thresholdout/privacy/accounting/PROOFS.md",
        "thresholdout/privacy/accounting/pld/PROOFS.md",
        "thresholdout/privacy/accounting/minibatches/PROOFS.md",
        "thresholdout/privacy/learning/dpsgd/PROOFS.md",
        "thresholdout/privacy/learning/dpem/PROOFS.md",
        "thresholdout/privacy/learning/sgld/PROOFS.md",
        "thresholdout/privacy/learning/FEDERATED.md",
        "thresholdout/privacy/learning/propagation/PROOFS.md",
        "thresholdout/privacy/learning/propagation/THEORY.md",
        "thresholdout/privacy/auditing/PROOFS.md",
    ),
    "measurements": ("benchmarks/README.md",),
    "contributing": ("CONTRIBUTING.md", "CHANGELOG.md"),
}
"""Pages with texts of the project's files, and these files."""

_HERE = "<!-- the text stands in the project: see conf.py -->"

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)#\s]*)(?P<anchor>#[^)]*)?\)")
_ROW = re.compile(r"^\| (?P<names>`.*?) \|", re.MULTILINE)
_PACKAGE = re.compile(r"^## `(?P<package>[\w.]+)`\n(?P<body>.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


_HEADING = re.compile(r"^(```.*?^```$)|^(?=#+ )", re.MULTILINE | re.DOTALL)


def lowered(text: str) -> str:
    """Return a text whose headings are one level lower; lines of code stay as they are."""
    return _HEADING.sub(lambda found: found[1] or "#", text)


def begins(text: str) -> bool:
    """Return whether a file's text begins a page."""
    return text.startswith(_HERE)


def title_anchor(path: str) -> str:
    """Return the anchor of a file's title, which is a section of a page."""
    title = (ROOT / path).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
    return "#" + re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")


def taken(text: str, files: tuple[str, ...]) -> str:
    """Return a page with the texts of files in their place: as sections, except for a file that begins the page."""
    before, after = text.split(_HERE)
    texts = [moved((ROOT / file).read_text(encoding="utf-8"), file) for file in files]
    whole = int(begins(text))
    return "\n".join([before, *texts[:whole], *map(lowered, texts[whole:]), after])


def moved(text: str, source: str) -> str:
    """Let links between files of the project be links between pages; what has no page is named only."""
    names = {path: name for name, paths in PAGES.items() for path in paths} | {"README.md": "index"}
    first = {paths[0] for name, paths in PAGES.items() if begins((HERE / f"{name}.md").read_text(encoding="utf-8"))}

    def link(found: re.Match[str]) -> str:
        target = found["target"]
        if not target or "://" in target:
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if found["image"]:
            return f"![{found['text']}](/{posixpath.relpath(path, 'docs')})"
        if path.startswith("docs/"):
            return f"[{found['text']}](/{path.removeprefix('docs/')}{found['anchor'] or ''})"
        if path == "examples" or path.removeprefix("examples/").removesuffix(".py") in examples_gallery.ORDER:
            return f"[{found['text']}](/gallery/{'index' if path == 'examples' else posixpath.basename(path)[:-3]}.rst)"
        if path not in names:
            return found["text"]
        anchor = found["anchor"] or ("" if path in first or path == "README.md" else title_anchor(path))
        return f"[{found['text']}](/{names[path]}.md{anchor})"

    return _LINK.sub(link, text)


def exported(text: str) -> dict[str, list[str]]:
    """Return the names in the tables of the reference, by package."""
    return {
        found["package"]: [name for row in _ROW.finditer(found["body"]) for name in re.findall(r"`(\w+)", row["names"])]
        for found in _PACKAGE.finditer(text)
    }


def linked(text: str) -> str:
    """Let every name in the tables of the reference link to its own page."""

    def section(found: re.Match[str]) -> str:
        def row(names: re.Match[str]) -> str:
            return "| " + re.sub(r"`(\w+)`", rf"{{py:obj}}`\1 <{found['package']}.\1>`", names["names"]) + " |"

        return f"## `{found['package']}`\n" + _ROW.sub(row, found["body"])

    pages = "\n".join(f"generated/{package}.{name}" for package, names in exported(text).items() for name in names)
    return _PACKAGE.sub(section, text) + f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def write_pages(app: Sphinx) -> None:
    """Write a page for each public name, from its docstring, and remove those of names that are gone."""
    folder = HERE / "generated"
    folder.mkdir(exist_ok=True)
    kept_pages = set()
    for package, names in exported((HERE / "reference.md").read_text()).items():
        for name in names:
            kept = getattr(importlib.import_module(package), name)
            kind = "class" if inspect.isclass(kept) else "function" if inspect.isroutine(kept) else "data"
            page = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: {package}\n\n.. auto{kind}:: {name}\n"
            path = folder / f"{package}.{name}.rst"
            kept_pages.add(path)
            if not path.exists() or path.read_text() != page:
                path.write_text(page)
    for path in set(folder.iterdir()) - kept_pages:
        path.unlink()


def read(app: Sphinx, name: str, content: list[str]) -> None:
    """Take a page's text from where it stands."""
    if name in PAGES:
        for file in PAGES[name]:
            app.env.note_dependency(str(ROOT / file))
        content[0] = taken(moved(content[0], f"docs/{name}.md"), PAGES[name])
    elif name == "reference":
        content[0] = linked(moved(content[0], "docs/reference.md"))
    elif name.startswith("gallery/"):
        example = name.removeprefix("gallery/")
        content[0] += examples_gallery.output(example) if examples_gallery.kept(example) else ""
    elif not name.startswith("generated/"):
        content[0] = moved(content[0], f"docs/{name}.md")


def skip(app: Sphinx, what: str, name: str, member: object, skipped: bool, options: object) -> bool | None:
    """Leave out what a class has from other libraries."""
    return True if str(getattr(member, "__module__", "")).startswith("sklearn") else None


def setup(app: Sphinx) -> None:
    """Enter what is done to pages."""
    app.connect("builder-inited", write_pages)
    app.connect("source-read", read)
    app.connect("autodoc-skip-member", skip)
