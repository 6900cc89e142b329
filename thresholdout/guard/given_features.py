"""Estimands given the features of the holdout's records, for ``sampling="fixed_features"``.

By default the holdout's features and labels are both random. With fixed features everybody knows the features, and
every estimand is an expectation over the labels given the features of all records. Each record then has its own
distribution. Queries that need identically distributed records are refused, and so are statistics whose estimands are
given the labels, which would leave no randomness. PROOFS.md, "Comparisons and gates" (G7).
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

__all__ = ["EXACT", "Said", "check_sampling", "check_served", "described", "largest_group", "part_of", "said_by"]

EXACT: Final = 2.0**53  # smaller integers are floats without an error


def check_sampling(sampling: object, model: DependenceModel, pieces: int) -> Sampling:
    """Return the declared sampling of a guard's records; refuse it if the dependence or the holdout's form excludes it.

    Examples
    --------
    >>> from graphs import Independent
    >>> check_sampling("fixed_features", Independent(10), 2)
    'fixed_features'
    """
    from graphs import Groups, Independent
    from graphs.models.law_free import GroupSizes

    known = get_args(Sampling)
    if not isinstance(sampling, str):
        raise InputTypeError("sampling", f"a {type(sampling).__name__}", f"one of {', '.join(map(repr, known))}")
    if sampling not in known:
        raise InputError("sampling", repr(sampling), f"one of {', '.join(map(repr, known))}")
    if sampling == "fixed_features":
        if not isinstance(model, (Independent, Groups, GroupSizes)):
            seen = f"{sampling!r} for {model.describe()}"
            advice = "'fixed_features' needs independent records or groups."
            raise InputError("sampling", seen, "'independent' for this dependence", advice)
        if pieces != 2:
            raise InputError("sampling", repr(sampling), "'independent' unless the holdout is a pair (X, y)")
    return cast(Sampling, sampling)


def check_served(declared: Declaration, parameters: Parameters) -> None:
    """Refuse mechanisms without a proof for records of different distributions."""
    if declared.fixed_features and not parameters.given_features:
        seen = f"'fixed_features' for {type(parameters).__name__}"
        advice = "Pass mechanism='claims' or 'ladder' for fixed features."
        raise InputError("sampling", seen, "'independent' for this mechanism", advice)


@dataclass(frozen=True, slots=True)
class Said:
    """A model's output for the holdout, with its classes if the metric reads them: a function of the features.

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
        """Return on which of n records two models differ; the first record if on none.

        Models with different classes differ on all records. A record without a difference only makes the claim weaker:
        it then bounds the difference by that of one record.
        """
        b, a = self.output, other.output
        if b.shape != a.shape or b.shape[:1] != (n,):
            seen = f"outputs of shapes {b.shape} and {a.shape}"
            raise InputError("b", seen, f"a model with the output shape of a for {n} records")
        unlike = b != a
        if b.dtype.kind != a.dtype.kind and {b.dtype.kind, a.dtype.kind} <= set("iuf"):
            # Integers from 2**53 on can be equal as floats and still differ from each other beside the labels.
            unlike |= (np.abs(b.astype(np.float64)) >= EXACT) | (np.abs(a.astype(np.float64)) >= EXACT)
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
    """Return a model's output, with its ``classes_`` if the metric reads them."""
    return Said(output, None if classes is None or not metric.reads_classes else np.array(classes))


def described(differ: NDArray[np.bool_], model: DependenceModel, training: int) -> Part:
    """Return, for the mechanism, the part of a holdout on which two models differ.

    Examples
    --------
    >>> from graphs import Groups
    >>> described(np.array([True, True, True, False]), Groups([0, 0, 1, 1]), 8)
    Part(records=3, effective=1.5, training=6.0)
    """
    from graphs import Groups

    largest = int(np.bincount(model.groups[differ]).max()) if isinstance(model, Groups) else largest_group(model)
    return part_of(int(np.count_nonzero(differ)), largest, training / differ.size)


def largest_group(model: DependenceModel) -> int:
    """Return the size of the largest group of a model without places, or of independent records."""
    from graphs.models.law_free import GroupSizes

    return model.largest if isinstance(model, GroupSizes) else 1


def part_of(records: int, largest: int, training: float) -> Part:
    """Return so many records, of which at most so many are in one group."""
    largest = min(records, largest)
    return Part(records, None if largest == 1 else records / largest, training * records)
