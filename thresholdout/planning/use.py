"""What a plan is for, and what it compares."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

from thresholdout.certificates.largest_error import LargestError
from thresholdout.certificates.route import up
from thresholdout.certificates.setting import Setting, check_confidence, check_model
from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import ThresholdoutParameters, noise_slack
from thresholdout.mechanisms.precision import check_count
from thresholdout.planning.quiet import quiet_law

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["Alternative", "MechanismName", "Target", "Use", "check_declaration", "check_fraction", "independent"]

MechanismName: TypeAlias = Literal["thresholdout", "gaussian", "splitting"]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to answer the questions, and what it would be worth.

    Attributes
    ----------
    mechanism : {"thresholdout", "gaussian", "splitting"}
        How the questions are answered.
    route : str
        Why the tolerance holds.
    tolerance : float
        In units of the range; ``inf`` where there is none.
    threshold, noise_scale, grid : float or None
        The guard's parameters; of a Gaussian guard, ``noise_scale`` is the standard deviation of the last answer.
    offered : bool
        Whether the planner may recommend it. Published formulas, guards without noise, and splitting of records that
        are not declared to have one law, are for comparison.
    note : str
        What to know about it.
    """

    mechanism: MechanismName
    route: str
    tolerance: float
    threshold: float | None = None
    noise_scale: float | None = None
    grid: float | None = None
    offered: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """The checked arguments of `thresholdout.planning.plan`; ``None`` is what is solved for.

    Parameters
    ----------
    model : DependenceModel or None
        How the records depend on each other.
    queries : int
        m.
    budget : int or None
        B.
    confidence : float
        1 - beta.
    tolerance : float or None
        What is to be reached.
    quiet_margin : float or None
        c; ``None`` for the default.
    noise_share : float
        Share of the tolerance that the noise takes.
    identically_distributed : bool
        Whether answers from a part of the records may be offered.
    """

    model: DependenceModel | None
    queries: int
    budget: int | None
    confidence: float
    tolerance: float | None
    quiet_margin: float | None
    noise_share: float
    identically_distributed: bool

    @classmethod
    def checked(
        cls,
        model: DependenceModel | None,
        n: int | None,
        queries: int | None,
        budget: int | None,
        confidence: float,
        tolerance: float | None,
        quiet_margin: float | None,
        noise_share: float,
        identically_distributed: bool,
    ) -> Target:
        """Check the arguments, and that at most one thing is left to solve for."""
        if queries is None:
            advice = (
                "the number of questions, or budget='all' and tolerance= to solve for it; a guard without limits takes "
                "threshold and noise_scale by hand instead"
            )
            raise InputError("queries", None, advice)
        if model is not None and n is not None and check_model(model).n != n:
            raise InputError("n", n, f"{model.n}, as the model has; or leave it out")
        if model is None and n is not None:
            model = independent(check_count("n", n))
        if tolerance is None and model is None:
            raise InputError("n", None, "a number of records, a model, or tolerance= to solve for the number")
        if budget is None and (tolerance is None or model is None):
            also = "tolerance= to solve for it" if tolerance is None else "n= or a model, to solve for the budget"
            raise InputError("budget", None, f"a number, or {also}")
        return cls(
            model=None if model is None else check_model(model),
            queries=check_count("queries", queries),
            budget=None if budget is None else check_count("budget", budget),
            confidence=check_confidence(confidence),
            tolerance=None if tolerance is None else check_fraction("tolerance", tolerance, "a number in (0, 1)"),
            quiet_margin=None
            if quiet_margin is None
            else check_fraction("quiet_margin", quiet_margin, "in [0, 1)", zero=True),
            noise_share=check_fraction("noise_share", noise_share, "a share in (0, 1); noise is never planned away"),
            identically_distributed=check_declaration(identically_distributed),
        )

    def use(self, *, model: DependenceModel | None = None, budget: int | None = None) -> Use:
        """Return the use with everything that is not declared filled in."""
        model, budget = model or self.model, budget or self.budget
        assert model is not None
        assert budget is not None
        return Use(dataclasses.replace(self, model=model, budget=budget), model, min(budget, self.queries))


class Use:
    """A declared use of a guard, and what does not depend on its noise scale.

    Parameters
    ----------
    target : Target
        With a model and a budget.
    model : DependenceModel
        How the records depend on each other.
    hits : int
        The budget, or the number of questions if that is smaller.
    """

    def __init__(self, target: Target, model: DependenceModel, hits: int) -> None:
        self.target = target
        self.model = model
        self.n = model.n
        self.hits = hits
        self.queries = target.queries
        self.identically_distributed = target.identically_distributed
        self.confidence = target.confidence
        self.beta = 1.0 - target.confidence

    @cached_property
    def inflation(self) -> float:
        """Lambda of the model."""
        return self.model.variance_inflation()

    @property
    def concentrates(self) -> bool:
        """Whether a variance inflation below n is known."""
        return self.inflation < self.n or self.n == 1

    @cached_property
    def margin(self) -> float:
        """The quiet margin c: as declared, or by default."""
        if self.target.quiet_margin is not None:
            return self.target.quiet_margin
        if not self.concentrates:
            return 0.0
        usual = math.sqrt(self.inflation * math.log(2.0 * self.queries / self.beta) / (2.0 * self.n))
        return usual if usual < 1.0 else 0.0

    @property
    def law(self) -> LargestError:
        """Law of the largest error that the noise causes, for sigma = 1."""
        return LargestError(self.hits)

    @cached_property
    def quiet(self) -> float:
        """By how much the threshold has to exceed the quiet margin, for sigma = 1."""
        return max(0.0, quiet_law(self.queries, self.hits, self.beta).quantile(self.beta))

    def setting(self, noise_scale: float, grid: float | None) -> Setting:
        """Return what a certificate of a guard with this noise scale is about; its threshold keeps the margin."""
        threshold = up(self.margin + noise_scale * self.quiet + noise_slack(self.n, noise_scale))
        parameters = ThresholdoutParameters(threshold, noise_scale, self.hits, self.queries, grid)
        return Setting(self.model, parameters, self.confidence)


def independent(n: int) -> DependenceModel:
    """Return a model of independent records."""
    from graphs import Independent

    return Independent(n)


def check_declaration(identically_distributed: object) -> bool:
    """Return whether all records are declared to have one law; InputTypeError for anything but true or false."""
    if isinstance(identically_distributed, bool):
        return identically_distributed
    seen = f"a {type(identically_distributed).__name__}"
    expected = "True if all records have one law and each question is the same function of every record, else False"
    raise InputTypeError("identically_distributed", seen, expected)


def check_fraction(argument: str, value: object, expected: str, *, zero: bool = False) -> float:
    """Return a number in (0, 1), or in [0, 1) if ``zero``; InputError or InputTypeError for anything else."""
    try:
        number = math.nan if isinstance(value, (bool, str)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputTypeError(argument, repr(value), expected) from None
    if not (0.0 < number < 1.0 or (zero and number == 0.0)):
        raise InputError(argument, value, expected)
    return number
