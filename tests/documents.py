"""The documents whose examples and numbers are tests."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def documents() -> str:
    """Return the text of all of them."""
    return "\n".join(page.read_text() for page in PAGES)
