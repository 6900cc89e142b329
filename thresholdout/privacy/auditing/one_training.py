"""Audits by one training with many canaries, each of which is in or out by a coin of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from graphs.numerics.bisection import bisect
from graphs.numerics.rounding import shown_below
from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, open_unit, probability
from thresholdout.privacy.accounting.events.event_types import Adjacency, check_adjacency
from thresholdout.privacy.auditing.audit_settings import entropy_of, own_stream
from thresholdout.privacy.auditing.claim_audits import GaussianBound
from thresholdout.privacy.auditing.claimed_curves import Claim, ClaimedCurve, CurvePoint, claimed_curve

__all__ = ["CanaryAudit", "audit_canaries", "audit_training", "chance_of_guesses"]

Floats = NDArray[np.float64]
Rate = Callable[[float], float]
# Of 1,000 canaries about this share shows most for Gaussian learners with epsilons from 1 to 8 at delta 1e-5.
_GUESSED = 0.2
# The recursion adds a thousand numbers with relative errors of 1e-16 each; this covers them (PROOFS.md, O3).
_SLACK = 1e-9
_LARGEST = 64.0  # largest epsilon or mu that is searched


@dataclass(frozen=True)
class CanaryAudit:
    """Result of `audit_canaries` or `audit_training`: the leakage that a single training shows.

    Attributes
    ----------
    refuted : bool or None
        Whether the guesses refute the claim, or None without a claim. A true claim is refuted with probability at most
        ``1 - confidence``.
    epsilon : float
        Lower bound on epsilon at `delta`, in nats. With a `family`, it holds for learners of this family only.
    delta : float
        Delta at which epsilon is bounded.
    p_value : float or None
        Largest probability of at least this many correct guesses under the claim, or None without a claim.
    correct, guesses, canaries : int
        Number of correct guesses, of all guesses, and of canaries.
    confidence : float
        Probability with which each bound holds.
    family : str or None
        The family of learners that `epsilon` assumes, or None.
    mu : float or None
        Lower bound on the parameter mu of a Gaussian mechanism, or None without ``family="gaussian"``.

    Examples
    --------
    >>> audit_canaries([True] * 50 + [False] * 50, [1.0] * 50 + [0.0] * 50, guesses=100)
    <epsilon >= 3.75 at delta 1e-05, confidence 0.9; 100 of 100 guesses right, 100 canaries>
    """

    refuted: bool | None
    epsilon: float
    delta: float
    p_value: float | None
    correct: int
    guesses: int
    canaries: int
    confidence: float
    family: str | None
    mu: float | None

    def __repr__(self) -> str:
        verdict = "" if self.refuted is None else f"claim {'refuted' if self.refuted else 'not refuted'}; "
        family = "" if self.family is None else f" for the {self.family} family"
        found = (
            f"epsilon >= {shown_below(self.epsilon)} at delta {self.delta:g}{family}, confidence {self.confidence:g}"
        )
        return f"<{verdict}{found}; {self.correct} of {self.guesses} guesses right, {self.canaries} canaries>"


def _reached(chance: float, correct: int, guesses: int, canaries: int, least_rate: Rate) -> bool:
    """Return whether so many correct guesses, or more, can have this probability (PROOFS.md, O3)."""
    total = mass = chance
    # alpha_j and beta_j of PROOFS.md, O2; each mass below is the smallest that the inequalities allow.
    right, wrong = correct * mass / canaries, (guesses - correct) * mass / canaries
    for k in range(correct, 0, -1):
        needed = least_rate(min(1.0, right) * (1.0 - _SLACK)) - wrong
        mass = max(0.0, needed * canaries / (guesses - k + 1))
        total += mass
        if total > 1.0 + _SLACK:
            return False
        right += (k - 1) * mass / canaries
        wrong += (guesses - k + 1) * mass / canaries
    return True


def chance_of_guesses(correct: int, guesses: int, canaries: int, curve: ClaimedCurve) -> float:
    """Return the largest probability, rounded up, of so many correct guesses or more for any mechanism on a curve.

    Examples
    --------
    Without a delta it is at least the tail of a binomial law [Steinke, Nasr and Jagielski 2023, Theorem 5.2], and equal
    to it if all guesses are correct; 10 of 10 coins at epsilon 0 have 2^-10:

    >>> round(chance_of_guesses(10, 10, 10, ClaimedCurve((CurvePoint(0.0, 0.0),))) * 1024, 6)
    1.0
    """
    if correct == 0:
        return 1.0
    return bisect(
        lambda chance: not _reached(chance, correct, guesses, canaries, curve.least_rate), 0.0, 1.0, halvings=40
    )


def _gaussian_rate(mu: float) -> Rate:
    return lambda power: float(special.ndtr(special.ndtri(power) - mu)) if power < 1.0 else 1.0


def _guesses(scores: Floats, guesses: int, rng: np.random.Generator) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return which canaries are guessed, and whether each guess is "in": the highest scores and the lowest."""
    order = np.lexsort((rng.random(scores.size), scores))
    out, inside = order[: guesses // 2], order[scores.size - (guesses - guesses // 2) :]
    said = np.zeros(guesses, dtype=np.bool_)
    said[out.size :] = True
    return np.concatenate([out, inside]), said


def audit_canaries(
    included: Any,
    scores: Any,
    *,
    claim: Claim | None = None,
    delta: float = 1e-5,
    guesses: int | None = None,
    family: Literal["gaussian"] | None = None,
    confidence: float = 0.9,
    adjacency: Adjacency = "add_remove",
    random_state: int | np.random.Generator | None = None,
) -> CanaryAudit:
    """Audit a single training by guessing which canaries took part in it.

    A canary is a record that you insert on the result of a fair coin. A private learner hides whether a canary took
    part, so too many correct guesses prove a leakage. One training with many canaries replaces the many trainings of
    `audit_learner`. `audit_training` also draws the coins and calls the training.

    Parameters
    ----------
    included : array_like of bool, shape (canaries,)
        Whether each canary took part, decided by a fair coin of its own. For replaced records, which of its two
        versions took part.
    scores : array_like, shape (canaries,)
        One score for each canary, higher if the canary seems to have taken part: how well the model fits the record, or
        how far the parameters moved along its gradient. For replaced records, how much better version 1 fits than
        version 0. Scores may depend on the model and the canaries, but on nothing else that knows the coins.
    claim : Event, list of Event, callable or pair of float, optional
        The privacy to test: an event, a function ``delta(epsilon)``, or a pair (epsilon, delta), see `audit_outputs`.
        The whole curve is tested. If None, only epsilon is bounded.
    delta : float, default 1e-5
        Delta at which epsilon is bounded, in [0, 1).
    guesses : int, optional
        Number of canaries that are guessed: half of them, with the highest scores, as included, and half, with the
        lowest scores, as left out. Fix it without knowledge of the coins. If None, a fifth of all canaries.
    family : {"gaussian"}, optional
        If "gaussian", epsilon is bounded for learners with the privacy curve of a Gaussian mechanism (mu-GDP). Pass it
        only if the learner is known to have such a curve. If None, the bound on epsilon holds for every learner.
    confidence : float, default 0.9
        Probability with which each bound holds, in (0, 1).
    adjacency : {"add_remove", "replace_one"}, default "add_remove"
        How one canary makes neighbours: the record is added or removed, or it is replaced. It decides the curve of an
        event that is passed as a claim.
    random_state : int, numpy.random.Generator or None, default None
        Seed that breaks ties between scores.

    Returns
    -------
    CanaryAudit
        Whether the claim is `refuted`, the lower bound `epsilon`, and the number of `correct` guesses.

    Raises
    ------
    InputError, InputTypeError
        If the arrays do not match, scores are not finite, or an option is out of range.

    Notes
    -----
    The number of correct guesses is tested against the claimed curve [Steinke, Nasr and Jagielski 2023; Mahloujifar,
    Melis and Chaudhuri 2024]. The test is proved and made exact in PROOFS.md, O1 to O3.

    Examples
    --------
    A thousand canaries, each of which moves a parameter of its own by one standard deviation of the noise:

    >>> rng = np.random.default_rng(0)
    >>> included = rng.random(1000) < 0.5
    >>> scores = included + rng.normal(size=1000)
    >>> audit_canaries(included, scores, family="gaussian")
    <epsilon >= 2.88 at delta 1e-05 for the gaussian family, confidence 0.9; 176 of 200 guesses right, 1000 canaries>
    """
    bits, values = _canaries(included, scores)
    setting = _checked(bits.size, claim, delta, guesses, family, confidence, adjacency)
    return _audit(bits, values, setting, own_stream(entropy_of(random_state)))


@dataclass(frozen=True)
class _Setting:
    """Checked options."""

    curve: ClaimedCurve | None
    delta: float
    guesses: int
    family: str | None
    confidence: float


def _checked(
    canaries: int,
    claim: Claim | None,
    delta: object,
    guesses: object,
    family: object,
    confidence: object,
    adjacency: object,
) -> _Setting:
    made = max(1, round(_GUESSED * canaries)) if guesses is None else count(guesses, "guesses")
    if made > canaries:
        raise InputError("guesses", str(made), f"at most {canaries}, the number of canaries")
    neighbours = check_adjacency(adjacency)
    return _Setting(
        None if claim is None else claimed_curve(claim, neighbours),
        probability(delta, "delta"),
        made,
        None if family is None else chosen(family, "family", ("gaussian",)),
        open_unit(confidence, "confidence"),
    )


def _audit(bits: NDArray[np.bool_], scores: Floats, setting: _Setting, rng: np.random.Generator) -> CanaryAudit:
    size, made, curve, alpha = bits.size, setting.guesses, setting.curve, 1.0 - setting.confidence
    guessed, said = _guesses(scores, made, rng)
    correct = int((bits[guessed] == said).sum())
    p_value = None if curve is None else chance_of_guesses(correct, made, size, curve)

    def impossible(least_rate: Rate) -> bool:
        return correct > 0 and not _reached(alpha, correct, made, size, least_rate)

    mu: float | None = None
    if setting.family is not None:
        mu = _largest(lambda value: impossible(_gaussian_rate(value)))
        epsilon = GaussianBound(mu, setting.confidence).epsilon(setting.delta)
    else:
        epsilon = _largest(lambda value: impossible(ClaimedCurve((CurvePoint(value, setting.delta),)).least_rate))
    refuted = None if p_value is None else p_value <= alpha
    return CanaryAudit(
        refuted, epsilon, setting.delta, p_value, correct, made, size, setting.confidence, setting.family, mu
    )


def _largest(refuted: Callable[[float], bool]) -> float:
    """Return about the largest value that is refuted, 0 if none is."""
    if not refuted(0.0):
        return 0.0
    high = 1.0
    while high < _LARGEST and refuted(high):
        high *= 2.0
    return bisect(refuted, high, 0.0, halvings=24)


def _canaries(included: Any, scores: Any) -> tuple[NDArray[np.bool_], Floats]:
    bits, values = np.asarray(included), np.asarray(scores)
    if bits.ndim != 1 or not bits.size or bits.dtype.kind not in "biuf" or not np.isin(bits, (0, 1)).all():
        seen = f"an array of {bits.dtype} of shape {bits.shape}"
        raise InputError("included", seen, "an array of True and False, or 1 and 0, of shape (canaries,)")
    if values.shape != bits.shape or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        seen = f"an array of {values.dtype} of shape {values.shape}"
        raise InputError("scores", seen, f"{bits.size} finite numbers, one for each canary")
    return bits.astype(np.bool_), values.astype(np.float64)


def audit_training(
    train: Callable[[NDArray[np.bool_], int], Any],
    canaries: int,
    *,
    claim: Claim | None = None,
    delta: float = 1e-5,
    guesses: int | None = None,
    family: Literal["gaussian"] | None = None,
    confidence: float = 0.9,
    adjacency: Adjacency = "add_remove",
    random_state: int | np.random.Generator | None = None,
) -> CanaryAudit:
    """Draw the coins of canaries, train once, and audit the training.

    A canary is a record that takes part if its coin says so. `audit_canaries` does the same for a training that you
    have run.

    Parameters
    ----------
    train : callable
        ``train(included, seed)`` trains once with the canaries whose entry in the boolean array `included` is True, as
        records or as gradients, and returns one score for each canary. A score is higher if the canary seems to have
        taken part, see `audit_canaries`. Any training library can be used. `seed` is an integer from 0 to 2**32 - 1.
    canaries : int
        Number of canaries.
    claim : Event, list of Event, callable or pair of float, optional
        The privacy to test: an event, a function ``delta(epsilon)``, or a pair (epsilon, delta). If None, only epsilon
        is bounded.
    delta : float, default 1e-5
        Delta at which epsilon is bounded, in [0, 1).
    guesses : int, optional
        Number of canaries that are guessed, half of them as included and half as left out. If None, a fifth of all
        canaries.
    family : {"gaussian"}, optional
        If "gaussian", epsilon is bounded for learners with the privacy curve of a Gaussian mechanism. If None, for
        every learner.
    confidence : float, default 0.9
        Probability with which each bound holds, in (0, 1).
    adjacency : {"add_remove", "replace_one"}, default "add_remove"
        How one canary makes neighbours: the record is added or removed, or it is replaced.
    random_state : int, numpy.random.Generator or None, default None
        Seed of the coins, of the `seed` that `train` receives, and of ties between scores.

    Returns
    -------
    CanaryAudit
        Whether the claim is `refuted`, the lower bound `epsilon`, and the number of `correct` guesses.

    Raises
    ------
    InputError, InputTypeError
        If an option is out of range, which is checked before the training, or if the scores are not one finite number
        for each canary.

    Examples
    --------
    A sum with Gaussian noise, one coordinate for each canary, which has half of the claimed noise:

    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> def train(included, seed):
    ...     return included + 0.5 * np.random.default_rng(seed).normal(size=included.size)
    >>> audit_training(train, 300, claim=GaussianAnswer(1.0, 1.0, "add_remove"), random_state=0).refuted
    True
    """
    if not callable(train):
        raise InputTypeError("train", f"a {type(train).__name__}", "a function of coins and a seed")
    size = count(canaries, "canaries")
    setting = _checked(size, claim, delta, guesses, family, confidence, adjacency)
    coins, seeds, ties = np.random.SeedSequence(entropy_of(random_state)).spawn(3)
    included = np.random.default_rng(coins).random(size) < 0.5
    scores = train(included.copy(), int(seeds.generate_state(1)[0]))
    return _audit(*_canaries(included, scores), setting, np.random.default_rng(ties))
