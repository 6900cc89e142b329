"""No demonstration, example, docstring or block of the README depends on luck.

Each is run with the noise of its guards taken away, and the questions that they answer are recorded. From the actual
gaps between training values and holdout, and from the exact law of the noise, follows the probability that any of them
is answered from the other part in a run with real noise; it has to be below 1e-6 (union over questions). Where an
answer from the holdout is part of the run, it has to come out the same with that answer's noise at either end of a
range that it leaves with a probability below 1e-8.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

import thresholdout
from tests.oracles.laplace_sums import difference_at_least
from tests.oracles.noise import at_least, probability
from thresholdout import SystemNoise, Thresholdout
from thresholdout.mechanisms import GaussianGuard
from thresholdout.mechanisms.thresholdout import SparseVector
from thresholdout.simulation.demonstration import demonstrate, dependent_records, ordinary_search, reuse

ROOT = Path(__file__).parents[1]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
UNLIKELY = 1e-6  # for a whole run
_TAIL = 21  # scales: a Laplace number is beyond with probability below 1e-9
_SIGMAS = 6.5  # a normal number is beyond with probability below 1e-10


@dataclass
class Run:
    """What the guards with real noise did in a run.

    Attributes
    ----------
    chance : float
        Bound on the probability that some question is answered from the other part.
    noisy : int
        Answers that show the holdout's value with noise.
    gaussian : list
        Standard deviation of each answer with Gaussian noise, and the step of its grid.
    """

    chance: float = 0.0
    noisy: int = 0
    gaussian: list[tuple[float, float]] = field(default_factory=list)


class Fixed:
    """Noise at a fixed place of its law: none in comparisons, and the given part of a range in answers."""

    for_release = True

    def __init__(self, place: float, answers: Fraction | None = None) -> None:
        self.place = place
        self.answers = answers

    def laplace(self, scale: Fraction) -> int:
        return round(self.place * _TAIL * scale) if scale == self.answers else 0

    def rounded_gaussian(self, centre: Fraction, scale: Fraction) -> int:
        return round(centre + Fraction(self.place * _SIGMAS) * scale)

    def uniform(self, bits: int, size: int) -> NDArray[np.uint64]:
        raise AssertionError("a coin is tossed, whose chance is not counted here")


def uncounted(self: SystemNoise, *scales: object) -> int:
    """Stand for real noise that a run may not draw: a mechanism that this test does not know."""
    raise AssertionError("noise is drawn whose chance is not counted here")


@contextlib.contextmanager
def recorded(monkeypatch: pytest.MonkeyPatch, places: tuple[float, ...] = (0.0,)) -> Iterator[Run]:
    """Replace the real noise of guards in this process; answers take the given places in turn."""
    run, step, start, blur = Run(), SparseVector.step, SparseVector.start, GaussianGuard.step

    def began(self: SparseVector, noise: Any) -> Any:
        return start(self, Fixed(0.0) if noise.for_release else noise)

    def stepped(self: SparseVector, state: Any, train: float, holdout: float, noise: Any) -> Any:
        if not noise.for_release:
            return step(self, state, train, holdout, noise)
        place = places[run.noisy % len(places)]
        after, outcome = step(self, state, train, holdout, Fixed(place, self._answer_scale))
        gap = abs(round(holdout * self._steps) - round(train * self._steps))
        needed = self._threshold - gap + 1  # for an answer from the holdout
        if outcome.source == "train":
            run.chance += float(difference_at_least(needed, self._test_scale, self._threshold_scale))
        else:
            run.noisy += 1
            run.chance += float(difference_at_least(1 - needed, self._test_scale, self._threshold_scale))
        return after, outcome

    def blurred(self: GaussianGuard, state: Any, train: Any, holdout: Any, noise: Any) -> Any:
        if not noise.for_release:
            return blur(self, state, train, holdout, noise)
        place = places[run.noisy % len(places)]
        run.noisy += 1
        run.gaussian.append((self.parameters.schedule.scale(state.asked + 1), 1.0 / self.parameters.intervals))
        return blur(self, state, train, holdout, Fixed(place))

    with monkeypatch.context() as patch:
        patch.setattr(SparseVector, "start", began)
        patch.setattr(SparseVector, "step", stepped)
        patch.setattr(GaussianGuard, "step", blurred)
        for name in ("laplace", "rounded_gaussian", "uniform"):
            patch.setattr(SystemNoise, name, uncounted)
        yield run


def holds(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], mixed: bool = True) -> Run:
    """Check that a run is the same, whatever the noise, but for an unlikely event; return what its guards did.

    Noise of several answers is at the same end for all, and, unless they are never compared, at alternating ones.
    """
    with recorded(monkeypatch) as run:
        expected = work()
    assert run.chance + 1e-8 * run.noisy < UNLIKELY
    alternating = [(1.0, -1.0), (-1.0, 1.0)] if mixed and run.noisy > 1 else []
    for places in [(1.0,), (-1.0,), *alternating] if run.noisy else []:
        with recorded(monkeypatch, places) as again:
            assert work() == expected
        assert again.chance < UNLIKELY
    return run


def passes(test: doctest.DocTest, folder: Path) -> Callable[[], bool]:
    """Return a function that runs examples as doctests, from the beginning, and tells whether they pass."""
    names = dict(test.globs)

    def work() -> bool:
        test.globs = dict(names)
        runner, shown, before = doctest.DocTestRunner(verbose=False, optionflags=FLAGS), io.StringIO(), Path.cwd()
        os.chdir(folder)
        try:
            failed = runner.run(test, out=shown.write).failed
        finally:
            os.chdir(before)
        assert not failed, shown.getvalue()
        return True

    return work


def documented() -> list[doctest.DocTest]:
    """Return the docstrings of the package that ask a guard, or make one."""
    finder = doctest.DocTestFinder()
    names = [info.name for info in pkgutil.walk_packages(thresholdout.__path__, "thresholdout.")]
    tests = [
        test for name in names if not name.endswith("__main__") for test in finder.find(importlib.import_module(name))
    ]
    makes = re.compile(r"Guard\w*\(|Guard\.create\(|Thresholdout\(")
    return [test for test in tests if any(makes.search(one.source) for one in test.examples)]


DOCUMENTED = documented()
SCRIPTS = ["grid_search", "hill_climbing", "kfold", "lightgbm_early_stopping", "optuna_study"]


def test_the_law_of_a_difference() -> None:
    """Against the convolution, term by term."""
    first, second = Fraction(7, 2), Fraction(9, 5)
    for k in (-20, -3, 0, 1, 2, 15):
        plain = sum(probability(i, first) * at_least(k - i, second) for i in range(-600, 601))
        assert float(difference_at_least(k, first, second) / plain) == pytest.approx(1.0, abs=1e-12)


def test_the_range_of_an_answer() -> None:
    scale = Fraction(1 << 20)
    assert 2 * at_least(_TAIL * scale.numerator, scale) < 1e-8
    assert 2 * norm.sf(_SIGMAS) < 1e-8


def test_a_lucky_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that must fail: gaps near the threshold, and a value with noise that is shown."""

    def asked(train: float, shown: bool = False) -> Callable[[], object]:
        def work() -> object:
            guard = Thresholdout(
                np.arange(1000.0), threshold=0.1, noise_scale=0.001, queries=5, budget=2, mechanism="thresholdout"
            )
            answer = guard.ask(train, np.arange(1000) < 500)
            return (answer.source, answer.value) if shown else answer.source

        return work

    for train in (0.5, 0.56, 0.65):
        holds(monkeypatch, asked(train))
    for train in (0.58, 0.595, 0.605, 0.62):
        with pytest.raises(AssertionError):
            holds(monkeypatch, asked(train))
    with pytest.raises(AssertionError):
        holds(monkeypatch, asked(0.65, shown=True))
    with recorded(monkeypatch) as run:  # an independent count, by the continuous law
        asked(0.58)()
    assert run.chance == pytest.approx((4 * np.exp(-10) - np.exp(-20)) / 6, rel=1e-6)


