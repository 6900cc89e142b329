"""Agreement of labels and predictions beyond chance: Cohen's kappa."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.agreement_evidence import AgreementEvidence, ExpectedAgreement
from thresholdout.scoring.metrics import remembered
from thresholdout.scoring.statistics.label_checks import predictions, shown
from thresholdout.scoring.statistics.statistic import Statistic
from thresholdout.scoring.statistics.statistic_parts import (
    Judged,
    PartEstimate,
    StatisticPart,
    groups_of,
    moments_of,
    singles,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from graphs import DependenceModel

__all__ = ["cohen_kappa"]

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
        parts=lambda _: (_Agreement(weights),),
        bounds=(-1.0, 1.0),
        greater_is_better=True,
        target="one minus the expected disagreement of a label and its prediction, over that of a label and the "
        "prediction of another record; unless records are independent with one law, given the labels of the holdout",
    )


class _Table(NamedTuple):
    """Classes of labels and predictions as numbers, and the disagreement of each pair of classes."""

    truth: NDArray[np.int64]
    said: NDArray[np.int64]
    weights: NDArray[np.float64]

    def shares(self, of: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the share of each class among labels or predictions."""
        return np.bincount(of, minlength=len(self.weights)) / of.size

    def observed(self) -> NDArray[np.float64]:
        """Return the disagreement of each record's label and prediction."""
        return self.weights[self.truth, self.said]

    def of_predictions(self) -> NDArray[np.float64]:
        """Return for each prediction its mean disagreement with all labels."""
        found: NDArray[np.float64] = (self.weights @ self.shares(self.truth))[self.said]
        return found

    def of_labels(self) -> NDArray[np.float64]:
        """Return for each label its mean disagreement with all predictions."""
        found: NDArray[np.float64] = (self.weights @ self.shares(self.said))[self.truth]
        return found

    def pairs(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return disagreements of pairs of records, own and crossed, and the number of pairs with each."""
        classes = len(self.weights)
        if np.array_equal(self.weights, 1.0 - np.eye(classes)):
            return self._plain_pairs()
        kinds, records = np.unique(self.truth * classes + self.said, return_counts=True)
        truth, said = np.divmod(kinds, classes)
        rows = max(1, _AT_ONCE // kinds.size)
        found = []
        for start in range(0, kinds.size, rows):
            one, other = np.triu_indices(min(rows, kinds.size - start), start, kinds.size)
            one = one + start
            own = self.weights[truth[one], said[one]] + self.weights[truth[other], said[other]]
            crossed = self.weights[truth[one], said[other]] + self.weights[truth[other], said[one]]
            times = np.where(one == other, records[one] * (records[one] - 1) // 2, records[one] * records[other])
            found.append(_distinct(0.5 * own, 0.5 * crossed, times))
        return _distinct(*(np.concatenate(each) for each in zip(*found, strict=True)))

    def _plain_pairs(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return the same from counts of classes, if all disagreements have the same weight."""
        classes = len(self.weights)
        wrong = np.bincount(self.truth * classes + self.said, minlength=classes**2).reshape(classes, classes)
        right = np.diagonal(wrong).copy()
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


def _distinct(
    own: NDArray[np.float64], crossed: NDArray[np.float64], times: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return each two disagreements once, with the sum of their numbers of pairs."""
    both, place = np.unique((own + 1j * crossed)[times > 0], return_inverse=True)
    return both.real, both.imag, np.bincount(place, times[times > 0], both.size).astype(np.int64)


@dataclass(frozen=True)
class _Agreement(StatisticPart):
    """The position (1 + kappa)/2, with d and b of PROOFS.md, S9; denominators are 2 b."""

    weights: Weights | None
    one_law: bool = True

    def estimate(self, judged: Judged) -> PartEstimate:
        """Return the position, the variance of its linear part, and squares of records and of pairs."""
        table = self._table(judged)
        n, d, b = judged.y.size, table.observed(), table.of_predictions()
        value, chance = _position(d, b)
        slope = 2.0 * (1.0 - value)
        linear = d - slope * (b + table.of_labels() - chance)
        least = 1.0 / (2.0 * n)
        squares, wild = moments_of(d - slope * b)
        own, crossed, times = table.pairs()
        of_pairs = moments_of(own - slope * crossed, times) if times.size else (squares, wild)
        return PartEstimate(
            value,
            max(float(np.mean(linear * linear)), least) / (2.0 * chance) ** 2,
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
        table = self._table(judged)
        d, b = table.observed(), table.of_predictions()
        value, _ = _position(d, b)
        if one_law and singles(model):
            own, crossed, times = table.pairs()
            each = (d.size // 2) / max(1, d.size * (d.size - 1) // 2)  # of the pairs of one division
            return AgreementEvidence(value, own, crossed, 1.0, times=np.multiply(each, times, dtype=np.float64))
        groups = groups_of(model)
        assert groups is not None  # others are refused
        of_d, of_b = (np.bincount(groups, weights=each).astype(np.float64) for each in (d, b))
        return AgreementEvidence(value, of_d, of_b, float(np.bincount(groups).max()))

    def expected(self, found: PartEstimate, model: DependenceModel, one_law: bool) -> ExpectedAgreement:
        """Return the expected evidence of pairs, records or groups."""
        if one_law and singles(model):
            return ExpectedAgreement(max(1, model.n // 2), found.share, *found.pairs, 1.0)
        groups = groups_of(model)
        assert groups is not None
        sizes = np.bincount(groups)
        together = _ALIKE * float(np.sum(np.square(sizes, dtype=np.float64))) + (1.0 - _ALIKE) * model.n
        each, times = model.n / sizes.size, together / sizes.size
        return ExpectedAgreement(
            sizes.size, found.share * each, found.squares * times, found.wild * times, float(sizes.max())
        )

    def refusal(self, model: DependenceModel) -> str | None:
        """Refuse models without groups: given the labels, only records of different groups are independent."""
        return "independent records or Groups" if groups_of(model) is None else None

    def _table(self, judged: Judged) -> _Table:
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
        ranks = np.arange(classes.size) / max(1, classes.size - 1)
        apart = np.abs(ranks[:, None] - ranks)
        weights = apart**2 if self.weights == "quadratic" else apart if self.weights else np.ceil(apart)
        return _Table(np.searchsorted(classes, y), np.searchsorted(classes, said), weights)


def _position(observed: NDArray[np.float64], chance: NDArray[np.float64]) -> tuple[float, float]:
    """Return (1 + kappa)/2, and the mean disagreement by chance."""
    mean = float(np.mean(chance))
    if not mean > 0.0:
        raise InputError("y", "labels and predictions of one class", "labels and predictions of two classes")
    return min(1.0, max(0.0, 1.0 - 0.5 * float(np.mean(observed)) / mean)), mean
