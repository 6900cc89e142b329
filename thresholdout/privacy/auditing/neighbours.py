"""A pair of neighbouring data sets that is easy to tell apart: one record becomes a mislabelled look-alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphs.numerics.bisection import bisect
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import count, open_unit

__all__ = ["Neighbours", "deepfool", "make_neighbour"]

Floats = NDArray[np.float64]
_STEPS = 1.1 ** np.arange(100)  # multiples of the way that are tried, up to 12,500


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two data sets that differ in one record: row `index`, moved from `x0` to `x_star` with the same label."""

    first: tuple[Floats, NDArray[np.int64]]
    second: tuple[Floats, NDArray[np.int64]]
    index: int
    x0: Floats
    x_star: Floats
    label: int
    distance: float


def _linear(coef: Any, intercept: Any, models: int) -> tuple[Floats, Floats]:
    weights, offsets = np.asarray(coef, dtype=np.float64), np.asarray(intercept, dtype=np.float64)
    shape = "(models, classes, features) and (models, classes)" if models else "(classes, features) and (classes,)"
    if weights.ndim != 2 + models or offsets.shape != weights.shape[:-1] or weights.shape[models] < 2:
        seen = f"arrays of shape {weights.shape} and {offsets.shape}"
        raise InputError("coef, intercept", seen, f"arrays of shape {shape}, with two classes or more")
    if not weights.size or not (np.isfinite(weights).all() and np.isfinite(offsets).all()):
        raise InputError("coef, intercept", "no values, or some that are not finite", "finite numbers")
    return weights, offsets


def deepfool(coef: Any, intercept: Any, x: Any) -> Floats:
    """Return the shortest way from a point to a change of a linear classifier's prediction.

    Notes
    -----
    DeepFool [Moosavi-Dezfooli, Fawzi, Frossard, CVPR 2016] needs one step if the classifier is linear: to the nearest
    of the hyperplanes between the predicted class and another one.
    """
    weights, offsets = _linear(coef, intercept, 0)
    point = np.asarray(x, dtype=np.float64)
    if point.shape != weights.shape[1:] or not np.isfinite(point).all():
        raise InputError("x", f"an array of shape {point.shape}", f"{weights.shape[1]} finite numbers")
    scores = weights @ point + offsets
    predicted = int(scores.argmax())
    differences = weights - weights[predicted]
    lengths = np.linalg.norm(differences, axis=1)
    others = np.flatnonzero(lengths > 0)
    if not others.size:
        raise InputError("coef", "classes with equal coefficients", "coefficients on which the prediction depends")
    nearest = others[np.argmin((scores[predicted] - scores[others]) / lengths[others])]
    found: Floats = (scores[predicted] - scores[nearest]) / lengths[nearest] ** 2 * differences[nearest]
    return found


def make_neighbour(
    X: Any, y: Any, coef: Any, intercept: Any, *, probability: float | None = None, candidates: int = 60
) -> Neighbours:
    """Build a pair of neighbouring data sets for `audit_learner` whose difference is easy to detect.

    The second data set differs from the first in one record. That record is moved to a place where all given models
    predict another label, and keeps its own label, so that a model can only memorize it.

    Parameters
    ----------
    X : array_like, shape (records, features)
        Features of the records.
    y : array_like of int, shape (records,)
        Labels from 0 to classes - 1.
    coef, intercept : array_like, shape (models, classes, features) and (models, classes)
        Coefficients and intercepts of linear softmax models that were trained on these records.
    probability : float, optional
        Probability in (0, 1). All models must give the old label a smaller probability at the new place. If None, all
        models must only change their prediction.
    candidates : int, default 60
        Number of records to try, among those that all models predict correctly. The record with the shortest move is
        chosen.

    Returns
    -------
    Neighbours
        Object with the data sets ``first`` and ``second``, each a tuple (features, labels). Row ``index`` differs:
        ``x0`` becomes ``x_star``, at the given ``distance``, with the same ``label``. The record is moved along the
        shortest way to a change of prediction of the average model (DeepFool), until all models change theirs.

    Raises
    ------
    InputError
        If shapes or labels do not match, or no candidate can be moved in this way.

    Notes
    -----
    The construction is that of [HF, Section V, steps 1 to 3]. The new record keeps the old label. Therefore only two of
    the four features that the paper lists differ, p(label | x_star) and p(label | x0).

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [3.0], [4.0]])
    >>> pair = make_neighbour(X, [0, 0, 1, 1], [[[-1.0], [1.0]]], [[2.0, -2.0]])
    >>> pair.index, pair.label, bool(pair.x_star[0] > 2)
    (1, 0, True)
    """
    weights, offsets = _linear(coef, intercept, 1)
    records, labels = np.asarray(X, dtype=np.float64), np.asarray(y)
    if records.ndim != 2 or records.shape[1] != weights.shape[2] or not np.isfinite(records).all():
        raise InputError("X", f"an array of shape {records.shape}", f"finite rows of {weights.shape[2]} features")
    if labels.shape != records.shape[:1] or labels.dtype.kind not in "iu":
        raise InputError(
            "y", f"an array of {labels.dtype} of shape {labels.shape}", "one integer label for each record"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < weights.shape[1]:
        raise InputError("y", f"labels up to {labels.max()}", f"labels from 0 to {weights.shape[1] - 1}")
    limit = 1.0 if probability is None else open_unit(probability, "probability")
    tried = count(candidates, "candidates")
    labels = labels.astype(np.int64)
    agreed = ((np.einsum("mcf,nf->mnc", weights, records) + offsets[:, None]).argmax(axis=2) == labels).all(axis=0)
    best: tuple[float, int, Floats] | None = None
    for index in np.flatnonzero(agreed)[:tried].tolist():
        moved = _move(weights, offsets, records[index], int(labels[index]), limit)
        distance = np.inf if moved is None else float(np.linalg.norm(moved - records[index]))
        if moved is not None and (best is None or distance < best[0]):
            best = distance, index, moved
    if best is None:
        seen = f"no record to move among {min(int(agreed.sum()), tried)} that all models predict correctly"
        raise InputError("candidates", seen, "a larger number", "Or pass a larger probability.")
    distance, index, moved = best
    changed = records.copy()
    changed[index] = moved
    old = records[index].copy()
    return Neighbours((records, labels), (changed, labels), index, old, moved, int(labels[index]), distance)


def _move(weights: Floats, offsets: Floats, x: Floats, label: int, limit: float) -> Floats | None:
    """Return the place where all models change their prediction of a record; None if the straight way misses it."""
    from scipy.special import softmax

    way = deepfool(weights.mean(axis=0), offsets.mean(axis=0), x)

    def fooled(length: float) -> bool:
        scores = weights @ (x + length * way) + offsets
        changed = bool((scores.argmax(axis=1) != label).all())
        return changed and bool((softmax(scores, axis=1)[:, label] < limit).all())

    # The factor 1.001 crosses the border itself, where the prediction is a tie.
    longer = next((k for k, length in enumerate(_STEPS) if fooled(1.001 * float(length))), None)
    if longer is None:
        return None
    high = 1.001 * float(_STEPS[longer])
    low = 1.001 * float(_STEPS[longer - 1]) if longer else high
    return x + bisect(fooled, low, high, halvings=20) * way
