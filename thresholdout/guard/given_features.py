"""What a guard's truths are given, where that is declared: the features of the holdout's records.

By default the features of the holdout are as random as its labels, and truths are about both. A session that is
declared with ``given="features"`` takes them as known to everybody: every truth is what is expected of the labels,
given the features of all records. Each record then has a law of its own, so what needs one law is refused, and so are
statistics whose truths are given the labels: given both, nothing would be left to be expected. PROOFS.md, "Comparisons
and gates" (G7), has the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.mechanisms import Part
from thresholdout.planning.declaration import Given

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel
    from thresholdout.certificates.truth import Truth
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.scoring.metrics import Metric

__all__ = ["Said", "check_given", "check_served", "described", "said_by", "truth_given"]

_LEFT_OUT = "or given left out"


def check_given(given: object, model: DependenceModel, identically_distributed: bool, pieces: int) -> Given:
    """Return what a guard's truths are declared to be given; see `thresholdout.Thresholdout`.

    Parameters
    ----------
    given : object
        As declared.
    model : graphs.DependenceModel
        How the records depend on each other.
    identically_distributed : bool
        As declared.
    pieces : int
        Arrays in the holdout; features are the first of two.

    Raises
    ------
    InputError, InputTypeError
        When it is something else, or does not go with the rest of the declaration.

    Examples
    --------
    >>> from graphs import Independent
    >>> check_given("features", Independent(10), False, 2)
    'features'
    """
    from graphs import Groups, Independent

    if given is None:
        return None
    if not isinstance(given, str):
        raise InputTypeError("given", f"a {type(given).__name__}", "'features', or nothing")
    if given != "features":
        raise InputError("given", repr(given), "'features', or nothing")
    if identically_distributed:
        seen = "'features' beside identically_distributed=True; given its features each record has a law of its own"
        raise InputError("given", seen, f"identically_distributed=False, {_LEFT_OUT}")
    if not isinstance(model, (Independent, Groups)):
        seen = f"'features' for {model.describe()}, whose labels can depend on each other in other ways given features"
        raise InputError("given", seen, f"dependence=Groups(labels) or independent records, {_LEFT_OUT}")
    if pieces != 2:
        raise InputError("given", "'features' for a holdout that is no pair (X, y)", "Thresholdout((X, y), ...)")
    return "features"


def check_served(given: Given, parameters: Parameters) -> None:
    """Refuse mechanisms of which nothing is proved for records that have laws of their own."""
    if given is not None and not parameters.given_features:
        seen = f"'features' for {type(parameters).__name__}"
        served = "mechanism='thresholdout', 'guess-and-check', 'gaussian' or 'ladder'"
        raise InputError("given", seen, f"{served} beside it, {_LEFT_OUT}")


def truth_given(given: Given, truth: Truth) -> Truth:
    """Say which truth answers are about in a guard of this declaration.

    Examples
    --------
    >>> from graphs import Independent
    >>> from thresholdout.certificates.truth import truth_of
    >>> from thresholdout.mechanisms import ClaimsParameters
    >>> truth_given("features", truth_of(Independent(9), ClaimsParameters())).short
    'the average over all records, given their features'
    """
    return truth if given is None else truth.given_features()


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
        differ: NDArray[np.bool_] = (b != a).reshape(n, -1).any(axis=1)
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