@pytest.mark.parametrize("test", DOCUMENTED, ids=lambda test: test.name)
def test_docstrings(test: doctest.DocTest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    holds(monkeypatch, passes(test, tmp_path))


def test_docstrings_are_found() -> None:
    names = {test.name for test in DOCUMENTED}
    assert {"thresholdout.guard.Thresholdout", "thresholdout.service.PredictionGuard"} <= names
    assert {"thresholdout.cross_validation.KFoldGuard", "thresholdout.model_selection.search.GuardedSearchCV"} <= names


def test_the_readme(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    needed = [block for block in blocks if "DPSGD" not in block]  # which is slow, and asks no guard
    test = doctest.DocTestParser().get_doctest("\n".join(needed), {}, "README", "README.md", 0)
    assert holds(monkeypatch, passes(test, tmp_path)).noisy == 0


@pytest.mark.parametrize("script", SCRIPTS)
def test_examples(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [script])

    def work() -> str:
        with contextlib.redirect_stdout(io.StringIO()) as shown, warnings.catch_warnings():
            runpy.run_path(str(ROOT / "examples" / f"{script}.py"), run_name="__main__")
        return shown.getvalue()

    holds(monkeypatch, work)


def test_every_example_with_a_guard_is_here() -> None:
    with_guard = {
        path.stem for path in (ROOT / "examples").glob("*.py") if re.search(r"Thresholdout\(|Guard\(", path.read_text())
    }
    assert with_guard == set(SCRIPTS)


def test_the_demonstrations_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> object:
        searches = [ordinary_search(seed) for seed in range(1, 5)]
        errors = [np.abs(search.answers - search.fresh) for search in searches]
        widths = [search.half_widths for search in searches]
        assert all((error <= width).all() for error, width in zip(errors, widths, strict=True))
        chosen = [(search.chosen_by_guard, search.spent, search.unanswered) for search in searches]
        return round(max(map(np.max, errors)), 3), chosen, widths[0].max()

    assert holds(monkeypatch, work, mixed=False).noisy == 4  # one for each guard


def test_the_demonstrations_aggregation(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> object:
        plain, guarded = reuse().values()
        assert abs(guarded.reported - guarded.fresh) <= guarded.half_width
        assert plain.reported - plain.fresh > 0.08
        return plain, guarded

    assert holds(monkeypatch, work).noisy == 1


def test_the_demonstrations_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise that holds is certain; that the other one is broken follows from 120 independent normal numbers."""
    with recorded(monkeypatch) as run:
        independent, grouped = dependent_records()
    assert run.chance < UNLIKELY
    assert (grouped.broken, grouped.errors.size) == (0, 120)
    assert len(run.gaussian) == run.noisy == independent.errors.size == 120
    kept = 1.0
    for error, (sigma, step) in zip(independent.errors, run.gaussian, strict=True):
        kept *= float(norm.cdf((independent.half_width + step - error) / sigma))
    assert kept < UNLIKELY


def test_demonstrations_treat_exhaustion_as_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With a threshold that nothing meets, all scenes run out of budget; everything is still printed and drawn."""
    start = SparseVector.start

    def strict(self: SparseVector, noise: Any) -> Any:
        self._threshold = -(10**6) * self._one
        return start(self, noise)

    monkeypatch.setattr(SparseVector, "start", strict)
    lines: list[str] = []
    demonstrate(picture=tmp_path / "demo.png", echo=lines.append)
    text = "\n".join(lines)
    assert "candidates without an answer: the guard had been used up  72 of 80" in text
    assert "nothing: the guard was used up" in text
    assert re.search(r"groups = patients .* 5 +0 times", text)
    assert (tmp_path / "demo.png").exists()
