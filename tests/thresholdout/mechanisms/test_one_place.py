"""A mechanism is one thing: nobody else asks which one it is, and a new one needs its own module and one list."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from benchmarks.structure import counts, imports
from benchmarks.structure.imports import Module
from graphs import Groups
from tests.cases import for_each
from thresholdout import BudgetExhausted, InputError, LedgerUnusable, Thresholdout
from thresholdout.certificates.certify_parameters import certify_parameters
from thresholdout.data.values import unit_mean
from thresholdout.errors import InputTypeError
from thresholdout.mechanisms import catalogue
from thresholdout.mechanisms.base import UNKNOWN, Known, Mechanism, Outcome, Past
from thresholdout.mechanisms.kind import CertificateT, Certifier, Kind, Parameters
from thresholdout.noise.sources import NoiseSource
from thresholdout.report.contents import GuardReport

ROOT = Path(__file__).parents[3]

# Theorems about one mechanism, and the choice of one where none is given, name it. Nobody else does.
NAMED = {
    "thresholdout/certificates/certificate.py": {"SparseVectorParameters"},
    "thresholdout/certificates/certify_parameters.py": {"SparseVectorParameters"},
    "thresholdout/certificates/problem.py": {"SparseVectorMechanism", "SparseVectorParameters"},
    "thresholdout/planning/algorithm_1.py": {"SparseVectorParameters"},
    "thresholdout/planning/declared_parameters.py": {
        "ClaimsParameters",
        "FoldClaimsParameters",
        "LadderParameters",
        "SparseVectorParameters",
    },
    "thresholdout/planning/declaration.py": {"SparseVectorParameters"},
    "thresholdout/planning/leaderboard.py": {"ClaimsParameters"},
    "thresholdout/planning/request.py": {"ClaimsParameters"},
    "thresholdout/planning/solving.py": {"ClaimsMechanism"},
    "thresholdout/planning/privacy_budget.py": {"ClaimsMechanism", "ClaimsParameters", "SparseVectorParameters"},
    "thresholdout/service/guarantee_text.py": {"LadderParameters"},
}


def classes() -> set[str]:
    """Return the names of the classes of all mechanisms, their parameters and their states."""
    mechanisms = {one.__name__ for one in Mechanism.__subclasses__() if one.__module__.startswith("thresholdout.")}
    made: set[Any] = {kind.parameters for kind in catalogue.KINDS} | {kind.state for kind in catalogue.KINDS}
    return mechanisms | {one.__name__ for one in made}


@cache
def modules() -> dict[str, Module]:
    return imports.read_modules(ROOT, ["thresholdout"])


def outside(sources: dict[str, Module]) -> dict[str, Module]:
    """Return the modules that are none of the mechanisms'."""
    return {name: module for name, module in sources.items() if not name.startswith("thresholdout.mechanisms")}


def test_every_mechanism_is_in_the_list() -> None:
    built = {"ClaimsMechanism", "FoldClaims", "Ladder", "SparseVectorMechanism"}
    parameters = {one.__name__ for one in Parameters.__subclasses__() if one.__module__.startswith("thresholdout.")}
    assert built <= classes()
    assert {kind.parameters.__name__ for kind in catalogue.KINDS} == parameters
    assert len({kind.name for kind in catalogue.KINDS}) == len(built) == len(catalogue.KINDS)


@pytest.mark.slow
def test_nobody_tests_for_the_type_of_a_mechanism() -> None:
    assert counts.type_tests(outside(modules()), classes()) == {}


@pytest.mark.slow
def test_only_theorems_and_plans_name_a_mechanism() -> None:
    wanted = classes()
    named = {module.path.as_posix(): counts.identifiers(module.tree) & wanted for module in outside(modules()).values()}
    assert {path: names for path, names in named.items() if names} == NAMED


@pytest.mark.slow
def test_nobody_compares_the_name_under_which_a_ledger_keeps_one() -> None:
    names = {kind.name for kind in catalogue.KINDS}
    found = [
        (module.path.as_posix(), node.lineno)
        for module in outside(modules()).values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Compare) and kept_name(node.left)
        if any(isinstance(side, ast.Constant) and side.value in names for side in node.comparators)
    ]
    assert found == []


