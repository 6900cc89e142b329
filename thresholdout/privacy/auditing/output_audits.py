"""Audits of outputs on two data sets: the attack is fitted on one part of them and counted on the other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from thresholdout.errors import InputError, InputTypeError
from thresholdout.privacy.accounting.bound_arguments import number, open_unit
from thresholdout.privacy.auditing.attacks import Attack, Score, best_cut, check_attack
from thresholdout.privacy.auditing.audit_goals import EpsilonGoal, Goal, check_goal
from thresholdout.privacy.auditing.audit_result import AuditResult
from thresholdout.privacy.auditing.error_counts import Method, bound, check_method, fitted_on, method_for

__all__ = ["AuditOptions", "AuditSetting", "audit_outputs", "audit_setting", "check_options"]

Floats = NDArray[np.float64]
_CHOICE = 0.02  # share of alpha at which events are compared: the best of many flatters itself, small ones most


class AuditOptions(TypedDict, total=False):
    """What all audits take; see `audit_outputs`."""

    delta: float | None
    epsilon: float | None
    confidence: float
    attack: str | Attack
    cut: str | float
    method: Method | None
    fit_share: float
    stages: Iterable[Hashable] | None


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


def check_options(options: AuditOptions) -> AuditSetting:
    """Return checked options; before anything is drawn or trained.

    Raises
    ------
    InputError, InputTypeError
        When one is out of range.
    """
    unknown = sorted(set(options) - set(AuditOptions.__annotations__))
    if unknown:
        raise InputTypeError(
            unknown[0], "an unknown option", f"one of {', '.join(sorted(AuditOptions.__annotations__))}"
        )
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
        raise InputError(
            name, f"{len(features)} outputs", f"2 or more to fit on, and some to try, at a share of {share:g}"
        )
    return features[:size], features[size:]


def _scored(score: Score, features: Floats) -> Floats:
    found = np.asarray(score(features), dtype=np.float64)
    if found.shape != (len(features),) or np.isnan(found).any():
        raise InputError("attack", f"scores of shape {found.shape} or NaN", f"{len(features)} numbers")
    return found


def audit_setting(setting: AuditSetting, first: Any, second: Any) -> AuditResult:
    """Audit with checked options; see `audit_outputs`."""
    parts = _features(first, "first"), _features(second, "second")
    if parts[0].shape[1:] != parts[1].shape[1:]:
        shapes = " and ".join(str(part.shape[1:]) for part in parts)
        raise InputError("first, second", f"{shapes} stages and features", "equally many")
    (fit_first, try_first), (fit_second, try_second) = (
        _split(part, setting.fit_share, name) for part, name in zip(parts, ("first", "second"), strict=True)
    )
    n_stages, goal = parts[0].shape[1], setting.goal
    stages = setting.stages or tuple(range(1, n_stages + 1))
    if len(stages) != n_stages:
        raise InputError("stages", f"{len(stages)} names", f"{n_stages}, one for each stage")
    n_fp, n_fn = len(try_first), len(try_second)
    method: Method = setting.method or method_for(n_fp, n_fn)
    fp, fn = np.zeros(n_stages, dtype=np.int64), np.zeros(n_stages, dtype=np.int64)
    cuts, bounds = np.zeros(n_stages), np.zeros(n_stages)
    for k in range(n_stages):
        score = setting.attack(fit_first[:, k], fit_second[:, k])
        fitted = _scored(score, fit_first[:, k]), _scored(score, fit_second[:, k])
        sign, cuts[k] = best_cut(*fitted, goal, _CHOICE * setting.alpha) if setting.cut is None else (1.0, setting.cut)
        fp[k] = int((sign * _scored(score, try_first[:, k]) >= cuts[k]).sum())
        fn[k] = int((sign * _scored(score, try_second[:, k]) < cuts[k]).sum())
        bounds[k] = bound(goal, int(fp[k]), n_fp, int(fn[k]), n_fn, setting.alpha, method)
    last = float(bounds[-1])
    epsilon, delta = (last, goal.delta) if isinstance(goal, EpsilonGoal) else (goal.epsilon, last)
    return AuditResult(
        goal.measured, epsilon, delta, setting.confidence, method, stages, bounds, fp, n_fp, fn, n_fn, cuts
    )


def audit_outputs(
    first: Any,
    second: Any,
    *,
    delta: float | None = None,
    epsilon: float | None = None,
    confidence: float = 0.9,
    attack: str | Attack = "logistic",
    cut: str | float = "best",
    method: Method | None = None,
    fit_share: float = 0.5,
    stages: Iterable[Hashable] | None = None,
) -> AuditResult:
    """Bound from below what outputs on two neighbouring data sets tell about which one it was.

    Parameters
    ----------
    first, second : array_like, shape (outputs,), (outputs, features) or (outputs, stages, features)
        Features of independent outputs on each of the two data sets; both may have different numbers of outputs.
        Stages, such as epochs, are audited one by one.
    delta, epsilon : float, optional
        Exactly one of them is given, and the other one is bounded: epsilon for a delta in [0, 1), or delta (the
        hockey-stick divergence, in the worse of both orders) for an epsilon in [0, 700].
    confidence : float
        Probability with which the bound of a stage holds, in (0, 1).
    attack : {"logistic", "gaussian", "histogram", "score"} or callable
        How outputs become scores, higher for the second data set: log-odds of a logistic regression, log-likelihood
        ratio of two normal laws, or of frequencies in bins (one feature), or the one feature itself. A callable takes
        the features of both, arrays of shape (outputs, features), and returns a function from features to scores.
    cut : "best" or float
        From which score on the attack says "second", or up to which one: what shows most on the outputs that it was
        fitted on, in either direction; or from a fixed one on, such as 0.0 for even odds.
    method : {"joint", "clopper-pearson"}, optional
        See `audit_epsilon`; by default the joint confidence set for up to 20,000 outputs on each, and Clopper and
        Pearson's limits for more.
    fit_share : float
        Which share of the outputs, the leading ones, the attack and its threshold are chosen on. The bound comes from
        the others alone, so any attack is allowed, and a poor one only shows less.
    stages : iterable, optional
        Names of the stages; 1, 2, ... by default.

    Returns
    -------
    AuditResult

    Raises
    ------
    InputError, InputTypeError
        For features that are not finite, of different shapes or too few, and options out of range.

    Notes
    -----
    Valid when the outputs are independent draws, and whoever chose features and attack had not seen those that they
    are tried on. More outputs until something shows is another experiment: choose their number first (PROOFS.md, L4).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> audit_outputs(rng.normal(size=1000), rng.normal(2, size=1000), delta=1e-5)
    <epsilon >= 2.79 at delta 1e-05, confidence 0.9; 500 and 500 outputs show 6.08 at most>
    """
    setting = check_options(
        {
            "delta": delta,
            "epsilon": epsilon,
            "confidence": confidence,
            "attack": attack,
            "cut": cut,
            "method": method,
            "fit_share": fit_share,
            "stages": stages,
        }
    )
    return audit_setting(setting, first, second)
