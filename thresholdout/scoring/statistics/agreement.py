"""Agreement of labels and predictions beyond chance: Cohen's kappa."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.agreement_evidence import AgreementEvidence, ExpectedAgreement
from thresholdout.scoring.metrics import remembered
from thresholdout.scoring.statistics.label_checks import predictions, shown
from thresholdout.scoring.statistics.statistic import Statistic
from thresholdout.scoring.statistics.statistic_parts import (
    GroupedPart,
    Judged,
    PartEstimate,
    groups_of,
    moments_of,
    singles,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["Agreement", "LabelTable", "cohen_kappa"]

Weights = Literal["linear", "quadratic"]

_AT_ONCE: Final = 1 << 22  # pairs of kinds of records in memory at a time
_USUAL: Final = 0.5  # least variance that is expected, as a share of a coin's
_ALIKE: Final = 0.5  # expected correlation inside groups; it places claims and is no assumption


@remembered
def cohen_kappa(weights: Weights | None = None) -> Statistic:
    """Return Cohen's kappa: the agreement of labels and predictions beyond chance, for any number of classes.

    The result is a `Statistic` for ``guard.score(model, cohen_kappa())``. Greater is better.

    Parameters
    ----------
    weights : {"linear", "quadratic"}, optional
        "linear" weights a disagreement by the distance of the two classes in their order, "quadratic" by its square.
        The classes are those of the training part and the estimator. If None, all disagreements have the same weight.

    Returns
    -------
    Statistic
        The weighted or unweighted kappa; `Statistic.value` computes it from labels and predictions.

    Notes
    -----
    The estimand is ``1 - D/E``. D is the expected disagreement of a record's label and its prediction, E that of a
    label and the prediction of another record. For independent, identically distributed records (``sampling="iid"``)
    these are the population's, and bets on all pairs of records test them. For other independent records and groups
    both are given the labels of the holdout.

    Examples
    --------
    >>> cohen_kappa().value([0, 0, 1, 1], [0, 1, 1, 1])
    0.5
    >>> round(cohen_kappa("quadratic").value([0, 1, 2, 2], [0, 1, 1, 2]), 6)
    0.8
    """
    if weights not in (None, "linear", "quadratic"):
        raise InputError("weights", repr(weights), "None, 'linear' or 'quadratic'")
    return Statistic(
        name="cohen_kappa" if weights is None else f"cohen_kappa(weights={weights!r})",
        responses=("predict",),
        parts=lambda _: (Agreement(weights),),
        bounds=(-1.0, 1.0),
        greater_is_better=True,
        target="one minus the expected disagreement of a label and its prediction, over that of a label and the "
        "prediction of another record; unless records are independent with one law, given the labels of the holdout",
    )


@dataclass(frozen=True, eq=False)
class LabelTable:
    """How many records have each class of labels (rows) and of predictions, and the disagreement of each pair.

    Secret for a holdout; the representation shows the number of classes only.
    """

    counts: NDArray[np.int64] = field(repr=False)
    weights: NDArray[np.float64] = field(repr=False)

    def __repr__(self) -> str:
        return f"<LabelTable classes={len(self.weights)}>"

    @cached_property
    def kinds(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Labels and predictions that records have, and the number of records with both."""
        truth, said = np.nonzero(self.counts)
        return truth, said, self.counts[truth, said]

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.counts.sum())

    def observed(self) -> NDArray[np.float64]:
        """Return the disagreement of label and prediction, for each kind of records."""
        truth, said, _ = self.kinds
        return self.weights[truth, said]

    def of_predictions(self) -> NDArray[np.float64]:
        """Return the mean disagreement of a class of predictions with all labels, for each class."""
        found: NDArray[np.float64] = self.weights @ (self.counts.sum(axis=1) / self.n)
        return found

    def of_labels(self) -> NDArray[np.float64]:
        """Return the mean disagreement of a class of labels with all predictions, for each class."""
        found: NDArray[np.float64] = self.weights @ (self.counts.sum(axis=0) / self.n)
        return found

    def position(self) -> tuple[float, float]:
        """Return (1 + kappa)/2, and the mean disagreement by chance."""
        _, said, times = self.kinds
        chance = float(np.sum(times * self.of_predictions()[said])) / self.n
        observed = float(np.sum(times * self.observed())) / self.n
        return _position(observed, chance), chance

    def pairs(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return disagreements of pairs of records, own and crossed, and the number of pairs with each."""
        if np.array_equal(self.weights, 1.0 - np.eye(len(self.weights))):
            return self._plain_pairs()
        truth, said, records = self.kinds
        rows = max(1, _AT_ONCE // records.size)
        found = []
        for start in range(0, records.size, rows):
            one, other = np.triu_indices(min(rows, records.size - start), start, records.size)
            one = one + start
            own = self.weights[truth[one], said[one]] + self.weights[truth[other], said[other]]
            crossed = self.weights[truth[one], said[other]] + self.weights[truth[other], said[one]]
            times = np.where(one == other, records[one] * (records[one] - 1) // 2, records[one] * records[other])
            found.append(_distinct(0.5 * own, 0.5 * crossed, times))
        return _distinct(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def _plain_pairs(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the same from counts of classes, if all disagreements have the same weight."""
        wrong, right = self.counts.copy(), np.diagonal(self.counts).copy()
        np.fill_diagonal(wrong, 0)
        labels, said = wrong.sum(axis=1), wrong.sum(axis=0)
        rights, wrongs = int(right.sum()), int(labels.sum())
        alike, met = int(np.sum(right * (right - 1))) // 2, int(np.sum(right * (labels + said)))
        swapped = int(np.sum(wrong * wrong.T)) // 2  # each has the label that is predicted for the other
        once = int(np.sum(labels * said)) - 2 * swapped
        times = [alike, rights * (rights - 1) // 2 - alike, met, rights * wrongs - met, swapped, once]
        times.append(wrongs * (wrongs - 1) // 2 - swapped - once)
        own, crossed = np.array([[0.0, 0.0, 0.5, 0.5, 1.0, 1.0, 1.0], [0.0, 1.0, 0.5, 1.0, 0.0, 0.5, 1.0]])
        return _distinct(own, crossed, np.array(times, dtype=np.int64))


def _position(observed: float, chance: float) -> float:
    """Return (1 + kappa)/2."""
    if not chance > 0.0:
        raise InputError("y", "labels and predictions of one class", "labels and predictions of two classes")
    return min(1.0, max(0.0, 1.0 - 0.5 * observed / chance))


def _distinct(
    own: NDArray[np.float64], crossed: NDArray[np.float64], times: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return each two disagreements once, with the sum of their numbers of pairs."""
    both, place = np.unique((own + 1j * crossed)[times > 0], return_inverse=True)
    return both.real, both.imag, np.bincount(place, times[times > 0], both.size).astype(np.int64)


@dataclass(frozen=True)
class Agreement(GroupedPart):
    """The position (1 + kappa)/2, with d and b of PROOFS.md, S9; denominators are 2 b."""

    weights: Weights | None
    one_law: bool = True

    def estimate(self, judged: Judged) -> PartEstimate:
        """Return the position, the variance of its linear part, and squares of records and of pairs."""
        return self.estimate_of(self._judged(judged)[0])

    def estimate_of(self, table: LabelTable) -> PartEstimate:
        """Return the same of counts."""
        (truth, said, each), n = table.kinds, table.n
        d, b, of_labels = table.observed(), table.of_predictions()[said], table.of_labels()[truth]
        value, chance = table.position()
        slope = 2.0 * (1.0 - value)
        linear = d - slope * (b + of_labels - chance)
        least = 1.0 / (2.0 * n)
        squares, wild = moments_of(d - slope * b, each)
        own, crossed, times = table.pairs()
        of_pairs = moments_of(own - slope * crossed, times) if times.size else (squares, wild)
        return PartEstimate(
            value,
            max(moments_of(linear, each)[0], least) / (2.0 * chance) ** 2,
            2.0 * chance,
            squares=max(squares, least),
            wild=wild,
            records=n,
            pairs=(max(of_pairs[0], least), of_pairs[1]),
        )

    def moved(self, found: PartEstimate, value: float) -> PartEstimate:
        """Return an estimate with another value, and at least half of a coin's variance there."""
        usual = _USUAL * value * (1.0 - value) * found.share**2
        squares, paired = max(found.squares, usual), max(found.pairs[0], 0.5 * usual)
        return replace(
            found,
            value=value,
            variance=max(found.variance, usual / found.share**2),
            squares=squares,
            wild=max(found.wild, squares),
            pairs=(paired, max(found.pairs[1], paired)),
        )

    def evidence(self, judged: Judged, model: DependenceModel, one_law: bool) -> AgreementEvidence:
        """Return the disagreements of pairs, records or groups."""
        table, truth, said = self._judged(judged)
        if singles(model):
            return self.evidence_of(table, one_law)
        groups = groups_of(model)
        assert groups is not None  # others are refused
        d, b = table.weights[truth, said], table.of_predictions()[said]
        of_d, of_b = (np.bincount(groups, weights=each).astype(np.float64) for each in (d, b))
        return self.evidence_of_groups(of_d, of_b, np.bincount(groups))

    def evidence_of(self, table: LabelTable, one_law: bool) -> AgreementEvidence:
        """Return the disagreements of pairs of records of one law, or of records, from counts. Secret."""
        value, _ = table.position()
        if one_law:
            own, crossed, times = table.pairs()
            each = (table.n // 2) / max(1, table.n * (table.n - 1) // 2)  # of the pairs of one division
            return AgreementEvidence(value, own, crossed, 1.0, times=np.multiply(each, times, dtype=np.float64))
        _, said, records = table.kinds
        return AgreementEvidence(
            value, table.observed(), table.of_predictions()[said], 1.0, times=records.astype(np.float64)
        )

    def evidence_of_groups(
        self, observed: NDArray[np.float64], chance: NDArray[np.float64], sizes: NDArray[np.int64]
    ) -> AgreementEvidence:
        """Return the evidence from the sums of disagreements in independent groups of these sizes. Secret."""
        value = _position(float(np.sum(observed)), float(np.sum(chance)))
        return AgreementEvidence(value, observed, chance, float(sizes.max()))

    def expected(self, found: PartEstimate, model: DependenceModel, one_law: bool) -> ExpectedAgreement:
        """Return the expected evidence of pairs, records or groups."""
        if one_law and singles(model):
            return ExpectedAgreement(max(1, model.n // 2), found.share, *found.pairs, 1.0)
        groups = groups_of(model)
        assert groups is not None
        return self.expected_of_groups(found, np.bincount(groups))

    def expected_of_groups(self, found: PartEstimate, sizes: NDArray[np.int64]) -> ExpectedAgreement:
        """Return the expected evidence of groups of these sizes."""
        n = int(sizes.sum())
        together = _ALIKE * float(np.sum(np.square(sizes, dtype=np.float64))) + (1.0 - _ALIKE) * n
        each, times = n / sizes.size, together / sizes.size
        return ExpectedAgreement(
            sizes.size, found.share * each, found.squares * times, found.wild * times, float(sizes.max())
        )

    def refusal(self, model: DependenceModel) -> str | None:
        """Refuse models without groups: given the labels, only records of different groups are independent."""
        return "independent records or Groups" if groups_of(model) is None else None

    def apart(self, classes: int) -> NDArray[np.float64]:
        """Return the disagreement of each pair of classes, which are in order."""
        ranks = np.arange(classes) / max(1, classes - 1)
        far = np.abs(ranks[:, None] - ranks)
        return far**2 if self.weights == "quadratic" else far if self.weights else np.ceil(far)

    def _judged(self, judged: Judged) -> tuple[LabelTable, NDArray[np.int64], NDArray[np.int64]]:
        """Return the counts, and the classes of each record."""
        y, said = judged.y, predictions(judged.output, judged.y)
        classes = np.unique(np.concatenate([y, said]))
        if self.weights is not None:
            known = judged.labels if judged.labels is not None else classes
            strange = np.setdiff1d(classes, known)
            if strange.size:
                raise InputError(
                    "y", f"the class {shown(strange[0])}", "labels of classes of the training part and the estimator"
                )
            classes = known
        of_labels, of_said = np.searchsorted(classes, y), np.searchsorted(classes, said)
        counts = np.bincount(of_labels * classes.size + of_said, minlength=classes.size**2)
        return LabelTable(counts.reshape(classes.size, -1), self.apart(classes.size)), of_labels, of_said
