"""Every test and every piece of code that the documents of proofs and mends name exists, and every route has a row."""

from __future__ import annotations

import ast
import importlib
import re
from functools import cache, reduce
from pathlib import Path
from typing import Any

from graphs import Groups, Independent, MarkovChain
from graphs.models.out_of_fold import OutOfFold
from tests.cases import for_each
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.certificates.new_data import generalization_certificate
from thresholdout.mechanisms import (
    FoldClaimsParameters,
    LadderParameters,
    SparseVectorParameters,
)
from thresholdout.mechanisms.catalogue import KINDS
from thresholdout.mechanisms.claims import ClaimsParameters
from thresholdout.privacy.accounting import BlackBox

ROOT = Path(__file__).parents[1]
MENDS = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
HYPOTHESES = (ROOT / "docs" / "hypotheses.md").read_text(encoding="utf-8")
HEADER = ["theorem", "hypothesis", "enforced by", "test", "broken twin"]
_TEST = re.compile(r"`(tests/[\w/.-]+\.py)((?:::\w+)*)`")
_CODE = re.compile(r"`((?:thresholdout|graphs)(?:\.\w+)*):([\w.]+)`")

PARAMETERS: dict[type[Any], Any] = {
    ClaimsParameters: ClaimsParameters(),
    FoldClaimsParameters: FoldClaimsParameters(800.0, 5.001),
    SparseVectorParameters: SparseVectorParameters(0.03, 0.002, budget=1, queries=100),
    LadderParameters: LadderParameters(queries=10),
}
MODELS = [
    Independent(4000),
    Groups([record // 4 for record in range(4000)]),
    MarkovChain([[0.6, 0.4], [0.4, 0.6]], 4000),
    OutOfFold([record % 5 for record in range(4000)]),
]


def named_tests(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return file and names of each test that a text names in backquotes."""
    return [(file, tuple(names.split("::")[1:])) for file, names in _TEST.findall(text)]


@cache
def collected(file: str) -> dict[tuple[str, ...], bool]:
    """Return the names of a file's tests and of its classes of tests, without running it, and which are slow."""
    found: dict[tuple[str, ...], bool] = {}
    for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            found[(node.name,)] = is_slow(node)
        elif isinstance(node, ast.ClassDef):
            inner = [item for item in node.body if isinstance(item, ast.FunctionDef) and item.name.startswith("test")]
            slow = is_slow(node)
            tests: dict[tuple[str, ...], bool] = {(node.name, item.name): slow or is_slow(item) for item in inner}
            found.update({(node.name,): all(tests.values()), **tests} if tests else {})
    return found


def is_slow(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Return whether all cases of a test are marked as slow, and not only some of its parameters."""
    return any(ast.unparse(decorator) == "pytest.mark.slow" for decorator in node.decorator_list)


def are_slow(text: str) -> bool:
    """Return whether all tests that a text names are slow, so that nobody runs one by default or among simulations."""
    return all(collected(file)[names] if names else all(collected(file).values()) for file, names in named_tests(text))


def missing_tests(text: str) -> list[str]:
    """Return the tests that a text names and no file has."""
    return [
        "::".join((file, *names))
        for file, names in named_tests(text)
        if not (ROOT / file).is_file() or (names and names not in collected(file)) or not collected(file)
    ]


def missing_code(text: str) -> list[str]:
    """Return what a text names as module:name and no module has."""
    missing = []
    for module, name in _CODE.findall(text):
        try:
            reduce(getattr, name.split("."), importlib.import_module(module))
        except (ImportError, AttributeError):
            missing.append(f"{module}:{name}")
    return missing


def sections(text: str) -> dict[str, str]:
    """Return the parts of a text by the headings of the third level."""
    parts = re.split(r"^### (.+)$", text, flags=re.MULTILINE)
    return {heading.strip("`"): part.split("\n## ")[0] for heading, part in zip(parts[1::2], parts[2::2], strict=True)}


def table(section: str) -> list[list[str]]:
    """Return the lines of a section's table, its header first."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [cells[0], *cells[2:]] if cells else []


ROWS = sections(HYPOTHESES)


class TestMends:
    def test_every_named_test_exists(self) -> None:
        assert missing_tests(MENDS) == []

    def test_every_fault_has_a_change_and_a_test(self) -> None:
        lines = [line.strip("|").split(" | ") for line in MENDS.splitlines() if line.startswith("| ")]
        rows = [line for line in lines if line[0].strip() != "fault"]
        assert len(rows) >= 38
        for fault, change, tests in rows:
            assert all((fault.strip(), change.strip(), named_tests(tests))), fault


class TestRows:
    def test_every_named_test_exists(self) -> None:
        assert missing_tests(HYPOTHESES) == []

    def test_every_named_piece_of_code_exists(self) -> None:
        assert len(_CODE.findall(HYPOTHESES)) > 100
        assert missing_code(HYPOTHESES) == []

    @for_each("row", ROWS)
    def test_every_hypothesis_has_a_line_that_enforces_it_and_a_test(self, row: str) -> None:
        header, *lines = table(ROWS[row])
        assert header == HEADER
        assert lines
        for line in lines:
            assert len(line) == len(HEADER), line
            said = line[2].startswith(("declared", "stated"))
            assert _CODE.search(line[2]) or said, line
            assert named_tests(line[3]), line
            assert not are_slow(line[3]), line
            assert line[4], line

    def test_every_mechanism_is_here(self) -> None:
        assert {kind.parameters for kind in KINDS} <= set(PARAMETERS)

    @for_each(
        "parameters",
        [PARAMETERS[kind.parameters] for kind in KINDS],
        ids=lambda parameters: type(parameters).__name__,
    )
    @for_each("model", MODELS, ids=lambda model: type(model).__name__)
    def test_every_route_has_a_row(self, model: Any, parameters: Any) -> None:
        certificate = certify_parameters(model, parameters)
        assert {route.row for route in certificate.compared} <= set(ROWS)
        assert list(certificate.routes["row"]) == [route.row for route in certificate.compared]
        if certificate.chosen is None:
            assert certificate.row == "none"
        else:
            assert certificate.row == certificate.chosen.row
            assert f"docs/hypotheses.md, row {certificate.row}." in certificate.statement

    def test_what_is_said_about_new_data_has_a_row(self) -> None:
        assert {route.row for route in generalization_certificate(BlackBox(0.02), 1000).compared} <= set(ROWS)


@for_each(
    "text",
    [
        "`tests/test_hypotheses.py::test_of_nothing`",
        "`tests/test_of_nothing.py`",
        "`tests/test_hypotheses.py::TestMends::test_of_nothing`",
        "`tests/test_hypotheses.py::TestOfNothing`",
        "`tests/test_hypotheses.py::test_every_named_test_exists`",
    ],
)
def test_a_test_that_does_not_exist_is_found(text: str) -> None:
    assert missing_tests(text) == [text.strip("`")]


def test_a_hypothesis_that_only_slow_tests_show_is_found() -> None:
    slow = "`tests/test_collection.py::test_a_module_whose_examples_come_first_is_the_one_that_tests_know`"
    assert are_slow(slow)
    assert are_slow("`tests/test_collection.py`")
    assert not are_slow(f"{slow}, `tests/test_hypotheses.py::TestMends`")


@for_each("text", ["`graphs.nothing:Groups`", "`graphs:Nothing`", "`graphs:Groups.nothing`"])
def test_code_that_does_not_exist_is_found(text: str) -> None:
    assert missing_code(text) == [text.strip("`")]
