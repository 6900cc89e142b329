"""Every test and every piece of code that the documents of proofs and mends name exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MENDS = ROOT / "docs" / "what-was-broken.md"
_TEST = re.compile(r"`(tests/[\w/.-]+\.py)((?:::\w+)*)`")


def named_tests(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return file and names of each test that a text names in backquotes."""
    return [(file, tuple(names.split("::")[1:])) for file, names in _TEST.findall(text)]


@cache
def collected(file: str) -> frozenset[tuple[str, ...]]:
    """Return the names of a file's tests, those of classes after the name of the class, without running it."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found: set[tuple[str, ...]] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            found.add((node.name,))
        elif isinstance(node, ast.ClassDef):
            inner = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
            found.update((node.name, name) for name in inner if name.startswith("test"))
            if any(name.startswith("test") for name in inner):
                found.add((node.name,))
    return frozenset(found)


def missing_tests(text: str) -> list[str]:
    """Return what a text names and no file has."""
    return [
        "::".join((file, *names))
        for file, names in named_tests(text)
        if not (ROOT / file).is_file() or (names and names not in collected(file)) or not collected(file)
    ]


def sections(text: str) -> dict[str, str]:
    """Return the parts of a text by the headings of the third level."""
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


class TestMends:
    def test_every_named_test_exists(self) -> None:
        assert missing_tests(MENDS.read_text(encoding="utf-8")) == []

    def test_every_section_has_effect_mend_and_tests(self) -> None:
        found = sections(MENDS.read_text(encoding="utf-8"))
        assert len(found) >= 18
        for heading, text in found.items():
            assert all(f"**{word}.**" in text for word in ("Effect", "Mend", "Tests")), heading
            assert named_tests(text), heading


@pytest.mark.parametrize(
    "text",
    [
        "`tests/test_hypotheses.py::test_of_nothing`",
        "`tests/test_of_nothing.py`",
        "`tests/test_hypotheses.py::TestMends::test_of_nothing`",
        "`tests/test_hypotheses.py::test_every_named_test_exists`",
    ],
)
def test_what_does_not_exist_is_found(text: str) -> None:
    assert missing_tests(text) == [text.strip("`")]
