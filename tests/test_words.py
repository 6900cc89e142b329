"""The lint of words finds the words of its list."""

from __future__ import annotations

import pytest

from tests.words import found


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Bounds are rounded conservatively.", []),
        ("One.\nBounds are rounded to the Safe side.", ["a.md:2: 'to the Safe side', say conservatively"]),
        ("other\nlooks at it", []),
        ("private looks at it", ["a.md:1: 'private looks', say (other, private) releases"]),
    ],
)
def test_listed_words_are_found(text: str, lines: list[str]) -> None:
    assert found("a.md", text) == lines


def test_a_plain_page_has_no_what_clause() -> None:
    assert len(found("README.md", "It says what it knows.")) == 1
    assert found("README.md", "What does it cost? It costs nothing.") == []
    assert found("docs/other.md", "It says what it knows.") == []


def test_docstrings_and_comments_of_a_package_have_no_what_clause() -> None:
    source = '"""Return what is left."""\n\nx = "what it is"  # what it costs\n'
    assert found("graphs/a.py", source) == ["graphs/a.py:1: a what-clause", "graphs/a.py:3: a what-clause"]
    assert found("benchmarks/a.py", source) == []
    code = '"""What does `what` mean?\n\n    what : str\n        A word.\n\n    >>> print(a.what)\n"""\n'
    assert found("graphs/a.py", code) == []
