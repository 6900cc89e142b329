"""What a guard's truths are given, where that is declared: the features of the holdout's records.

By default the features of the holdout are as random as its labels, and truths are about both. A session that is
declared with ``sampling="fixed_features"`` takes them as known to everybody: every truth is what is expected of the
labels, given the features of all records. Each record then has a law of its own, so queries that need one law
are refused, and so are statistics whose truths are given the labels: given both, nothing would be left to be expected.
PROOFS.md, "Comparisons and gates" (G7), has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import Part
from thresholdout.planning.declaration import Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.planning.declaration import Declaration
    from thresholdout.scoring.metrics import Metric

__all__ = ["Said", "check_sampling", "check_served", "described", "said_by"]

_EXACT: Final = 2.0**53  # smaller integers are floats without an error
_OTHERWISE: Final = "sampling='independent'"


def check_sampling(sampling: object, model: DependenceModel, pieces: int) -> Sampling:
    """Return how a guard's records were drawn, as declared; see `thresholdout.Thresholdout`.

    Parameters
    ----------
    sampling : object
        As declared.
    model : graphs.DependenceModel
        How the records depend on each other.
    pieces : int
        Arrays in the holdout; features are the first of two.

    Raises
    ------
    InputError, InputTypeError
        When it is something else, or does not go with the rest of the declaration.

    Examples
    --------
    >>> from graphs import Independent
    >>> check_sampling("fixed_features", Independent(10), 2)
    'fixed_features'
    """
    from graphs import Groups, Independent

    known = get_args(Sampling)
    if not isinstance(sampling, str):
        raise InputTypeError("sampling", f"a {type(sampling).__name__}", f"one of {', '.join(map(repr, known))}")
    if sampling not in known:
        raise InputError("sampling", repr(sampling), f"one of {', '.join(map(repr, known))}")
    if sampling == "fixed_features":
        if not isinstance(model, (Independent, Groups)):
            seen = f"{sampling!r} for {model.describe()}, whose labels can depend on each other in other ways"
            raise InputError("sampling", seen, f"independent records or groups, or {_OTHERWISE}")
        if pieces != 2:
            seen = f"{sampling!r} for a holdout that is no pair (X, y)"
            raise InputError("sampling", seen, "Thresholdout((X, y), ...)")
    return cast(Sampling, sampling)


def check_served(declared: Declaration, parameters: Parameters) -> None:
    """Refuse mechanisms of which nothing is proved for records that have laws of their own."""
    if declared.fixed_features and not parameters.given_features:
        seen = f"'fixed_features' for {type(parameters).__name__}"
        raise InputError("sampling", seen, f"mechanism='claims' or 'ladder' beside it, or {_OTHERWISE}")


@dataclass(frozen=True, slots=True)
class Said:
    """What a model says about the holdout's records, as far as a metric needs it: a function of their features.

    Parameters
    ----------
    output : ndarray of shape (n,) or (n, n_classes)
        What it returned.
    classes : ndarray or None
        Its classes, where the metric's values depend on them.

    Examples
    --------
    >>> Said(np.array([0, 1, 1])).differs(Said(np.array([0, 1, 0])), 3)
    array([False, False,  True])
    >>> Said(np.array([0, 1]), np.array([0, 1])).differs(Said(np.array([0, 1]), np.array([1, 0])), 2)
    array([ True,  True])
    """

    output: NDArray[Any]
    classes: NDArray[Any] | None = None

    def differs(self, other: Said, n: int) -> NDArray[np.bool_]:
        """Return the records about which two models say something else, of n; the first record where there is none.

        With a record that does not differ, the claim is that the difference is at most that of one record. Models with
        other classes say something else about all.
        """
        b, a = self.output, other.output
        if b.shape != a.shape or b.shape[:1] != (n,):
            seen = f"outputs of shapes {b.shape} and {a.shape}"
            raise InputError("b", seen, f"those of two models that say the same kind of thing about {n} records")
        unlike = b != a
        if b.dtype.kind != a.dtype.kind and {b.dtype.kind, a.dtype.kind} <= set("iuf"):
            # Numbers of two kinds are compared as floats, in which integers from 2**53 on may be equal to others; a
            # metric compares each with the labels.
            unlike |= (np.abs(b.astype(np.float64)) >= _EXACT) | (np.abs(a.astype(np.float64)) >= _EXACT)
        differ: NDArray[np.bool_] = unlike.reshape(n, -1).any(axis=1)
        differ |= not self.same_classes(other)
        if not differ.any():
            differ[0] = True
        return differ

    def same_classes(self, other: Said) -> bool:
        """Whether both have the same classes in the same order, or need none."""
        if self.classes is None or other.classes is None:
            return self.classes is None and other.classes is None
        return np.array_equal(self.classes, other.classes)


def said_by(metric: Metric, output: NDArray[Any], classes: object) -> Said:
    """Return what a model says, from its output and its ``classes_``."""
    return Said(output, None if classes is None or not metric.reads_classes else np.array(classes))


def described(differ: NDArray[np.bool_], model: DependenceModel, training: int) -> Part:
    """Return the part of a holdout on which two models differ, for the mechanism.

    Parameters
    ----------
    differ : ndarray of bool
        Which records these are.
    model : graphs.DependenceModel
        Independent records, or groups.
    training : int
        Number of training records.

    Examples
    --------
    >>> from graphs import Groups
    >>> described(np.array([True, True, True, False]), Groups([0, 0, 1, 1]), 8)
    Part(records=3, effective=1.5, training=6.0)
    """
    from graphs import Groups

    records = int(np.count_nonzero(differ))
    largest = int(np.bincount(model.groups[differ]).max()) if isinstance(model, Groups) else 1
    return Part(records, None if largest == 1 else records / largest, training * records / differ.size)
