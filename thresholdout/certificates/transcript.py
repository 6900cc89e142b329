"""The transcript certificate: few answers from the holdout mean few possible questions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from thresholdout.certificates.largest_error import LargestError
from thresholdout.certificates.route import Route, up
from thresholdout.certificates.setting import Setting
from thresholdout.mechanisms import NoiseRatios

__all__ = ["ANSWER_SHARE", "SHARES", "AnytimeWidths", "DeclaredWidths", "Radius", "possible_queries", "transcript"]

NAME = "transcript"
SOURCE = "PROOFS.md, 'Transcript certificate'; after [D15]"
ASSUMES = "a variance inflation below n for fixed questions; the analyst is a function of the answers and his own coins"

SHARES = (0.5, 0.75, 0.9)  # of beta, for the radius; the rest is for the noise
ANSWER_SHARE = 0.05  # of the noise's part, for answers from the holdout when the other side is the wider one
_LGAMMA = 2.0**-48  # bound on the relative error of a few calls of lgamma


@dataclass(frozen=True, slots=True)
class Radius:
    """How far the holdout mean of a question can be from the truth, for all rounds at once.

    Parameters
    ----------
    n : int
        Number of records.
    inflation : float
        Lambda of the model.
    levels : int
        K, the number of values that an answer from the holdout can take.
    beta : float
        Probability with which any radius may fail, in (0, 1).
    queries, budget : int or None
        Limits, where they are declared.

    Notes
    -----
    Given what the analyst knew at the start and his coins, the question asked in round i after j answers from the
    holdout is one of ``C(i-1, j) K^j`` that were fixed in advance: a train answer adds nothing beyond the fact that the
    test failed. With weights w_i, v_j of sum at most 1 a union bound over all of them gives

        ``r_ij = sqrt(Lambda ln(2 C(i-1, j) K^j / (beta w_i v_j)) / (2 n))``,

    w_i = 1/m for declared m, else 6/(pi i)^2; v_j = 1/B for declared B, else 2^-(j+1).

    Examples
    --------
    >>> radius = Radius(10_000, 1.0, 101, 0.025, queries=1000, budget=3)
    >>> round(radius(500, 1), 9)
    0.034070604
    """

    n: int
    inflation: float
    levels: int
    beta: float
    queries: int | None
    budget: int | None

    def __call__(self, query: int, hits: int) -> float:
        """Return r_ij for round ``query`` (from 1) after ``hits`` answers from the holdout."""
        return math.sqrt(self.inflation * self.exponent(query, hits) / (2.0 * self.n))

    def exponent(self, query: int, hits: int) -> float:
        """Return ``ln(2/beta_ij)``, beta_ij the share of beta that one possible question has."""
        log_words = hits * math.log(self.levels)
        if hits:
            total = math.lgamma(query)
            log_words += total - math.lgamma(hits + 1) - math.lgamma(query - hits) + total * _LGAMMA
        return (
            math.log(2.0 / self.beta)
            + log_words
            + log_inverse_query_weight(query, self.queries)
            + log_inverse_hit_weight(hits, self.budget)
        )

    def largest(self) -> float:
        """Return the largest radius of any round; ``inf`` when a limit is not declared.

        The number of words grows with the round, and with j up to the j with ``K (i - 1 - j) < j + 1``.
        """
        if self.queries is None or self.budget is None:
            return math.inf
        last = self.queries
        most = min(last, self.budget) - 1
        turn = (self.levels * (last - 1) - 1) // (self.levels + 1) + 1
        return self(last, min(most, max(0, turn)))


def log_inverse_query_weight(query: int, queries: int | None) -> float:
    """Return ``-ln w_i``."""
    return math.log(queries) if queries is not None else 2.0 * math.log(query) + math.log(math.pi**2 / 6.0)


def log_inverse_hit_weight(hits: int, budget: int | None) -> float:
    """Return ``-ln v_j``."""
    return math.log(budget) if budget is not None else (hits + 1) * math.log(2.0)


@dataclass(frozen=True, slots=True)
class DeclaredWidths:
    """Half-widths for declared limits: one bound on the noise for each source, and the radius of the round."""

    radius: Radius
    train: float
    holdout: float

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the noise of the source and the radius of the round."""
        return up((self.train if source == "train" else self.holdout) + self.radius(query, hits))

    def tolerance(self) -> float:
        """Return the largest half-width of any answer."""
        return up(max(self.train, self.holdout) + self.radius.largest())


_LEAST_SHARE = 1e-290  # shares of beta below this are as good as none


