"""Guards that make claims, as entries of the catalogue, and their expected widths at the likely score.

The guard's own first claims are followed, query by query. Training values are taken as the guard takes them: as far
from the holdout's as sampling makes them. A claim fails with the probability of its prediction; width and error budget
after a failure are averaged in. Searches over models with flattering training values, or in an uninformative order,
differ from this by some ten per cent. No guarantee depends on it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.final import share_of
from thresholdout.mechanisms.claims.fold_claims import FoldClaims, FoldClaimsParameters
from thresholdout.mechanisms.claims.interval import TwoEnds
from thresholdout.mechanisms.claims.lists import list_level
from thresholdout.mechanisms.claims.mechanism import ClaimsMechanism
from thresholdout.mechanisms.claims.parameters import ClaimsParameters
from thresholdout.mechanisms.claims.predictor import SHARED, PredictorState, learn
from thresholdout.mechanisms.claims.query_claims import FirstClaim
from thresholdout.mechanisms.claims.score import FAILURE_SHARE, lowered
from thresholdout.mechanisms.claims.state import ClaimsState
from thresholdout.mechanisms.kind import CertificateT, Certifier, Kind
from thresholdout.noise.sources import SeededNoise

if TYPE_CHECKING:
    from graphs import DependenceModel

__all__ = ["CLAIMS", "FOLD_CLAIMS", "FinalCheck", "claims_of", "guard_width", "is_unlimited", "list_width"]

_AGAIN: Final = 0.15  # share of the error budget that a retry sets aside, as `score.search` does
_STEP: Final = 1.5  # deviations by which it reaches beyond the first: half of the step there, for the width after cuts
_BLOCK: Final = 16  # a block has at most a 16th of the queries before and after it: widths change little within


def guard_width(parameters: ClaimsParameters, n: int, queries: int, score: float, similarity: float = SHARED) -> float:
    """Return half the length of a guard's interval, on average over the queries."""
    mechanism = ClaimsMechanism(parameters, n)
    state, known, total, asked = _start(mechanism), mechanism.typical(score), 0.0, 0
    while asked < queries:
        block = max(1, min(asked, queries - asked) // _BLOCK)
        first = mechanism.first_claim(state, score, known)
        width, log_error_budget = _expected(first, state.log_error_budget, similarity)
        total += block * width
        asked += block
        state = dataclasses.replace(
            state,
            log_error_budget=state.log_error_budget + block * (log_error_budget - state.log_error_budget),
            asked=asked,
            exponent=first.exponent,
            memory=_learned(state.memory, first, block),
        )
    return total / queries


def list_width(parameters: ClaimsParameters, n: int, queries: int, score: float) -> float:
    """Return half the length of an interval when all queries are fixed together, and none follows."""
    mechanism = ClaimsMechanism(parameters, n)
    state = _start(mechanism)
    claim = mechanism.first_claim(state, score, mechanism.typical(score)).claim
    value, level = round(score * claim.steps), list_level(state.log_error_budget, queries, 0.0)
    if isinstance(claim, TwoEnds):  # a stated limit has no margin for luck, which a claim's edge has
        lo, hi = claim.ends(level, value / claim.steps)
        return 0.5 * (hi - lo) / claim.steps
    low, high = claim.interval(value, value, level, ())
    return 0.5 * (high - low)


def _start(mechanism: ClaimsMechanism) -> ClaimsState:
    return mechanism.start(SeededNoise(0))


def _expected(first: FirstClaim, log_error_budget: float, similarity: float) -> tuple[float, float]:
    """Return the average half-width of an answer, and the average logarithm of the error budget after it."""
    window, steps = first.window, first.claim.steps
    reach = max(1, math.floor(_STEP * window.deviation))
    pad = math.ceil(3.0 * sum(first.scales) * steps) + 1 if first.scales else 0
    after = log_error_budget + math.log(0.5 * window.share) + math.log1p(-_AGAIN)
    below, above = _beyond(first, similarity)
    low, high = first.interval
    width = (1.0 - below - above) * 0.5 * (high - low)
    top, bottom = window.lo - 1 + pad, window.hi + 1 - pad
    for probability, lo, hi in ((below, max(0, top - reach), top), (above, bottom, min(steps, bottom + reach))):
        if probability > 0.0:
            low, high = first.claim.interval(lo, hi, after, first.scales)
            width += probability * 0.5 * (high - low)
    return width, (1.0 - below - above) * first.log_level + (below + above) * after


def _beyond(first: FirstClaim, similarity: float) -> tuple[float, float]:
    """Return the probabilities that the holdout's value is below and above the first claim.

    A guard assumes that two queries share half of their sampling variance, and that confirmed claims show this half. A
    larger part of a prediction's error is a query's own where they share less.
    """
    window, steps = first.window, first.claim.steps
    made, prior = first.made, math.fsum(loading * loading for loading in first.made.loadings)
    expected = (made.deviation / made.kappa) ** 2
    known = 1.0 - (expected - made.own) / prior if prior > 0.0 else 0.0
    unlike = (SHARED - similarity) * made.own / (1.0 - SHARED) * known / expected
    deviation = made.deviation * math.sqrt(2.0) * steps * math.sqrt(max(0.0, 1.0 + unlike))
    mean = made.mean * steps
    below = 0.5 * math.erfc((mean - window.lo + 0.5) / deviation) if window.lo > 0 else 0.0
    above = 0.5 * math.erfc((window.hi + 0.5 - mean) / deviation) if window.hi < steps else 0.0
    return below, above


def _learned(memory: PredictorState, first: FirstClaim, times: int) -> PredictorState:
    """Remember that a number of claims like this one were confirmed."""
    steps, window = first.claim.steps, first.window
    after = learn(memory, first.made, (window.lo - 0.5) / steps, (window.hi + 0.5) / steps)
    if times == 1:
        return after
    more = {name: getattr(after, name) - getattr(memory, name) for name in ("xx", "xy", "yy", "x", "y")}
    return dataclasses.replace(after, **{name: getattr(memory, name) + times * gain for name, gain in more.items()})


_MANY: Final = 1000  # queries before a final check, where their number is not declared


@dataclass(frozen=True, slots=True)
class FinalCheck:
    """Half-width of a guard's final check, as far as it can be known before the check.

    ``certificate.final`` has it for a guard with ``final_check=True``. It assumes that every claim before the check is
    confirmed.

    Parameters
    ----------
    parameters : ClaimsParameters
        Parameters of the guard.
    n : int
        Number of records in the holdout.
    chosen : bool, default False
        Whether models are chosen by their training values, as with a development part.

    Examples
    --------
    >>> check = FinalCheck(ClaimsParameters(queries=20, final_check=True), 1000)
    >>> round(check.share, 3), round(check.half_width(0.95), 4)
    (0.739, 0.0144)
    """

    parameters: ClaimsParameters
    n: int
    chosen: bool = False

    @property
    def share(self) -> float:
        """Share of the error budget that remains for the check; after 1,000 queries if their number is not declared."""
        queries = self.parameters.queries
        shares = (share_of(asked, queries) for asked in range(queries or _MANY))
        return math.exp(lowered(math.fsum(math.log1p(-share - 2.0 * FAILURE_SHARE) for share in shares)))

    def half_width(self, expected: float) -> float:
        """Return the half-width of the final check for a share of right predictions near a likely score.

        Parameters
        ----------
        expected : float
            Likely score, in (0, 1).

        Returns
        -------
        float
            The larger side of the interval of the check.

        Raises
        ------
        InputError
            If the score is out of range.
        """
        risk = math.log1p(-self.parameters.confidence) - self.parameters.information_released + math.log(self.share)
        return ClaimsMechanism(self.parameters, self.n).final_half_width(risk, expected, chosen=self.chosen)


_USUAL: Final = 100
"""Number of queries for the expected half-width of claims, when none is declared."""

_CLAIMED: Final = (
    "limits for fixed queries by the dependence; the analyst is a function of the answers and his own coins"
)

_NORMAL: Final = (
    "independent groups, enough of them, and enough that lose, for their sum to be about normal; no theorem says how "
    "many are enough; the analyst is a function of the answers and his own coins"
)

_FOLDED: Final = (
    "folds formed without looking at records, independent groups in one fold each; the analyst is a function of the "
    "answers and his own coins"
)


def claims_of(parameters: ClaimsParameters, n: int) -> ClaimsMechanism:
    """Return the mechanism of some parameters: a leaderboard where clients have an allowance."""
    if parameters.allowance is None:
        return ClaimsMechanism(parameters, n)
    from thresholdout.mechanisms.claims.leaderboard import LeaderboardMechanism

    return LeaderboardMechanism(parameters, n)


def is_unlimited(model: DependenceModel) -> bool:
    """Whether nothing bounds the deviation of a mean that is fixed in advance."""
    from graphs import Independent

    if isinstance(model, Independent):
        return False
    return model.effective_records() is None and model.variance_inflation() >= model.n > 1


def _claims_certified(parameters: ClaimsParameters, by: Certifier[CertificateT]) -> CertificateT:
    """Certify claims: every answer comes with its own interval, and all of them hold together."""
    why, n, final, epsilon = _claims_of_others(parameters, by.model), by.model.n, None, None
    likely: Callable[[float], float] = partial(guard_width, parameters, n, parameters.queries or _USUAL)
    if parameters.allowance is not None:
        from thresholdout.mechanisms.claims.leaderboard import LeaderboardMechanism

        likely = LeaderboardMechanism(parameters, n).first_half_width
    if not why:
        final = FinalCheck(parameters, n) if parameters.final_check else None
        epsilon = None if parameters.epsilon is None else ClaimsMechanism(parameters, n).epsilon(n)
    route = "claims", 1.0, _CLAIMED, "PROOFS.md, 'The remaining error budget'"
    if parameters.approximation:
        route = "normal limits", 1.0, _NORMAL, "thresholdout/limits/PROOFS.md, 'Normal limits'"
    return by.stated(
        *route,
        confidence=min(by.confidence, parameters.confidence),
        likely=likely,
        why_not=why,
        final=final,
        epsilon=epsilon,
    )


def _claims_of_others(parameters: ClaimsParameters, model: DependenceModel) -> str:
    """Return why claims are made for another model; empty where they are not."""
    from graphs.models.out_of_fold import OutOfFold

    needed, effective = model.variance_inflation(), model.effective_records()
    if isinstance(model, OutOfFold):
        return "truths of out-of-fold averages are functions of the records, and every claim about them has to be paid"
    if parameters.effective is not None and (effective is None or effective < parameters.effective):
        has = "none" if effective is None else f"{effective:.3g}"
        return f"the mechanism was given {parameters.effective:.3g} effective records, and the model has {has}"
    if parameters.inflation < needed:
        return f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    if parameters.sizes is not None and parameters.sizes != parameters.for_records(model, 0.5).sizes:
        return "the mechanism was given groups of other sizes"
    return ""


def _claims_suited(parameters: ClaimsParameters, by: Certifier[CertificateT]) -> ClaimsParameters:
    """Fill in the dependence of the records; refuse where nothing bounds the deviation of a fixed mean."""
    from graphs.models.out_of_fold import OutOfFold

    if isinstance(by.model, OutOfFold) or is_unlimited(by.model):
        seen = f"ClaimsParameters for {by.model.describe()}, of which no deviation of a mean can be bounded"
        advice = "These plan Algorithm 1, which answers by its privacy."
        raise InputError("mechanism", seen, "Claims(holdout_answers=...) beside queries=", advice)
    return parameters.for_records(by.model, by.confidence)


def _folds_certified(parameters: FoldClaimsParameters, by: Certifier[CertificateT]) -> CertificateT:
    """Certify claims about out-of-fold averages, by the mechanism's numbers."""
    from graphs.models.out_of_fold import OutOfFold

    model, why = by.model, ""
    if not isinstance(model, OutOfFold):
        why = "it is for averages of out-of-fold values"
    elif model.claim_records() < parameters.effective:
        why = (
            f"the mechanism was given {parameters.effective:.3g} records, and the model has {model.claim_records():.3g}"
        )
    elif parameters.inflation < (needed := model.variance_inflation()):
        why = f"the mechanism was given the inflation {parameters.inflation:.3g}, and the model has {needed:.3g}"
    return by.stated(
        "fold claims",
        1.0,
        _FOLDED,
        "PROOFS.md, 'K-fold cross-validation'",
        confidence=min(by.confidence, parameters.confidence),
        why_not=why,
    )


def _folds_suited(parameters: FoldClaimsParameters, by: Certifier[Any]) -> FoldClaimsParameters:
    """Refuse them: a guard of folds makes its own."""
    seen = f"FoldClaimsParameters for {by.model.describe()}"
    raise InputError("mechanism", seen, "'claims' for these records", "Folds belong to KFoldGuard((X, y), cv=...).")


CLAIMS: Final = Kind(
    name="claims",
    parameters=ClaimsParameters,
    state=ClaimsState,
    build=lambda parameters, n: claims_of(parameters, n),
    certify=_claims_certified,
    suited=_claims_suited,
)
"""The default mechanism."""

FOLD_CLAIMS: Final = Kind(
    name="fold-claims",
    parameters=FoldClaimsParameters,
    state=ClaimsState,
    build=lambda parameters, n: FoldClaims(parameters, n),
    certify=_folds_certified,
    suited=_folds_suited,
)
"""The same for averages of a cross-validation."""
