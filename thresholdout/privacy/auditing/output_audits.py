"""Audits of outputs or of a sampler: the attack is fitted on one part of the outputs and counted on the other."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import chosen, count, number, open_unit
from thresholdout.privacy.accounting.events.event_types import Adjacency, check_adjacency
from thresholdout.privacy.auditing.attacks import Attack, Score, best_cut, check_attack
from thresholdout.privacy.auditing.audit_result import AuditResult
from thresholdout.privacy.auditing.audit_settings import EpsilonGoal, Goal, check_goal, entropy_of, own_stream
from thresholdout.privacy.auditing.claim_audits import ClaimAudit, GaussianBound, audit_claim, gaussian_bound
from thresholdout.privacy.auditing.claimed_curves import Claim, ClaimedCurve, claimed_curve
from thresholdout.privacy.auditing.error_counts import Method, bound, check_method, fitted_on, method_for

__all__ = [
    "AuditOptions",
    "AuditSetting",
    "ClaimOptions",
    "ClaimSetting",
    "OutputOptions",
    "Sampler",
    "audit_outputs",
    "audit_sampler",
    "audit_setting",
    "check_claim",
    "check_options",
    "claim_setting",
]

_NAMES = ("world_0", "world_1")

Floats = NDArray[np.float64]

# A claim is tested at one event or by ranks. Both need only the direction of the attack, which few outputs show.
_CLAIM_SHARE = 0.2

_CHOICE = 0.02  # share of alpha at which events are compared: the best of many looks too good, small ones most


class AuditOptions(TypedDict, total=False):
    """Options of all audits; see `audit_outputs`."""

    delta: float | None
    epsilon: float | None
    confidence: float
    attack: str | Attack
    cut: str | float
    method: Method | None
    fit_share: float
    stages: Iterable[Hashable] | None
    family: Literal["gaussian"] | None


class OutputOptions(AuditOptions, total=False):
    """Options of audits of outputs."""

    random_state: int | np.random.Generator | None


class ClaimOptions(TypedDict, total=False):
    """Options of audits of a claim; see `audit_outputs`."""

    confidence: float
    attack: str | Attack
    fit_share: float
    adjacency: Adjacency
    random_state: int | np.random.Generator | None


@dataclass(frozen=True)
class ClaimSetting:
    """Checked options of an audit of a claim."""

    curve: ClaimedCurve
    confidence: float
    attack: Attack
    fit_share: float
    entropy: int


@dataclass(frozen=True)
class AuditSetting:
    """Checked options of an audit."""

    goal: Goal
    alpha: float
    confidence: float
    attack: Attack
    cut: float | None
    method: Method | None
    fit_share: float
    stages: tuple[Hashable, ...] | None
    family: Literal["gaussian"] | None
    entropy: int


def _known(options: Mapping[str, Any], names: Iterable[str]) -> None:
    unknown = sorted(set(options) - set(names))
    if unknown:
        raise InputTypeError(
            unknown[0], "unknown", "an option of this audit", f"The options are {', '.join(sorted(names))}."
        )


def check_claim(claim: Claim, options: ClaimOptions) -> ClaimSetting:
    """Check a claim and its options, before anything is drawn or trained."""
    for name in ("delta", "epsilon"):
        if name in options:
            advice = "Pass a claim to test it, or delta or epsilon to measure the other one."
            raise InputError(name, repr(options.get(name)), "left out beside a claim", advice)
    _known(options, ClaimOptions.__annotations__)
    return ClaimSetting(
        claimed_curve(claim, check_adjacency(options.get("adjacency", "replace_one"))),
        open_unit(options.get("confidence", 0.9), "confidence"),
        check_attack(options.get("attack", "logistic")),
        open_unit(options.get("fit_share", _CLAIM_SHARE), "fit_share"),
        entropy_of(options.get("random_state")),
    )


def check_options(options: OutputOptions) -> AuditSetting:
    """Check options, before anything is drawn or trained."""
    _known(options, OutputOptions.__annotations__)
    family = options.get("family")
    confidence = open_unit(options.get("confidence", 0.9), "confidence")
    cut, method, stages = options.get("cut", "best"), options.get("method"), options.get("stages")
    if isinstance(cut, str) and cut != "best":
        raise InputError("cut", repr(cut), "'best', or a number")
    return AuditSetting(
        check_goal(options.get("delta"), options.get("epsilon")),
        1.0 - confidence,
        confidence,
        check_attack(options.get("attack", "logistic")),
        None if isinstance(cut, str) else number(cut, "cut"),
        None if method is None else check_method(method),
        open_unit(options.get("fit_share", 0.5), "fit_share"),
        None if stages is None else tuple(stages),
        None if family is None else cast(Literal["gaussian"], chosen(family, "family", ("gaussian",))),
        entropy_of(options.get("random_state")),
    )


def _features(values: Any, name: str) -> Floats:
    """Return features as an array of shape (outputs, stages, features)."""
    expected = "finite numbers of shape (outputs,), (outputs, features) or (outputs, stages, features)"
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise InputTypeError(name, f"an array of {array.dtype}", expected)
    if array.ndim not in (1, 2, 3) or not array.size:
        raise InputError(name, f"an array of shape {array.shape}", expected)
    found = array.astype(np.float64)
    if not np.isfinite(found).all():
        row = int(np.flatnonzero(~np.isfinite(found.reshape(len(found), -1)).all(axis=1))[0])
        raise InputError(name, f"a value in output {row} that is not finite", expected)
    if found.ndim == 1:
        return found[:, None, None]
    return found[:, None, :] if found.ndim == 2 else found


def _split(features: Floats, share: float, name: str) -> tuple[Floats, Floats]:
    size = fitted_on(len(features), share)
    if not 2 <= size < len(features):
        expected = f"enough outputs to fit on, 2 or more, and to try, at fit_share={share:g}"
        raise InputError(name, f"{len(features)} outputs", expected)
    return features[:size], features[size:]


def _scored(score: Score, features: Floats) -> Floats:
    found = np.asarray(score(features), dtype=np.float64)
    if found.shape != (len(features),) or np.isnan(found).any():
        expected = f"a function that returns {len(features)} scores for as many outputs"
        raise InputError("attack", f"scores of shape {found.shape}, or NaN", expected)
    return found


def _worlds(first: Any, second: Any) -> tuple[Floats, Floats]:
    parts = _features(first, _NAMES[0]), _features(second, _NAMES[1])
    if parts[0].shape[1:] != parts[1].shape[1:]:
        shapes = " and ".join(str(part.shape[1:]) for part in parts)
        raise InputError(", ".join(_NAMES), f"{shapes} of these", "of equally many stages and features")
    return parts


def claim_setting(setting: ClaimSetting, first: Any, second: Any) -> ClaimAudit:
    """Audit a claim with checked options; see `audit_outputs`."""
    parts = _worlds(first, second)
    if parts[0].shape[1] != 1:
        seen = f"{parts[0].shape[1]} stages"
        raise InputError(", ".join(_NAMES), seen, "outputs of one stage", "A claim is about all stages together.")
    for part, name in zip(parts, _NAMES, strict=True):
        _split(part, setting.fit_share, name)

    def attack(fit_first: Floats, fit_second: Floats) -> Score:
        score = setting.attack(fit_first, fit_second)
        return lambda features: _scored(score, features)

    rng = own_stream(setting.entropy)
    return audit_claim(
        setting.curve,
        (parts[0][:, 0], parts[1][:, 0]),
        confidence=setting.confidence,
        attack=attack,
        fit_share=setting.fit_share,
        rng=rng,
    )


def audit_setting(setting: AuditSetting, first: Any, second: Any) -> AuditResult:
    """Audit with checked options; see `audit_outputs`."""
    parts = _worlds(first, second)
    (fit_first, try_first), (fit_second, try_second) = (
        _split(part, setting.fit_share, name) for part, name in zip(parts, _NAMES, strict=True)
    )
    n_stages, goal = parts[0].shape[1], setting.goal
    stages = setting.stages or tuple(range(1, n_stages + 1))
    if len(stages) != n_stages:
        raise InputError("stages", f"{len(stages)} names", f"{n_stages} names, one for each stage")
    n_fp, n_fn = len(try_first), len(try_second)
    method: Method = setting.method or method_for(n_fp, n_fn)
    fp, fn = np.zeros(n_stages, dtype=np.int64), np.zeros(n_stages, dtype=np.int64)
    cuts, bounds = np.zeros(n_stages), np.zeros(n_stages)
    by_family: GaussianBound | None = None
    for k in range(n_stages):
        score = setting.attack(fit_first[:, k], fit_second[:, k])
        fitted = _scored(score, fit_first[:, k]), _scored(score, fit_second[:, k])
        sign, cuts[k] = best_cut(*fitted, goal, _CHOICE * setting.alpha) if setting.cut is None else (1.0, setting.cut)
        fp[k] = int((sign * _scored(score, try_first[:, k]) >= cuts[k]).sum())
        fn[k] = int((sign * _scored(score, try_second[:, k]) < cuts[k]).sum())
        bounds[k] = bound(goal, int(fp[k]), n_fp, int(fn[k]), n_fn, setting.alpha, method)
        if setting.family is not None and k == n_stages - 1:
            tried = _scored(score, try_first[:, k]), _scored(score, try_second[:, k])
            by_family = gaussian_bound(*tried, setting.confidence, own_stream(setting.entropy))
    last = float(bounds[-1])
    epsilon, delta = (last, goal.delta) if isinstance(goal, EpsilonGoal) else (goal.epsilon, last)
    return AuditResult(
        goal.measured, epsilon, delta, setting.confidence, method, stages, bounds, fp, n_fp, fn, n_fn, cuts, by_family
    )


@overload
def audit_outputs(world_0: Any, world_1: Any, *, claim: Claim, **options: Unpack[ClaimOptions]) -> ClaimAudit: ...


@overload
def audit_outputs(
    world_0: Any, world_1: Any, *, claim: None = None, **options: Unpack[OutputOptions]
) -> AuditResult: ...


def audit_outputs(
    world_0: Any, world_1: Any, *, claim: Claim | None = None, **options: Any
) -> AuditResult | ClaimAudit:
    """Test a privacy claim, or bound the leakage from below, by outputs on two neighbouring data sets.

    A private mechanism produces similar outputs on two data sets that differ in one record. The audit fits an attack
    that tells the outputs apart on one part of them, and counts its errors on the others. Pass `claim` to test a
    claimed privacy. Pass `delta` or `epsilon` instead to measure a lower bound. `audit_sampler` draws the outputs of a
    mechanism, and `audit_learner` trains the models.

    Parameters
    ----------
    world_0, world_1 : array_like, shape (outputs,), (outputs, features) or (outputs, stages, features)
        Features of independent outputs on the first and on the second data set. The numbers of outputs may differ.
        Stages, such as epochs, are audited one by one.
    claim : Event, list of Event, callable or pair of float, optional
        The privacy to test: an event or several events, whose curve the accountants compute; a function
        ``delta(epsilon)``; or a pair (epsilon, delta). The whole curve is tested, so an event is refuted with far fewer
        outputs than a pair at delta 1e-5. If None, the leakage is bounded.
    delta, epsilon : float, optional
        Without a claim, pass exactly one, and the other one is bounded: `delta`, in [0, 1), to bound epsilon, or
        `epsilon`, in [0, 700], to bound delta (the hockey-stick divergence, in the worse of both orders).
    confidence : float, default 0.9
        Probability with which the bound of a stage holds, in (0, 1). A true claim is refuted with probability at most
        ``1 - confidence``.
    attack : {"logistic", "gaussian", "histogram", "score"} or callable, default "logistic"
        How an output becomes a score, which is higher for the second data set.

        * "logistic": log-odds of a logistic regression.
        * "gaussian": log-likelihood ratio of two normal distributions, which also detects changes of the variance.
        * "histogram": log ratio of the frequencies in bins, for a single feature.
        * "score": the single feature itself.

        A callable takes the features on both data sets, arrays of shape (outputs, features), and returns a function
        from features to scores.
    cut : "best" or float, default "best"
        Threshold of the score from which on the attack says "second". "best" is the threshold, in either direction,
        that shows most on the outputs on which the attack was fitted. A number is fixed in advance, such as 0.0 for
        even odds.
    family : {"gaussian"}, optional
        If "gaussian", the parameter mu of a Gaussian mechanism is bounded too, see `AuditResult.by_family`. That bound
        holds only if the learner is known to have the privacy curve of a Gaussian mechanism.
    adjacency : {"replace_one", "add_remove"}, default "replace_one"
        How the two data sets are neighbours: one record is replaced, or one record is added or removed. It decides the
        curve of an event that is passed as a claim.
    random_state : int, numpy.random.Generator or None, default None
        Seed of the order of the outputs and of simulated distributions. Only claims and families use it.
    method : {"joint", "clopper-pearson"}, optional
        How the error rates are bounded: by a joint confidence set, or by one Clopper-Pearson limit for each rate, see
        `audit_epsilon`. If None, "joint" for up to 20,000 counted outputs on each data set, and "clopper-pearson" for
        more.
    fit_share : float, default 0.5, or 0.2 for claims
        Share of the outputs on which the attack and its threshold are chosen: the leading ones or, for claims, random
        ones. The bound comes from the others alone, so every attack is valid, and a poor one only shows less.
    stages : iterable, optional
        Names of the stages. If None, 1, 2, ...

    Returns
    -------
    ClaimAudit
        With a claim: whether it is `refuted`, the measured `epsilon` and `delta`, and `at`, the tested point of the
        curve.
    AuditResult
        Without a claim: the bound `epsilon` or `delta`, with the errors of the attack.

    Raises
    ------
    InputError, InputTypeError
        If features are not finite, differ in shape or are too few, or if an option is out of range.

    Notes
    -----
    The result is valid if the outputs are independent draws, and if features and attack were chosen without the outputs
    on which they are tried. Choose the number of outputs first: the guarantee does not cover adding outputs until the
    audit shows something (PROOFS.md, L4).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> audit_outputs(rng.normal(size=1000), rng.normal(2, size=1000), delta=1e-5)
    <epsilon >= 2.79 at delta 1e-05, confidence 0.9; 500 and 500 outputs show 6.08 at most>

    300 outputs on each data set detect that half of the claimed noise is missing:

    >>> from thresholdout.privacy.accounting import GaussianAnswer
    >>> audit_outputs(rng.normal(size=300), rng.normal(2, size=300), claim=GaussianAnswer(1.0), random_state=0)
    <claim refuted: delta >= 0.435 at epsilon 1, claimed 0.126, confidence 0.9; 240 and 240 outputs>
    """
    if claim is None:
        return audit_setting(check_options(cast(OutputOptions, options)), world_0, world_1)
    return claim_setting(check_claim(claim, cast(ClaimOptions, options)), world_0, world_1)


Sampler = Callable[[int, np.random.Generator], Any]


def audit_sampler(
    first: Sampler,
    second: Sampler,
    *,
    draws: int = 20_000,
    random_state: int | np.random.Generator | None = None,
    **options: Unpack[AuditOptions],
) -> AuditResult:
    """Draw from a mechanism on two neighbouring data sets, and bound epsilon or delta from below.

    Use it for mechanisms that are cheap to run many times, such as a noisy query. `audit_outputs` takes outputs that
    already exist.

    Parameters
    ----------
    first, second : callable
        ``first(size, rng)`` returns ``size`` independent outputs on the first data set, or features of them, as an
        array whose first axis has that length. ``second(size, rng)`` does so on the second data set. `rng` is a numpy
        generator.
    draws : int, default 20_000
        Number of draws from each of the two, at least 4.
    random_state : int, numpy.random.Generator or None, default None
        Seed of the generators of both functions.
    **options
        Options of `audit_outputs`: exactly one of ``delta`` and ``epsilon``, and optionally ``confidence``, ``attack``,
        ``cut``, ``method``, ``fit_share``, ``stages`` and ``family``. By default the attack and its threshold are
        chosen on the first half of the draws, and the bound comes from the second half.

    Returns
    -------
    AuditResult
        The lower bound `epsilon` or `delta`, with the errors of the attack.

    Raises
    ------
    InputError, InputTypeError
        If an option is out of range, or a function does not return `draws` finite outputs.

    Examples
    --------
    A Laplace answer about one record costs 1 nat, and the audit finds most of that:

    >>> result = audit_sampler(lambda size, rng: rng.laplace(0, 1, size), lambda size, rng: rng.laplace(1, 1, size),
    ...                        delta=0.0, random_state=0)
    >>> 0.9 < result.epsilon < 1.0
    True
    """
    entropy = entropy_of(random_state)
    setting = check_options({**options, "random_state": entropy})
    size = count(draws, "draws", least=4)
    samplers = {"first": first, "second": second}
    for name, sampler in samplers.items():
        if not callable(sampler):
            raise InputTypeError(name, f"a {type(sampler).__name__}", "a function of a size and a generator")
    roots = np.random.SeedSequence(entropy).spawn(2)
    drawn = []
    for (name, sampler), root in zip(samplers.items(), roots, strict=True):
        sample = np.asarray(sampler(size, np.random.default_rng(root)))
        if sample.ndim == 0 or len(sample) != size:
            raise InputError(name, f"draws of shape {sample.shape}", f"a function whose draws have the length {size}")
        drawn.append(sample)
    return audit_setting(setting, *drawn)
