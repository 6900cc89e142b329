"""No demonstration, example, docstring or block of a document depends on luck.

Each is run with the noise of its guards taken away, and the queries that they answer are recorded. From the actual
gaps between training values and holdout, and from the exact law of the noise, follows the probability that any of them
is answered from the other part, or any claim with another outcome, in a run with real noise; it has to be below 1e-6
(union over queries; until the first other outcome, noise is drawn at the same places as without). Where an answer
that shows the holdout's value with noise is part of the run, it has to come out the same with that noise at either end
of a range that it leaves with a probability below 1e-8; answers of claims show none but by outcomes.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import os
import re
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.documents import PAGES, ROOT, documents
from tests.oracles.laplace_sums import difference_at_least
from tests.oracles.noise import at_least, probability
from thresholdout import SparseVector, SystemNoise, Thresholdout
from thresholdout.mechanisms import ClaimsMechanism
from thresholdout.mechanisms.claims.interval import UNITS, BetTest, MeanTest, ones
from thresholdout.mechanisms.sparse_vector import SparseVectorMechanism
from thresholdout.simulation.demonstration import demonstrate, dependent_records, ordinary_search, reuse

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
UNLIKELY = 1e-6  # for a whole run
CERTAIN = 1e-9  # an outcome that is another one with less than this probability is taken for certain
RUNS = 100  # with other outcomes, at most
_TAIL = 21  # scales: a Laplace number is beyond with probability below 1e-9
_FAR = UNITS << 10  # noise of more than a thousand ranges


@dataclass
class Run:
    """What the guards with real noise did in a run.

    Attributes
    ----------
    chance : float
        Bound on the probability that some query is answered from the other part, or some claim otherwise.
    outcomes : list of str
        Those of claims that are not certain.
    others : list of list of str
        What each of these may be instead.
    noisy : int
        Answers that show the holdout's value with noise.
    """

    chance: float = 0.0
    outcomes: list[str] = field(default_factory=list)
    others: list[list[str]] = field(default_factory=list)
    noisy: int = 0


class Fixed:
    """Noise at a fixed place of its law: none in comparisons, and the given part of a range in answers."""

    for_release = True

    def __init__(self, place: float, answers: Fraction | None = None) -> None:
        self.place = place
        self.answers = answers

    def laplace(self, scale: Fraction) -> int:
        return round(self.place * _TAIL * scale) if scale == self.answers else 0

    def uniform(self, bits: int, size: int) -> NDArray[np.uint64]:
        raise AssertionError("a coin is tossed, whose chance is not counted here")


def verdicts(
    outcome: Callable[[int, int], str], scales: tuple[float, ...], certain: float = CERTAIN
) -> tuple[list[str], float]:
    """Return the outcomes that a claim may have with noise, the one without first, and a bound on all others.

    Each half of a test compares with a difference of two independent numbers, the edge's noise and its own, and is
    monotone in it: bisection finds the smallest difference that changes its verdict.

    Parameters
    ----------
    outcome : callable
        The outcome, from the noise of the upper and of the lower half, less the edge's.
    scales : tuple of float
        Of the edge's noise and of a half's, in units of the range.
    certain : float
        A half whose verdict changes with less than this probability is taken for certain.
    """
    edge, own = (Fraction(scale) * UNITS for scale in scales)

    def changed(half: Callable[[int], bool]) -> float:
        quiet, chance = half(0), 0.0
        for sign in (1, -1):
            same, other = 0, _FAR
            if half(sign * other) == quiet:
                continue
            while other - same > 1:
                middle = (same + other) // 2
                same, other = (middle, other) if half(sign * middle) == quiet else (same, middle)
            chance += float(difference_at_least(other, own, edge))
        return chance

    above, rest = outcome(0, 0) == "above", 0.0
    chance = changed(lambda k: outcome(k, 0) == "above")
    uppers = [above] if chance < certain else [above, not above]
    rest += chance if chance < certain else 0.0
    outcomes = []
    for upper in uppers:
        if upper:
            outcomes.append("above")
            continue
        quiet = outcome(-_FAR, 0)
        chance = changed(lambda m: outcome(-_FAR, m) == "below")
        outcomes.append(quiet)
        if chance < certain:
            rest += chance
        else:
            outcomes.append("confirmed" if quiet == "below" else "below")
    return outcomes, rest


def uncounted(self: SystemNoise, *scales: object) -> int:
    """Stand for real noise that a run may not draw: a mechanism that this test does not know."""
    raise AssertionError("noise is drawn whose chance is not counted here")


@contextlib.contextmanager
def recorded(
    monkeypatch: pytest.MonkeyPatch, places: tuple[float, ...] = (0.0,), outcomes: tuple[str, ...] = ()
) -> Iterator[Run]:
    """Replace the real noise of guards in this process.

    Answers with noise take the given places in turn; of claims whose outcome is not certain, the first take the given
    outcomes, and the others what they have without noise.
    """
    run, step, start = Run(), SparseVectorMechanism.step, SparseVectorMechanism.start
    begin, claim, fail = ClaimsMechanism.start, ClaimsMechanism.step, ClaimsMechanism.fail
    counted: ContextVar[bool] = ContextVar("counted", default=False)

    def began(self: SparseVectorMechanism, noise: Any) -> Any:
        return start(self, Fixed(0.0) if noise.for_release else noise)

    def stepped(self: SparseVectorMechanism, state: Any, train: float, holdout: float, noise: Any) -> Any:
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

    def begun(self: ClaimsMechanism, noise: Any) -> Any:
        return begin(self, Fixed(0.0) if noise.for_release else noise)

    def claimed(self: ClaimsMechanism, state: Any, train: Any, holdout: Any, noise: Any) -> Any:
        token = counted.set(noise.for_release)
        try:
            return claim(self, state, train, holdout, Fixed(0.0) if noise.for_release else noise)
        finally:
            counted.reset(token)

    def failed(self: ClaimsMechanism, state: Any, train: Any, noise: Any) -> Any:
        return fail(self, state, train, Fixed(0.0) if noise.for_release else noise)

    def with_outcomes(test: type[MeanTest | BetTest]) -> Callable[..., Any]:
        outcome = test.outcome

        def told(self: Any, lo: int, hi: int, log_level: float, scales: Any, noise: Any) -> Any:
            if not counted.get() or not scales:
                return outcome(self, lo, hi, log_level, scales, noise)
            assert noise == (0, 0, 0)
            found, rest = verdicts(lambda k, m: outcome(self, lo, hi, log_level, scales, (0, k, m)), scales)
            run.chance += rest
            if len(found) == 1:
                return found[0]
            taken = found[0] if len(run.outcomes) >= len(outcomes) else outcomes[len(run.outcomes)]
            run.outcomes.append(taken)
            run.others.append([other for other in found if other != taken])
            return taken

        return told

    with monkeypatch.context() as patch:
        patch.setattr(ClaimsMechanism, "start", begun)
        patch.setattr(ClaimsMechanism, "step", claimed)
        patch.setattr(ClaimsMechanism, "fail", failed)
        patch.setattr(MeanTest, "outcome", with_outcomes(MeanTest))
        patch.setattr(BetTest, "outcome", with_outcomes(BetTest))
        patch.setattr(SparseVectorMechanism, "start", began)
        patch.setattr(SparseVectorMechanism, "step", stepped)
        for name in ("laplace", "uniform"):
            patch.setattr(SystemNoise, name, uncounted)
        yield run


def explored(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[], object], places: tuple[float, ...]
) -> tuple[Run, object]:
    """Check that a run is the same whatever the outcomes of claims that are not certain; return it, and its result."""
    first, expected, chance, runs = Run(), None, 0.0, 0
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        outcomes = waiting.pop()
        with recorded(monkeypatch, places, outcomes) as run:
            result = work()
        if not runs:
            first, expected = run, result
        assert result == expected
        chance, runs = chance + run.chance, runs + 1
        assert runs <= RUNS
        for place in range(len(outcomes), len(run.outcomes)):
            waiting += [(*run.outcomes[:place], other) for other in run.others[place]]
    assert chance + 1e-8 * first.noisy < UNLIKELY
    return first, expected


def holds(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> Run:
    """Check that a run is the same, whatever the noise, but for an unlikely event; return what its guards did.

    Noise of several answers is at the same end for all, and at alternating ones.
    """
    run, expected = explored(monkeypatch, work, (0.0,))
    alternating = [(1.0, -1.0), (-1.0, 1.0)] if run.noisy > 1 else []
    for places in [(1.0,), (-1.0,), *alternating] if run.noisy else []:
        assert explored(monkeypatch, work, places)[1] == expected
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


_MAKES_GUARD = r"Guard\w*\(|Guard\.create\(|Thresholdout\("


def documented(name: str) -> list[doctest.DocTest]:
    """Return the docstrings of a module that ask a guard, or make one."""
    tests = doctest.DocTestFinder().find(importlib.import_module(name))
    return [test for test in tests if any(re.search(_MAKES_GUARD, one.source) for one in test.examples)]


#: Modules that have such docstrings, by their texts: to import all of them takes seconds.
DOCUMENTED = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "thresholdout").rglob("*.py"))
    if re.search(rf"^ *(>>>|\.\.\.) .*({_MAKES_GUARD})", path.read_text(encoding="utf-8"), re.MULTILINE)
]
MAKES = r"Thresholdout\(|Guard\(|EvaluationService\.open\("
SCRIPTS = [
    "agent_over_mcp",
    "client_that_crashes",
    "gate",
    "grid_search",
    "hill_climbing",
    "holdout_in_files",
    "kfold",
    "lightgbm_early_stopping",
    "optuna_study",
]

#: End with answers as they come, which no document quotes and no test compares.
ENDING_WITH_ANSWERS = ["grunfeld", "ratings", "sunspots", "wells"]

#: Their guards draw no noise. `make test-engines` runs them, in the environment of their engines.
ON_CLUSTERS = ["on_dask", "on_spark"]


@pytest.mark.slow
def test_the_law_of_a_difference() -> None:
    """Against the convolution, term by term."""
    first, second = Fraction(7, 2), Fraction(9, 5)
    for k in (-20, -3, 0, 1, 2, 15):
        plain = sum(probability(i, first) * at_least(k - i, second) for i in range(-600, 601))
        assert float(difference_at_least(k, first, second) / plain) == pytest.approx(1.0, abs=1e-12)


def test_the_range_of_an_answer() -> None:
    scale = Fraction(1 << 20)
    assert 2 * at_least(_TAIL * scale.numerator, scale) < 1e-8


@pytest.mark.slow
def test_a_lucky_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The side that must fail: gaps near the threshold, and a value with noise that is shown."""

    def asked(train: float, shown: bool = False) -> Callable[[], object]:
        def work() -> object:
            guard = Thresholdout(np.arange(1000.0), mechanism=SparseVector(0.1, 0.001, budget=2), queries=5)
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