@dataclass(frozen=True, slots=True)
class AnytimeWidths:
    """Half-widths without declared limits: the noise is bounded round by round.

    Parameters
    ----------
    radius : Radius
        With beta/2 as its probability.
    threshold, noise_scale, grid, slack : float
        Of the guard; slack is what integer arithmetic adds.
    ratios : NoiseRatios
        Scales of the noises in threshold, test and answer, in units of sigma.
    beta : float
        Probability for each of both sources.

    Notes
    -----
    With probability 1 - 2 beta, at once for all j: under threshold j no train value that is too far off by more than
    ``sigma g_j`` passes, g_j the quantile of ``Lap(a) + Lap(b)`` at ``beta v_j``; and answer j from the holdout errs by
    at most ``c sigma ln(1/(beta v_j))``. The number of rounds does not matter for the noise: a threshold ends with the
    first train value that is too far off.
    """

    radius: Radius
    threshold: float
    noise_scale: float
    grid: float
    slack: float
    ratios: NoiseRatios
    beta: float

    def half_width(self, query: int, hits: int, source: Literal["train", "holdout"]) -> float:
        """Return the bounds on the noises under this threshold and the radius of the round."""
        share = self.beta * math.exp(-log_inverse_hit_weight(hits, self.radius.budget))
        if share < _LEAST_SHARE:
            return math.inf
        law = LargestError(1, self.ratios)
        if source == "holdout":
            error = self.grid / 2 + self.noise_scale * law.answer_quantile(share)
        else:
            error = self.threshold + self.noise_scale * law.surprise_quantile(share)
        return up(error + self.slack + self.radius(query, hits))


def possible_queries(queries: int, hits: int, levels: int) -> int:
    """Count the questions that can be asked in all rounds, up to a number of earlier answers from the holdout.

    Parameters
    ----------
    queries : int
        m, the number of rounds.
    hits : int
        Largest number of earlier answers from the holdout, B - 1 for a guard of budget B.
    levels : int
        K, the number of values that such an answer can take.

    Returns
    -------
    int
        ``sum_{j <= hits} C(m, j+1) K^j``.

    Examples
    --------
    >>> possible_queries(1000, 3, 100)
    41418786469951000
    """
    return sum(math.comb(queries, j + 1) * levels**j for j in range(hits + 1))


def transcript(setting: Setting) -> Route:
    """Certify by the number of possible transcripts; needs a useful variance inflation.

    Parameters
    ----------
    setting : Setting
        Model, parameters and confidence.

    Returns
    -------
    Route
        With declared limits: noise bounds and radius as in `Radius`; the tolerance is the largest half-width, and each
        answer has its own. Without: half-widths that grow only with the round and the answers from the holdout so
        far, and an infinite tolerance.

    Notes
    -----
    The radius does not use the noise at all: the noise may be as small as one likes. PROOFS.md, "Transcript
    certificate".

    References
    ----------
    [D15] C. Dwork et al., "Generalization in adaptive data analysis and holdout reuse", NeurIPS 2015.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.mechanisms import ThresholdoutParameters
    >>> parameters = ThresholdoutParameters(0.002, 1e-4, budget=1, queries=1000, grid=1 / 1024)
    >>> round(transcript(Setting(Independent(10_000), parameters, 0.95)).tolerance, 4)
    0.0262
    """
    if setting.n > 1 and setting.inflation >= setting.n:
        why = "no variance inflation below n is known for this model, so nothing bounds a fixed question's error"
        return Route.missing(NAME, why, sound=True, assumes=ASSUMES, source=SOURCE)
    if why := setting.undeclared():
        why = f"{why}: half-widths grow with the rounds, without a limit"
        return Route(NAME, math.inf, True, ASSUMES, SOURCE, why, widths=_anytime(setting))
    widths = min((_declared(setting, share) for share in SHARES), key=DeclaredWidths.tolerance)
    return Route(NAME, widths.tolerance(), True, ASSUMES, SOURCE, widths=widths)


def _radius(setting: Setting, beta: float) -> Radius:
    return Radius(setting.n, setting.inflation, setting.levels, beta, setting.queries, setting.budget)


def _anytime(setting: Setting) -> AnytimeWidths:
    parameters, beta = setting.parameters, setting.beta
    return AnytimeWidths(
        radius=_radius(setting, beta / 2),
        threshold=parameters.threshold,
        noise_scale=parameters.noise_scale,
        grid=parameters.grid or 0.0,
        slack=setting.slack,
        ratios=parameters.ratios,
        beta=beta / 4,
    )


def _declared(setting: Setting, share: float) -> DeclaredWidths:
    """Give a share of beta to the radius and the rest to the noise.

    Of the noise's part, a twentieth goes to answers from the holdout when train answers are the wider ones all the
    same; their half-widths are then smaller. Otherwise one bound on the largest error serves both.
    """
    parameters, beta = setting.parameters, setting.beta * (1.0 - share)
    scale, grid = parameters.noise_scale, parameters.grid or 0.0
    law = setting.law
    radius = _radius(setting, setting.beta * share)
    holdout = grid / 2 + scale * law.answer_quantile(beta * ANSWER_SHARE) + setting.slack
    train = parameters.threshold + scale * law.surprise_quantile(beta * (1.0 - ANSWER_SHARE)) + setting.slack
    if holdout > train:
        error = law.quantile(beta, parameters.threshold / scale, grid / scale)
        train = holdout = scale * error + setting.slack
    return DeclaredWidths(radius, train, holdout)
