"""The documents' examples are tests; those of a page build on each other, so one worker has to run the whole file."""

from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

collect_ignore_glob = ["docs/_build/*", "docs/gallery/*"]

pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["README.md", "docs/**/*.md", "docs/*.md"],
    excludes=["docs/_build/**", "docs/generated/**", "docs/gallery/**"],
).pytest()
