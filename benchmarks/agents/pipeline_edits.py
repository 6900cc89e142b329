"""A proposer that needs no language model: edits of a scikit-learn pipeline, drawn at random.

A pipeline is five choices. A repertoire grows from one plain pipeline by single edits of earlier members, so that what
is offered consists of relatives, as it does when an agent edits its own code. All members are fitted once; every rule
and every slice then looks at the same predictions.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.agents.small_tasks import Task

__all__ = ["Choices", "Fitted", "Proposer", "fit", "repertoire"]

KINDS: Final = ("logistic", "Bayes", "neighbours", "tree", "forest", "boosting")
LEVELS: Final = 5
FEATURES: Final = (1.0, 0.5, 0.25)
_EXPANDED: Final = 20  # features of which products are taken, at most
_MANY_CLASSES: Final = 5  # above, boosting is no choice: it fits trees for each class

Labels = NDArray[np.int8]


@dataclass(frozen=True)
class Choices:
    """A pipeline.

    Attributes
    ----------
    kind : str
        Of the model.
    level : int
        How flexible it is, 0 to 4.
    option : bool
        One more choice of each kind.
    features : int
        Which share of the features is kept, by their F values.
    scaled, expanded : bool
        Whether features are standardised, and products of pairs added.
    """

    kind: str = "logistic"
    level: int = 2
    option: bool = False
    features: int = 0
    scaled: bool = False
    expanded: bool = False

    def edits(self, other: Choices) -> int:
        """Return how many choices differ."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return sum(one != two for one, two in pairs)

    def edited(self, rng: np.random.Generator, kinds: tuple[str, ...]) -> Choices:
        """Change one thing at random."""
        thing = rng.integers(7)
        if thing <= 1:
            return replace(self, kind=str(rng.choice([kind for kind in kinds if kind != self.kind])))
        if thing <= 3:
            step = int(rng.choice([-1, 1]))
            return replace(self, level=min(max(self.level + step, 0), LEVELS - 1))
        if thing == 4:
            return replace(self, features=int(rng.integers(len(FEATURES))))
        name = ("scaled", "option", "expanded")[int(rng.integers(3))]
        changed: dict[str, Any] = {name: not getattr(self, name)}
        return replace(self, **changed)

    def pipeline(self, columns: int) -> Any:
        """Return the unfitted pipeline."""
        from sklearn.feature_selection import SelectKBest
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler

        steps: list[Any] = [StandardScaler()] if self.scaled else []
        kept = max(1, round(FEATURES[self.features] * columns))
        if self.expanded:
            kept = min(kept, _EXPANDED)
        if kept < columns:
            steps.append(SelectKBest(k=kept))
        if self.expanded:
            steps.append(PolynomialFeatures(2, include_bias=False))
        return make_pipeline(*steps, self._model())

    def _model(self) -> Any:
        from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import GaussianNB
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.tree import DecisionTreeClassifier

        level = self.level
        if self.kind == "logistic":
            weight = "balanced" if self.option else None
            return LogisticRegression(C=10.0 ** (level - 3), class_weight=weight, max_iter=100)
        if self.kind == "Bayes":
            priors = (1e-9, 1e-3, 1e-2, 1e-1, 1.0)
            return GaussianNB(var_smoothing=priors[level])
        if self.kind == "neighbours":
            return KNeighborsClassifier((41, 21, 11, 5, 1)[level], weights="distance" if self.option else "uniform")
        depth = (2, 4, 6, 9, None)[level]
        if self.kind == "tree":
            return DecisionTreeClassifier(max_depth=depth, min_samples_leaf=10 if self.option else 1, random_state=0)
        if self.kind == "forest":
            most = None if self.option else "sqrt"
            return ExtraTreesClassifier(10, max_depth=depth, max_features=most, random_state=0)
        rounds = (5, 10, 20, 30, 50)[level]
        leaves = 4 if self.option else 16
        return HistGradientBoostingClassifier(
            max_iter=rounds, max_leaf_nodes=leaves, early_stopping=False, random_state=0
        )


class Fitted(NamedTuple):
    """What one pipeline predicts.

    Attributes
    ----------
    choices : Choices
    refitted : ndarray
        For the training part, by the model that was fitted to it.
    predictions : ndarray
        For all records: out of fold for the training part, by the model that was fitted to all of it for the others.
    """

    choices: Choices
    refitted: Labels
    predictions: Labels


def repertoire(rng: np.random.Generator, size: int, classes: int) -> list[Choices]:
    """Return different pipelines, each a single edit away from an earlier one."""
    kinds = KINDS if classes <= _MANY_CLASSES else KINDS[:-1]
    members = [Choices()]
    while len(members) < size:
        new = members[int(rng.integers(len(members)))].edited(rng, kinds)
        if new not in members:
            members.append(new)
    return members


def fit(choices: Choices, task: Task) -> Fitted:
    """Fit a pipeline to the training part and to its five folds."""
    from sklearn import config_context
    from sklearn.base import clone
    from sklearn.model_selection import cross_val_predict

    X, y = task.X[: task.train], task.y[: task.train]
    pipeline = choices.pipeline(X.shape[1])
    with warnings.catch_warnings(), config_context(skip_parameter_validation=True, assume_finite=True):
        warnings.simplefilter("ignore")  # of models that did not converge: they are candidates like others
        out_of_fold = cross_val_predict(pipeline, X, y, cv=5)
        model = clone(pipeline).fit(X, y)
        found = model.predict(task.X)
    return Fitted(
        choices, found[: task.train].astype(np.int8), np.concatenate([out_of_fold, found[task.train :]]).astype(np.int8)
    )


class Proposer:
    """Proposes members of a repertoire that were not proposed before.

    Every other one, on average, is a greedy edit: a member with the fewest edits from the one that was kept last. The
    others are drawn from all.
    """

    def __init__(self, members: list[Choices], rng: np.random.Generator) -> None:
        self._members = members
        self._rng = rng
        self._left = set(range(1, len(members)))

    def next(self, champion: int) -> int:
        """Return the next proposal's number, given the number of the one that was kept last."""
        left = sorted(self._left)
        if self._rng.random() < 0.5:
            edits = [self._members[champion].edits(self._members[one]) for one in left]
            left = [one for one, distance in zip(left, edits, strict=True) if distance == min(edits)]
        chosen = int(self._rng.choice(left))
        self._left.remove(chosen)
        return chosen