def kept_name(node: ast.AST) -> bool:
    """Whether an expression is ``...["mechanism"]``."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value == "mechanism"


@for_each(
    "source",
    [
        "def f(p):\n    return isinstance(p, LadderParameters)\n",
        "def f(p):\n    return isinstance(p, int | LadderParameters)\n",
        "def f(p):\n    return type(p) is LadderParameters\n",
        "def f(p):\n    match p:\n        case LadderParameters():\n            return 1\n",
        "def f(m):\n    return isinstance(m, Ladder)\n",
    ],
)
def test_the_scan_finds_type_tests(source: str, tmp_path: Path) -> None:
    (tmp_path / "thresholdout").mkdir()
    (tmp_path / "thresholdout" / "__init__.py").touch()
    (tmp_path / "thresholdout" / "other.py").write_text(source)
    found = imports.read_modules(tmp_path, ["thresholdout"])
    assert counts.type_tests(outside(found), classes()) == {"thresholdout/other.py": 1}
    assert counts.identifiers(found["thresholdout.other"].tree) & classes()


@dataclass(frozen=True, slots=True)
class CellsParameters(Parameters):
    """Public parameters of `Cells`."""

    words: ClassVar[str] = "Every answer is the middle of one of a few cells of the range."

    queries: int
    cells: int = 8
    confidence: float = 0.95

    def half_width(self, n: int) -> float:
        """Return Hoeffding's half-width for every query that some answers may lead to, and half a cell."""
        nats = self.queries * math.log(self.cells) + math.log(2.0 * self.queries / (1.0 - self.confidence))
        return math.sqrt(nats / (2.0 * n)) + 0.5 / self.cells


@dataclass(frozen=True, slots=True)
class CellsState:
    """State of `Cells`."""

    asked: int

    def agrees(self, past: Past) -> bool:
        return self.asked == past.asked

    def to_text(self) -> str:
        return f"cells/1 {self.asked}"

    @classmethod
    def from_text(cls, text: str) -> CellsState:
        tag, _, asked = text.partition(" ")
        if tag != "cells/1" or not asked.isdecimal():
            raise InputError("state", "a text of another form", "the text of a cells/1 state")
        return cls(int(asked))


class Cells(Mechanism[CellsState, float]):
    """Tells in which cell of the range a mean is."""

    name: ClassVar[str] = "cells"

    def __init__(self, parameters: CellsParameters, n: int) -> None:
        self.parameters = parameters
        self._half_width = parameters.half_width(n)

    def start(self, noise: NoiseSource) -> CellsState:
        return CellsState(0)

    def read(self, values: object, n: int, bounds: tuple[float, float], argument: str, known: Known = UNKNOWN) -> float:
        return unit_mean(values, n, bounds, argument)

    def step(self, state: CellsState, train: float, holdout: float, noise: NoiseSource) -> tuple[CellsState, Outcome]:
        if refusal := self.refusal(state):
            raise refusal
        cells = self.parameters.cells
        value = (min(int(holdout * cells), cells - 1) + 0.5) / cells
        interval = max(0.0, value - self._half_width), min(1.0, value + self._half_width)
        return CellsState(state.asked + 1), Outcome(value, "holdout", state.asked, state.asked + 1, interval=interval)

    def fail(self, state: CellsState, train: float, noise: NoiseSource) -> tuple[CellsState, Outcome]:
        if refusal := self.refusal(state):
            raise refusal
        asked = state.asked
        return CellsState(asked + 1), Outcome(train, "failed", asked, asked + 1, interval=(0.0, 1.0))

    def refusal(self, state: CellsState) -> BudgetExhausted | None:
        queries = self.parameters.queries
        return BudgetExhausted("queries", state.asked, queries) if state.asked >= queries else None

    def restore(self, text: str) -> CellsState:
        return CellsState.from_text(text)

    def remaining(self, state: CellsState) -> int | None:
        return self.parameters.queries - state.asked


