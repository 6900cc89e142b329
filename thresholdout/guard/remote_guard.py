"""The proxy of a guard in another process."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.query_keys import Digest, QueryKeys, estimator_digest
from thresholdout.guard.releases import RemoteReleases
from thresholdout.guard.sharing.shared_objects import Proxy, Reference
from thresholdout.guard.training_values import Trained, checked_cv, fixed, trained
from thresholdout.ledger.entry import SpareKey, fresh_key

if TYPE_CHECKING:
    from thresholdout.data.identity import Part
    from thresholdout.guard.answer import Answer
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = ["RemoteGuard"]


class RemoteGuard(
    Proxy,
    of=Thresholdout,
    serves=(
        "__repr__ _answered _id _made _open _open_folds _origin _recalled _repr_html_ _training_folds ask ask_all "
        "certificate compare compare_all dependence development development_score final_check gate history join n "
        "parameters releases.preview releases.record releases.recorded report score score_all scorer split status train"
    ),
):
    """Proxy of a `Thresholdout` in another process, with the guard's methods and attributes.

    A query is sent with its key, so that it is charged once even if its answer gets lost. Functions and estimators are
    sent along and applied to the holdout in the guard's process.

    Examples
    --------
    >>> import numpy as np
    >>> from thresholdout import Thresholdout
    >>> from joblib import Parallel, delayed
    >>> rng = np.random.default_rng(0)
    >>> holdout, train = rng.normal(size=(2, 2_000, 3))
    >>> guard = Thresholdout(holdout, train=train, queries=10)
    >>> answers = Parallel(n_jobs=2)(delayed(lambda k: guard.ask(lambda X: X[:, k] > 0))(k) for k in range(3))
    >>> len(answers), len(guard.history)
    (3, 3)
    """

    def score(
        self,
        estimator: Any,
        metric: str | Metric | Statistic = "accuracy",
        *,
        cv: object | None = None,
        train_values: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        key: str | None = None,
        name: str = "",
        precise: bool = False,
    ) -> Answer:
        """Ask for a fitted estimator's score, cross-validated in this process; see `Thresholdout.score`."""
        if isinstance(estimator, str):  # the frame with this column is in the guard's process
            given: dict[str, Any] = {"cv": cv, "train_values": train_values, "sample_weight": sample_weight}
            given |= {"key": SpareKey(fresh_key()) if key is None else key, "name": name, "precise": precise}
            column: Answer = self._reference.call("score", estimator, metric, **given)
            return column
        from thresholdout.guard.asking import way
        from thresholdout.scoring.statistics import get_score

        cv = checked_cv(cv)
        asked, spare = get_score(metric), SpareKey(fresh_key()) if key is None else key
        own = self._score_key(spare, "score", [estimator], asked, cv, train_values, sample_weight, *way(precise))
        told: Answer | None = self._recalled(own, asked)
        if told is not None:
            return told
        if cv != "training":
            train_values, cv = self._trained(asked, estimator, cv, train_values), None
        answer: Answer = self._reference.call(
            "score",
            estimator,
            metric,
            cv=cv,
            train_values=train_values,
            sample_weight=sample_weight,
            key=own,
            name=name,
            precise=precise,
        )
        return answer

    def _trained(
        self, metric: Metric | Statistic, estimator: Any, cv: object | None, given: object | None = None
    ) -> Trained:
        """Return a fitted estimator's values on the training part, computed in this process."""
        return trained(metric, estimator, self._open, self._open_folds, cv, given)

    def _fixed(self, cv: object | None) -> object | None:
        """Return the cross-validation of several estimators by the same folds."""
        return fixed(cv, self._open, self._open_folds)

    def _score_key(
        self, key: str | None, kind: str, models: Sequence[Any], score: Metric | Statistic, *rest: object
    ) -> str | None:
        """Return the key of a query about fitted estimators, with digests from this process."""
        return self._keys.of_score(self._digest, key, kind, models, score, *rest)

    def _digest(self, model: Any, score: Metric | Statistic) -> Digest | None:
        return estimator_digest(model, score, self._open, self._keys.say_unrecognised)

    @cached_property
    def _keys(self) -> QueryKeys:
        return QueryKeys(self._made)

    @property
    def releases(self) -> RemoteReleases:
        """The releases of the guard."""
        return RemoteReleases(self._reference)

    @property
    def train(self) -> Part:
        """The training part; it is fetched once."""
        return _fetched(self._reference, "train")

    @property
    def _open(self) -> Part:
        return _fetched(self._reference, "_open")


@lru_cache(maxsize=4)
def _fetched(reference: Reference, name: str) -> Part:
    part: Part = reference.call(name)
    return part
