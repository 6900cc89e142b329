"""``python -m tests.words``: texts, docstrings and messages use none of the words of ``docs/words.txt``.

Pages, docstrings and comments have no clauses that begin with "what", either.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.documents import MADE, PAGES, ROOT

WORDS = ROOT / "docs" / "words.txt"
_WHAT = re.compile(r"\bwhat(ever)?\b(?![^.]*\?)", re.IGNORECASE)
_CODE = re.compile(r"`[^`]*`|^ *(?:>>>|\.\.\.) .*|^ *what :", re.MULTILINE)
"""Code inside of a docstring: quoted names, examples, and the parameter ``what`` of errors."""
PROOFS = tuple(path for package in ("thresholdout", "graphs") for path in sorted((ROOT / package).rglob("*.md")))
PLAIN = (
    *("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"),
    *(f"docs/{page}.md" for page in ("index", "start", "model_selection", "evaluation_year", "big")),
    *(f"docs/{page}.md" for page in ("agents", "serve", "operation", "learners", "how", "reference", "measurements")),
    *(f"docs/{page}.md" for page in ("errors", "contributing", "history", "hypotheses", "papers")),
    "benchmarks/README.md",
    *(str(path.relative_to(ROOT)) for path in PROOFS),
)
"""Pages without clauses that begin with "what"; the others quote printed texts."""


def patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return each pattern of the list with its replacement."""
    lines = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [(re.compile(word, re.IGNORECASE), better) for word, better in (line.split("\t") for line in lines)]


def texts() -> Iterator[Path]:
    """Yield the files that people read: pages, and the packages with their templates."""
    yield from (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md")
    for package in ("thresholdout", "graphs", "examples", "benchmarks"):
        for suffix in ("py", "md", "html"):
            yield from (path for path in (ROOT / package).rglob(f"*.{suffix}") if path.parts[-2] not in MADE)


def prose(source: str) -> Iterator[tuple[int, str]]:
    """Yield the first line and the text of each docstring and comment of a module, without code inside of them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, _CODE.sub("", node.value.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def found(name: str, text: str) -> list[str]:
    """Return a line for each listed word, and for each what-clause of a plain page or of a package's prose."""
    said = [
        f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {' '.join(match[0].split())!r}, say {better}"
        for pattern, better in patterns()
        for match in pattern.finditer(text)
    ]
    if name.startswith(("thresholdout/", "graphs/")) and name.endswith(".py"):
        said += [f"{name}:{line}: a what-clause" for line, part in prose(text) if _WHAT.search(part)]
    if name in PLAIN:
        said += [f"{name}: a what-clause near {text[m.start() : m.start() + 40]!r}" for m in _WHAT.finditer(text)]
    return said


if __name__ == "__main__":
    wrong = [line for path in texts() for line in found(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))]
    print("\n".join(wrong), file=sys.stderr)
    sys.exit(bool(wrong))
