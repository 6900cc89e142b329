"""A guard that lives in another process."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from thresholdout.errors import SharingError
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.sharing.shared_objects import Elsewhere, Handle
from thresholdout.ledger.entry_checks import fresh_key
from thresholdout.scoring.metrics import Metric
from thresholdout.scoring.statistics import Statistic, get_score
from thresholdout.scoring.statistics.known_values import known

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from thresholdout.certificates import Certificate
    from thresholdout.data.identity import Part
    from thresholdout.guard.answer import Answer
    from thresholdout.guard.comparison import Comparison
    from thresholdout.guard.exhaustion import Exhausted
    from thresholdout.guard.gates import Gate
    from thresholdout.guard.holdout import Origin
    from thresholdout.guard.scorer import GuardScorer
    from thresholdout.guard.train_split import TrainSplit
    from thresholdout.mechanisms.kind import Parameters
    from thresholdout.privacy.accounting.events.composed_events import Composed
    from thresholdout.privacy.accounting.events.event_types import Event
    from thresholdout.report import GuardReport

__all__ = ["RemoteGuard"]

_CONSTANT: Final = frozenset({"_id", "dependence", "given", "n"})


class RemoteGuard(Elsewhere, Thresholdout):
    """What a `Thresholdout` is in every process but its own: it sends the questions there.

    It has the guard's methods and attributes. A question takes its key with it, so that one whose answer gets lost is
    not charged twice; functions and estimators are sent along, and applied to the holdout where the holdout is.

    Examples
    --------
    >>> import numpy as np
    >>> from joblib import Parallel, delayed
    >>> rng = np.random.default_rng(0)
    >>> holdout, train = rng.normal(size=(2, 2_000, 3))
    >>> guard = Thresholdout(holdout, train=train, queries=10, budget=2)
    >>> answers = Parallel(n_jobs=2)(delayed(lambda k: guard.ask(lambda X: X[:, k] > 0))(k) for k in range(3))
    >>> len(answers), len(guard.history)
    (3, 3)
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __getattr__(self, name: str) -> Any:
        if name not in _CONSTANT:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = self.__dict__[name] = self._handle.call(name)
        return value

    def ask(
        self,
        train_values: object,
        holdout_values: object | None = None,
        *,
        bounds: tuple[float, float] = (0.0, 1.0),
        name: str = "",
        key: str | None = None,
        binary: bool | None = None,
    ) -> Answer:
        """Ask one question; see `Thresholdout.ask`."""
        given = fresh_key() if key is None else key
        answer: Answer = self._handle.call(
            "ask", train_values, holdout_values, bounds=bounds, name=name, key=given, binary=binary
        )
        return answer

    def score(
        self,
        estimator: Any,
        metric: str | Metric | Statistic = "accuracy",
        *,
        cv: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        key: str | None = None,
    ) -> Answer:
        """Ask for a fitted estimator's score; see `Thresholdout.score`. It is cross-validated in this process."""
        if cv is not None:
            metric = known(metric, get_score(metric).cross_validated(estimator, self.train[0], self.train[1], cv))
        answer: Answer = self._handle.call(
            "score",
            estimator,
            metric,
            cv=cv if cv is None else "known",
            sample_weight=sample_weight,
            key=fresh_key() if key is None else key,
        )
        return answer

    def ask_all(self, questions: Sequence[tuple[object, object]], **options: Any) -> list[Answer]:
        """Ask questions that were fixed together; see `Thresholdout.ask_all`."""
        options["keys"] = options.get("keys") or [fresh_key() for _ in questions]
        return cast("list[Answer]", self._handle.call("ask_all", list(questions), **options))

    def score_all(
        self, models: Sequence[Any] | Mapping[str, Any], metric: str | Metric | Statistic = "accuracy", **options: Any
    ) -> list[Answer]:
        """Score estimators that were fixed together; see `Thresholdout.score_all`."""
        options["keys"] = options.get("keys") or [fresh_key() for _ in models]
        return cast("list[Answer]", self._handle.call("score_all", models, metric, **options))

    def final_check(self, estimator: Any, metric: str | Metric | Statistic = "accuracy", **options: Any) -> Answer:
        """Ask the last question; see `Thresholdout.final_check`."""
        options["key"] = options.get("key") or fresh_key()
        return cast("Answer", self._handle.call("final_check", estimator, metric, **options))

    @property
    def epsilon(self) -> float | None:
        """Privacy loss of all answers together; see `Thresholdout.epsilon`."""
        return cast(float | None, self._handle.call("epsilon"))

    def final_half_width(self, expected: float) -> float:
        """Return how wide a final check would be now; see `Thresholdout.final_half_width`."""
        return cast(float, self._handle.call("final_half_width", expected))

    def compare(self, b: Any, a: Any, metric: str | Metric = "accuracy", **options: Any) -> Comparison:
        """Ask whether one estimator is better than another; see `Thresholdout.compare`."""
        options["key"] = options.get("key") or fresh_key()
        return cast("Comparison", self._handle.call("compare", b, a, metric, **options))

    def compare_all(
        self,
        models: Sequence[Any] | Mapping[str, Any],
        baseline: Any,
        metric: str | Metric = "accuracy",
        **options: Any,
    ) -> list[Comparison]:
        """Compare estimators with a baseline; see `Thresholdout.compare_all`."""
        options["keys"] = options.get("keys") or [fresh_key() for _ in models]
        return cast("list[Comparison]", self._handle.call("compare_all", models, baseline, metric, **options))

    def gate(self, incumbent: Any, metric: str | Metric = "accuracy", **options: Any) -> Gate:
        """Return a gate, which stays where the guard is; see `Thresholdout.gate`."""
        return cast("Gate", self._handle.call("gate", incumbent, metric, **options))

    def scorer(
        self,
        metric: object = "accuracy",
        *,
        cv: object | None = None,
        sample_weight: tuple[object, object] | None = None,
        exhausted: Exhausted = "stop",
    ) -> GuardScorer:
        """Return a scorer for scikit-learn's searches; see `Thresholdout.scorer`."""
        scorer: GuardScorer = self._handle.call(
            "scorer", metric, cv=cv, sample_weight=sample_weight, exhausted=exhausted
        )
        return scorer

    def split(self) -> TrainSplit:
        """Return a splitter for ``cv=``; see `Thresholdout.split`."""
        split: TrainSplit = self._handle.call("split")
        return split

    @property
    def certificate(self) -> Certificate:
        """What the answers are worth from now on."""
        return cast("Certificate", self._handle.call("certificate"))

    @property
    def looks(self) -> Composed:
        """Other private looks at the holdout."""
        return cast("Composed", self._handle.call("looks"))

    def certificate_with(self, events: Event | Iterable[Event]) -> Certificate:
        """Say what the answers would be worth after further looks; see `Thresholdout.certificate_with`."""
        return cast("Certificate", self._handle.call("certificate_with", events))

    def record_look(self, event: Event, *, void: bool = False) -> Certificate:
        """Record a private look at the holdout; see `Thresholdout.record_look`."""
        return cast("Certificate", self._handle.call("record_look", event, void=void))

    def _origin(self, hashes: NDArray[np.uint64], records: NDArray[np.uint64] | None = None) -> Origin:
        """Say where records come from, of which only the hashes are sent."""
        origin: Origin = self._handle.call("_origin", hashes, records)
        return origin

    def _asked(self) -> int:
        return cast(int, self._handle.call("_asked"))

    def _answered(self, key: str) -> bool:
        return cast(bool, self._handle.call("_answered", key))

    @property
    def train(self) -> Part:
        """The training part; it is fetched once."""
        return _train(self._handle)

    @property
    def exhausted(self) -> Literal["budget", "queries"] | None:
        """Which limit is reached; see `Thresholdout.exhausted`."""
        return cast(Literal["budget", "queries"] | None, self._handle.call("exhausted"))

    @property
    def risk_left(self) -> float | None:
        """What is left of the probability of error; see `Thresholdout.risk_left`."""
        return cast(float | None, self._handle.call("risk_left"))

    @property
    def told(self) -> float | None:
        """What the answers so far can have told, in nats; see `Thresholdout.told`."""
        return cast(float | None, self._handle.call("told"))

    @property
    def remaining(self) -> int | None:
        """Answers from the holdout that are left."""
        return cast(int | None, self._handle.call("remaining"))

    @property
    def history(self) -> pd.DataFrame:
        """Every question and answer so far, whichever process asked."""
        history: pd.DataFrame = self._handle.call("history")
        return history

    @property
    def parameters(self) -> Parameters:
        """The mechanism's public parameters."""
        parameters: Parameters = self._handle.call("parameters")
        return parameters

    def report(self, title: str = "") -> GuardReport:
        """Return everything public about this guard; see `Thresholdout.report`."""
        return cast("GuardReport", self._handle.call("report", title))

    def __repr__(self) -> str:
        try:
            text: str = self._handle.call("__repr__")
        except SharingError:
            return f"<Thresholdout in {self._handle.owner}, which does not answer>"
        return f"{text[:-1]}; in {self._handle.owner}>"


@lru_cache(maxsize=2)
def _train(handle: Handle) -> Part:
    part: Part = handle.call("train")
    return part


Thresholdout._stand_in = RemoteGuard