def test_the_outcomes_that_a_claim_may_have() -> None:
    """Against the continuous law of a difference of Laplace numbers, of which one has twice the other's scale."""
    scales = (2.0**-8, 2.0**-7)

    def other(steps: float) -> float:
        x = steps / 1000 / scales[0]
        return float(4 * np.exp(-x / 2) - np.exp(-x)) / 6

    for value, lo, hi, outcomes, chances in (
        (500, 480, 505, ["confirmed", "below", "above"], []),
        (500, 300, 505, ["confirmed", "above"], [200]),
        (500, 300, 700, ["confirmed"], [200, 200]),
        (500, 200, 300, ["above"], [200]),
        (500, 480, 495, ["above", "confirmed", "below"], []),
        (500, 200, 495, ["above", "confirmed"], [300]),
        (500, 505, 1000, ["below", "confirmed"], []),
        (500, 0, 1000, ["confirmed"], []),
    ):
        claim = MeanTest(1000, value, ones(1000))
        found, rest = verdicts(lambda k, m: claim.outcome(lo, hi, -3.0, scales, (0, k, m)), scales, 1e-6)  # noqa: B023
        assert found == outcomes
        assert rest == pytest.approx(sum(map(other, chances)), rel=1e-4)


@pytest.mark.slow
def test_a_lucky_claim_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values at the edge of the first claim, whose outcome may be another; and a cell that is shown."""

    def asked(right: int, shown: bool = False) -> Callable[[], object]:
        def work() -> object:
            guard = Thresholdout(np.arange(1000.0), queries=5)
            answer = guard.ask(0.5, np.arange(1000) < right, binary=True)
            return (answer.source, answer.value) if shown else answer.source

        return work

    with recorded(monkeypatch) as run:
        near = next(right for right in range(500, 700, 10) if asked(right)() == "holdout")
        edge = next(right for right in range(near - 9, near + 1) if asked(right)() == "holdout")
    assert run.outcomes
    for right in (500, 1000 - 2 * (edge - 500), 2 * edge - 500):
        holds(monkeypatch, asked(right))
    for right in (edge - 1, edge, edge + 1):
        with pytest.raises(AssertionError):
            holds(monkeypatch, asked(right))
    for right in range(edge + 20, 700):
        with recorded(monkeypatch) as run:
            asked(right)()
        if run.outcomes:  # of a later claim
            break
    with pytest.raises(AssertionError):
        holds(monkeypatch, asked(right, shown=True))


@pytest.mark.slow
@pytest.mark.parametrize("module", DOCUMENTED)
def test_docstrings(module: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for test in documented(module):
        folder = tmp_path / test.name
        folder.mkdir()
        try:
            holds(monkeypatch, passes(test, folder))
        except AssertionError as failure:
            failure.add_note(test.name)
            raise


def test_docstrings_are_found() -> None:
    assert {"thresholdout.guard.guard", "thresholdout.service.prediction_guard"} <= {*DOCUMENTED}
    assert {"thresholdout.guard.kfold", "thresholdout.model_selection.guarded_search"} <= {*DOCUMENTED}
    assert "thresholdout.guard.kfold.KFoldGuard" in {test.name for test in documented("thresholdout.guard.kfold")}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_documents(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    needed = [block for block in blocks if "DPSGD" not in block]  # which is slow, and asks no guard
    test = doctest.DocTestParser().get_doctest("\n".join(needed), {}, page.stem, page.name, 0)
    assert holds(monkeypatch, passes(test, tmp_path)).noisy == 0


def printed(script: str) -> str:
    """Return what an example prints."""
    with contextlib.redirect_stdout(io.StringIO()) as shown, warnings.catch_warnings():
        runpy.run_path(str(ROOT / "examples" / f"{script}.py"), run_name="__main__")
    return shown.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_examples(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [script])
    holds(monkeypatch, lambda: printed(script))


@pytest.mark.slow
@pytest.mark.parametrize("script", ENDING_WITH_ANSWERS)
def test_examples_that_end_with_answers(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is printed before the first answer is the same in two runs, and no document quotes more."""
    monkeypatch.setattr(sys, "argv", [script])
    (first, answer, _), (second, _, _) = (printed(script).partition("<Answer") for _ in range(2))
    assert (first, answer) == (second, "<Answer")
    quoted = [block for block in documents().split("```") if block.strip().startswith(first.splitlines()[0])]
    assert not any("<Answer" in block for block in quoted)


