"""Out-of-fold values: every record is scored by a model that was fitted to other folds."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, NoReturn

import numpy as np

from graphs.errors import ArgumentError
from graphs.leakage.profile import Profile
from graphs.model import Adversary, DependenceModel
from graphs.models.law_free import Groups
from graphs.numerics.arguments import FloatArray, IntArray
from graphs.numerics.rounding import up
from graphs.structure.labelled_values import align, read, refuse_unordered
from graphs.structure.revealed_blocks import RevealedBlocks

__all__ = ["OutOfFold"]


class OutOfFold(DependenceModel):
    """Values of records in folds, each computed from its own record and from the records of *other* folds.

    A mean of such values estimates the average risk of the fitted models, a function of the records: ``(1/n) sum_i
    E[v_i | the other folds]``. Given the other folds, the mean over fold k of n_k records deviates from it with a
    moment generating function of at most ``exp(u^2 Lambda_k / (8 n_k))``, ``Lambda_k = sum s_g^2 / n_k`` over the
    groups of this fold. The dependence between the deviations of different folds is unknown, so their widths add up,
    not their squares: the variance inflation is ``(sum_k sqrt(n_k Lambda_k))^2 / n``, which is K for K equal folds of
    independent records. Leave-one-out attains it. With any number of folds there are learners whose averages have 2/pi
    of the variance that it allows. PROOFS.md of thresholdout, "K-fold cross-validation".

    One record takes part in all models, so it may change every value: the leakage is infinite, and no guarantee that
    rests on privacy applies.
    """

    methods: ClassVar[tuple[str, ...]] = ("group",)
    inflation_methods: ClassVar[tuple[str, ...]] = ("folds",)

    def __init__(self, folds: Iterable[Any], groups: Iterable[Any] | None = None) -> None:
        expected = "a sequence with one label for each record"
        refuse_unordered("folds", folds, expected)
        columns = [read("folds", folds, expected)]
        if groups is not None:
            refuse_unordered("groups", groups, expected)
            columns.append(read("groups", groups, expected))
            if len(columns[0].items) != len(columns[1].items):
                seen = f"{len(columns[1].items)} labels"
                raise ArgumentError("groups", seen, f"{len(columns[0].items)} labels, one for each record")
        aligned = align(columns)
        parts = Groups(aligned[0])
        self._folds, self._sizes = parts.groups, parts.independent_groups()
        super().__init__(parts.n)
        if len(self._sizes) < 2:
            advice = "Every record needs a model that was fitted without it."
            raise ArgumentError("folds", "one fold", "at least two folds", advice)
        self._groups = np.arange(self.n, dtype=np.int64)
        if groups is not None:
            self._groups = Groups(aligned[1]).groups
        homes = np.zeros(int(self._groups.max()) + 1, dtype=np.int64)
        homes[self._groups] = self._folds
        astray = np.flatnonzero(homes[self._groups] != self._folds)
        if astray.size:
            seen = f"a group with records in two folds (record {int(astray[0])} is one of them)"
            advice = "sklearn.model_selection.GroupKFold makes such folds."
            raise ArgumentError("groups", seen, "groups that are whole in one fold", advice)

    @property
    def folds(self) -> IntArray:
        """Number of each record's fold, shape (n,), from 0, in the order in which folds first occur."""
        return self._folds.copy()

    def squares(self) -> IntArray:
        """Return, for each fold, the sum of the squares of its groups' sizes, ``n_k Lambda_k``; shape (K,)."""
        sizes = np.bincount(self._groups).astype(np.int64)
        homes = np.zeros(len(sizes), dtype=np.int64)
        homes[self._groups] = self._folds
        squares = np.zeros(len(self._sizes), dtype=np.int64)
        np.add.at(squares, homes, sizes**2)
        return squares

    def claim_records(self) -> float:
        """Return N, for limits by relative entropy about hypotheses fixed in advance."""
        sizes = np.bincount(self._groups)
        largest = np.zeros(len(self._sizes), dtype=np.int64)
        np.maximum.at(largest, self._folds, sizes[self._groups])
        return self.n / int(largest.sum())

    def revealed_blocks(self, missed: float = 0.0) -> RevealedBlocks:
        """Return a block for every group of records, of which the values are functions."""
        return RevealedBlocks.of_groups(np.bincount(self._groups))

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        return Profile.constant(float("inf"), self.n)

    def _inflation(self, method: str) -> float:
        roots = np.sqrt(self.squares().astype(np.float64))
        return up(float(roots.sum()) ** 2 / self.n, 4 * len(roots) + 8)

    def _content(self) -> Mapping[str, Any]:
        return {"folds": self._folds, "groups": self._groups}

    def given(self, known: Iterable[Hashable] | Mapping[Any, Any]) -> NoReturn:
        """Refuse: knowledge of a record is knowledge about every model."""
        advice = "Make folds of the unknown records alone."
        raise ArgumentError("known", "records of a cross-validation", "empty for out-of-fold values", advice)

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one fair coin (0 or 1) for each group: the records, not their out-of-fold values."""
        coins: IntArray = rng.integers(0, 2, size=int(self._groups.max()) + 1)
        return coins[self._groups]

    def describe(self) -> str:
        """Return one line of words about the model."""
        low, high = int(self._sizes.min()), int(self._sizes.max())
        sizes = f"{low}" if low == high else f"{low} to {high}"
        groups = int(self._groups.max()) + 1
        records = "independent records" if groups == self.n else f"{groups} independent groups"
        return f"{self.n} out-of-fold values in {len(self._sizes)} folds of {sizes}, of {records}"
