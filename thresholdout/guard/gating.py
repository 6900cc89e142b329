"""How a guard makes a gate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast, get_args

from thresholdout.data.arguments import check_number
from thresholdout.errors import InputError
from thresholdout.guard.gates import Certify, Gate
from thresholdout.guard.scores import check_mean

if TYPE_CHECKING:
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.guard.holdout import Records
    from thresholdout.planning.declaration import Declaration
    from thresholdout.scoring.metrics import Metric

__all__ = ["MakesGates"]


class MakesGates:
    """The part of a guard that makes gates."""

    n: int
    _records: Records
    _mechanism: Any
    _declared: Declaration

    def gate(
        self,
        incumbent: Any,
        metric: str | Metric = "accuracy",
        *,
        certify: Certify = "each",
        delta: float = 0.0,
        train_values: object | None = None,
    ) -> Gate:
        """Return a gate, which keeps or rejects candidates that are to be better than an incumbent.

        For whoever improves a model step by step, a person or an agent. The probability that any candidate is certified
        and not better is at most one less the guard's confidence, for any number of candidates, whoever makes them and
        however, and together with all other answers of the guard. Being told no scores, it lasts much longer than a
        climb by `score`: a candidate that was to be expected costs a hundredth of a nat, one that cross-validation does
        not think worth a look is free.

        Parameters
        ----------
        incumbent : estimator
            Fitted; what there is. Nothing is certified about it.
        metric : str or Metric, default="accuracy"
            A metric that is a mean over records; a loss is better when it is smaller.
        certify : {"each", "milestones"}, default="each"
            "each": a candidate is kept if the holdout confirms that it is better than the incumbent. "milestones", for
            steps too small for that: candidates are taken by cross-validation alone, for nothing, and now and then the
            one that has been reached is tested against the last certified one. See `Gate.certified`, `Gate.on_the_way`
            and `Gate.last_look`.
        delta : float, default=0.0
            By how much more a candidate has to be better to be certified, in the metric's units.
        train_values : array-like, optional
            The incumbent's value for each training record, if it cannot be fitted again; see `Thresholdout.score`.

        Returns
        -------
        Gate

        Raises
        ------
        InputError
            For a mechanism that makes no claims, a guard whose answers are private, a statistic that is no mean, or an
            incumbent that cannot be used.

        Notes
        -----
        Which test: values that are 0 or 1 are put to the sign test where the guard was made with
        ``sampling="iid"``, its records are independent and delta is 0; other values, and records that may
        have different laws, to bets, which need a somewhat larger gain. Records that depend on each other have tests
        by relative entropy, or Hoeffding's inequality, as their model allows. PROOFS.md, "Comparisons and gates".

        Candidates that cross-validation decides about are no questions, and `queries` and `budget` do not count them.
        One that the holdout does not confirm counts as an answer from the holdout.

        Examples
        --------
        >>> from sklearn.base import clone
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from thresholdout import Thresholdout
        >>> X, y = load_digits(return_X_y=True)
        >>> guard = Thresholdout((X[:900], y[:900]), train=(X[900:], y[900:]), sampling="iid")
        >>> gate = guard.gate(DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[900:], y[900:]))
        >>> for depth in (3, 4, 8, 1):
        ...     candidate = clone(gate.incumbent).set_params(max_depth=depth).fit(X[900:], y[900:])
        ...     print(gate.propose(candidate, name=f"depth {depth}"))
        <Decision 1 depth 3: keep, certified by sign test; cost 0.012 nats, 0.0495 of the risk left>
        <Decision 2 depth 4: keep, certified by sign test; cost 0.012 nats, 0.0489 of the risk left>
        <Decision 3 depth 8: keep, certified by sign test; cost 0.012 nats, 0.0484 of the risk left>
        <Decision 4 depth 1: reject, by cross-validation; free, 0.0484 of the risk left>
        """
        chosen = check_mean(metric)
        self._mechanism.shares_risk("a gate", "; or score(candidate) here, and its interval")
        if certify not in get_args(Certify):
            raise InputError("certify", repr(certify), "'each' or 'milestones'")
        self._records.labelled()
        most = chosen.bounds[1] - chosen.bounds[0]
        zero, below = -math.ulp(0.0), math.nextafter(most, 0.0)
        more = check_number("delta", delta, zero, below, f"a number from 0 to less than {most:g}, the metric's range")
        return Gate(cast("Thresholdout", self), incumbent, chosen, certify, more, train_values)