def test_every_example_with_a_guard_is_here() -> None:
    with_guard = {path.stem for path in (ROOT / "examples").glob("*.py") if re.search(MAKES, path.read_text())}
    assert with_guard == {*SCRIPTS, *ENDING_WITH_ANSWERS, *ON_CLUSTERS}
    for name in ON_CLUSTERS:
        assert "Claims(noise=0.0)" in (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demonstrations_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> object:
        searches = [ordinary_search(seed) for seed in range(1, 5)]
        for search in searches:
            sampling = 3.0 * np.sqrt(search.fresh * (1.0 - search.fresh) / 497)  # of the fresh records
            assert (np.abs(search.answers - search.fresh) <= search.half_widths + sampling).all()
        return [(search.answers.tolist(), search.half_widths.tolist()) for search in searches]

    assert holds(monkeypatch, work).noisy == 0


@pytest.mark.slow
def test_the_demonstrations_aggregation(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> object:
        plain, guarded = reuse().values()
        assert abs(guarded.reported - guarded.fresh) <= guarded.half_width
        assert plain.reported - plain.fresh > 0.08
        return plain, guarded

    assert holds(monkeypatch, work).noisy == 0


@pytest.mark.slow
def test_the_demonstrations_scans(monkeypatch: pytest.MonkeyPatch) -> None:
    def work() -> object:
        independent, grouped = dependent_records()
        assert (grouped.broken, grouped.errors.size) == (0, 120)
        assert independent.broken > 60
        return independent.errors.tolist(), grouped.errors.tolist()

    assert holds(monkeypatch, work).noisy == 0


@pytest.mark.slow
def test_the_demonstration_is_printed_and_drawn(tmp_path: Path) -> None:
    lines: list[str] = []
    demonstrate(picture=tmp_path / "demo.png", echo=lines.append)
    assert sum(line.startswith("(") for line in lines) == 3
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
