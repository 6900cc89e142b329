"""A call that is refused changes nothing: a model stays what it was, with the features that it knows."""

from __future__ import annotations

from typing import Any

__all__ = ["UnchangedIfRefused"]

_OF_DATA = {"n_features_in_", "feature_names_in_"}


class UnchangedIfRefused:
    """Take back what was noted of the data of a call that ends with an error before anything was charged.

    scikit-learn notes their number and names of features where it checks them; a learner checks more after that. A
    learner sets all else together with the charge. So if those are all that a call has changed, it was not charged, and
    nobody has seen anything of it; what has changed more is kept, and its charge with it.

    Parameters
    ----------
    estimator : object

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    >>> with UnchangedIfRefused(model):
    ...     model.n_features_in_ = 3
    ...     raise ValueError("refused")
    Traceback (most recent call last):
    ValueError: refused
    >>> model.n_features_in_
    1
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator, self.before = estimator, dict(vars(estimator))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, *_: object) -> None:
        now, before = vars(self.estimator), self.before
        changed = {name for name in now.keys() | before.keys() if now.get(name) is not before.get(name)}
        if kind is not None and changed <= _OF_DATA:
            self.estimator.__dict__ = before
