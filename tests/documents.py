"""The documents whose examples and numbers are tests."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
MADE = ("_build", "generated", "gallery")
"""Folders of docs that its build fills."""
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.relative_to(ROOT / "docs").parts[0] not in MADE),
]


def documents() -> str:
    """Return the text of all of them."""
    return "\n".join(page.read_text() for page in PAGES)