def certified(parameters: CellsParameters, by: Certifier[CertificateT]) -> CertificateT:
    dependent = by.model.variance_inflation() > 1.0
    return by.stated(
        "cells",
        parameters.half_width(by.model.n),
        "independent records",
        "a union bound over all answers",
        confidence=min(by.confidence, parameters.confidence),
        likely=lambda value: parameters.half_width(by.model.n),
        why_not="the records depend on each other" if dependent else "",
    )


CELLS = Kind("cells", CellsParameters, CellsState, lambda parameters, n: Cells(parameters, n), certified)

N = 20_000
X = np.arange(2.0 * N)
Y = np.arange(2 * N) % 4 == 0
PARAMETERS = CellsParameters(queries=3)


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "KINDS", [*catalogue.KINDS, CELLS])


def made(**others: Any) -> Thresholdout:
    mechanism = others.pop("mechanism", PARAMETERS)
    return Thresholdout((X[N:], Y[N:]), train=(X[:N], Y[:N]), mechanism=mechanism, **others)


@pytest.mark.usefixtures("listed")
class TestASeventh:
    """A mechanism that no module of the library knows, added through the one list."""

    def test_answers_with_its_certificate(self) -> None:
        guard = made()
        answer = guard.ask(lambda features, labels: labels, key="share")
        assert (answer.value, answer.about, answer.source, guard.status.answers_left) == (
            0.3125,
            "query",
            "holdout",
            2,
        )
        assert answer.interval[0] < 0.25 < answer.interval[1]
        assert guard.ask(lambda features, labels: labels, key="share").repeated
        certificate = guard.certificate
        assert certificate.route == "cells"
        assert certificate.tolerance == pytest.approx(PARAMETERS.half_width(N))
        assert certificate.estimand.short == "the average over all records"
        assert "cells" in repr(guard)
        guard.ask(lambda features, labels: labels)
        guard.ask(lambda features, labels: ~labels)
        with pytest.raises(BudgetExhausted):
            guard.ask(lambda features, labels: labels | labels)

    def test_has_no_certificate_where_its_theorem_does_not_hold(self) -> None:
        certificate = certify_parameters(Groups([record // 2 for record in range(100)]), PARAMETERS)
        assert certificate.chosen is None
        assert "depend on each other" in str(certificate.routes.loc["cells", "why_not"])

    @pytest.mark.slow
    def test_is_in_the_report(self) -> None:
        guard = made()
        guard.ask(lambda features, labels: labels)
        report: GuardReport = guard.report()
        assert CellsParameters.words in report.html
        assert report.parameters == PARAMETERS
        assert (report.queries, report.information_released) == (1, None)

    def test_survives_a_ledger(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ask: Callable[[Thresholdout], Any] = partial(Thresholdout.ask, train_values=lambda features, labels: labels)
        before = made(ledger=tmp_path / "guard.db")
        first = ask(before)
        again = made(ledger=tmp_path / "guard.db")
        assert again.parameters == PARAMETERS
        assert again.status.answers_left == 2
        assert again.history.equals(before.history)
        assert ask(again).value == first.value
        monkeypatch.setattr(catalogue, "KINDS", [kind for kind in catalogue.KINDS if kind is not CELLS])
        with pytest.raises(LedgerUnusable, match="'cells', which this version does not have"):
            made(ledger=tmp_path / "guard.db", mechanism=None)

    def test_is_asked_for_what_it_does_only(self) -> None:
        guard = made()
        with pytest.raises(InputError, match="'claims' for a list of queries; got a cells"):
            guard.ask_all([(0.5, Y[N:])])
        with pytest.raises(InputError, match="'claims' for a comparison; got a cells"):
            guard.compare(object(), object(), cv="training")
        with pytest.raises(InputError, match="'claims' for a gate; got a cells"):
            guard.gate(object())
        with pytest.raises(InputError, match="'fixed_features' for CellsParameters"):
            made(sampling="fixed_features")
        assert guard.status.answers_left == 3


def test_parameters_that_are_in_no_list_are_refused() -> None:
    with pytest.raises(InputTypeError, match=r"parameters must be those of a mechanism"):
        made()
