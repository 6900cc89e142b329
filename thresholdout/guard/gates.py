"""Gates: hill climbing in which every certified step is a better model.

A gate stands between the holdout and whoever improves a model, a person or a program that tries thousands of changes.
It releases only whether each candidate is kept, so the holdout lasts much longer than if it released scores.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from thresholdout.data.arguments import check_number
from thresholdout.errors import InputError
from thresholdout.guard.asking import class_and_parameters
from thresholdout.guard.decision import Decision, DecisionOutcome
from thresholdout.guard.gate_sides import ModelSides, sides_of
from thresholdout.guard.likely_mistakes import warn_of_verdict
from thresholdout.guard.model_queries import check_mean
from thresholdout.guard.query import Query
from thresholdout.guard.query_keys import Digest
from thresholdout.guard.sharing.shared_objects import Proxy, check_process, shared
from thresholdout.ledger.entry import ContentKey, SpareKey, check_query, check_short_texts, fresh_key
from thresholdout.mechanisms.claims.gate_states import (
    FREE,
    PROVED,
    Candidate,
    Climb,
    Gains,
    LastEvaluation,
    Move,
    Rules,
    Tolerated,
    Verdict,
    at_gate,
)

if TYPE_CHECKING:
    from thresholdout.guard.gate_sides import Side
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.ledger.entry import Entry
    from thresholdout.mechanisms.claims.gate import GateState
    from thresholdout.scoring.metrics import Metric

__all__ = ["Certify", "Gate"]

Certify = Literal["each", "milestones"]
_SAME: Final = 1e-9  # training values that differ by less are rounding of the same fit
_LAST: Final = ", last evaluation"


@shared
class Gate:
    """Keep or reject candidates in hill climbing, so that every certified step is a better model.

    `Thresholdout.gate` makes it, and `propose` decides about one candidate. The gate keeps a champion, the model to
    beat, and releases only whether each candidate is kept. Models must not change after they were proposed: propose
    copies, ``clone(model).fit(...)``. Other processes use a gate through a proxy, like the guard.

    Attributes
    ----------
    champion : estimator
        The model that the next candidate is compared with: the last one that was kept.
    certified : estimator
        The last model that is certified to be better than the certified one before it, or the gate's first model. With
        ``certify="each"`` it is the champion.
    on_the_way : bool
        Whether the champion is not certified, but kept by cross-validation alone.
    metric : Metric
        The metric that is compared.
    certify : {"each", "milestones"}
        Whether every candidate is tested, or only milestones; see `Thresholdout.gate`.
    delta : float
        Amount by which a candidate has to be better.
    tolerance : float or None
        Amount by which a candidate may be worse. With a tolerance the champion is the reference for all candidates:
        tolerances of several kept candidates do not add up.
    test : str
        Name of the test that certifies.

    Notes
    -----
    A gate releases no scores, so it lasts much longer than hill climbing by `Thresholdout.score`. An expected outcome
    costs a hundredth of a nat. A candidate that cross-validation rejects is free, and does not count as a query or an
    answer.

    The test depends on the values. If they are 0 or 1, the guard has ``sampling="iid"`` and its records are
    independent, it is the sign test, or with a delta or a tolerance the exact trinomial test. Other values, and records
    with different distributions, are tested by bets, which need a somewhat larger gain. Records that depend on each
    other are tested by relative entropy or Hoeffding's inequality, as their model allows. PROOFS.md, "Comparisons and
    gates".

    With a tolerance every candidate is evaluated on the holdout and counts as a query. Its outcome is "keep" (not worse
    by more than the tolerance), "worse" or "not settled". Of m declared queries each is tested for "worse" at (1 -
    confidence) / m while no test rejects; "keep" is certified at almost no cost if the training part predicts it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> from thresholdout import Thresholdout
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 3))
    >>> y = (X[:, 0] + rng.normal(size=3000) > 0).astype(int)
    >>> guard = Thresholdout((X[:1000], y[:1000]), train=(X[1000:], y[1000:]), sampling="iid")
    >>> gate = guard.gate(DummyClassifier().fit(X[1000:], y[1000:]))
    >>> gate.propose(LogisticRegression().fit(X[1000:], y[1000:]))
    <Decision 1: keep, certified by sign test; cost ... nats, error budget left 0.04...>
    >>> gate
    <Gate: accuracy, each certified by sign test; the champion is certified; error budget left 0.04...>
    """

    def __init__(
        self,
        guard: Thresholdout,
        champion: Any,
        metric: str | Metric,
        certify: Certify,
        delta: float,
        tolerance: float | None,
        train_values: object,
    ) -> None:
        chosen = check_mean(metric)
        guard._mechanism.shares_error_budget("a gate", "Or compare intervals of score(candidate).")
        if certify not in get_args(Certify):
            raise InputError("certify", repr(certify), "'each' or 'milestones'")
        self._sides = sides_of(guard, chosen)
        most = chosen.bounds[1] - chosen.bounds[0]
        zero, below = -math.ulp(0.0), math.nextafter(most, 0.0)
        self.guard = guard
        self.metric = chosen
        self.certify = certify
        self.delta = check_number(
            "delta", delta, zero, below, f"a number from 0 to less than {most:g}, the metric's range"
        )
        self.tolerance = None
        if tolerance is not None:
            if certify != "each" or delta:
                beside = "certify='milestones'" if certify != "each" else f"delta={delta!r}"
                raise InputError("tolerance", f"{tolerance!r}", f"None beside {beside}")
            self.tolerance = check_number(
                "tolerance", tolerance, 0.0, below, f"a number above 0 and less than {most:g}, the metric's range"
            )
        self._edge = self.delta if self.tolerance is None else -self.tolerance
        self._range = most
        self._sign = 1.0 if chosen.greater_is_better else -1.0
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._first = champion
        self._champion = self._certified = self._sides.first(champion, train_values)
        self._decided: dict[tuple[str, str | None], tuple[Decision, float]] = {}
        self._kept: dict[str, Decision] = {}

    @property
    def champion(self) -> Any:
        """Model that the next candidate is compared with."""
        check_process(self._process, "gate")
        return self._champion.estimator

    @property
    def certified(self) -> Any:
        """Last model that is certified to be better than the certified one before it."""
        check_process(self._process, "gate")
        return self._certified.estimator

    @property
    def on_the_way(self) -> bool:
        """Whether the champion is not certified, but kept by cross-validation alone."""
        check_process(self._process, "gate")
        return self._climbing()

    def _climbing(self) -> bool:
        return not self._champion.same(self._certified.estimator)

    @property
    def test(self) -> str:
        """Name of the test that certifies, as far as the models' training values show."""
        return self._rules(self._champion, self._certified).test_name

    def resume(self, champion: Any, train_values: object) -> None:
        """Continue a climb from a model that an earlier gate had kept by cross-validation alone.

        The certified model of this gate stays the one that milestones are tested against.

        Parameters
        ----------
        champion : estimator
            The fitted model that the next candidate is compared with.
        train_values : array-like
            Value of the metric for each training record, see `propose`.
        """
        check_process(self._process, "gate")
        with self._lock:
            self._champion = self._sides.trained(champion, None, train_values)

    def propose(
        self,
        candidate: Any,
        *,
        cv: object | None = None,
        train_values: object | None = None,
        key: str | None = None,
        name: str = "",
    ) -> Decision:
        """Decide whether to keep a candidate as the new champion.

        Parameters
        ----------
        candidate : estimator
            A fitted estimator.
        cv : int, splitter, iterable of (fit, test) or "training", optional
            How clones of the models are cross-validated for the training values, see `Thresholdout.score`. Both models
            are cross-validated by the same folds; with other folds the champion's values are computed again. The
            training values decide whether an evaluation of the holdout is worth its price, and at which share of the
            error budget. They may be wrong without any effect on the probability of a false keep, but not on the cost:
            a candidate that looks better because it is overfitted (``cv="training"``) is evaluated in vain, for nats
            instead of hundredths of one. So is a real gain that does not show.
        train_values : array-like, optional
            The metric's value for each training record of the candidate, in place of ``cv``. The champion's must have
            been given too, or cover all training records.
        key : str, optional
            Identity of the proposal. The same key returns the same decision at no cost, also after a crash, so a
            restarted program can propose from the beginning. If None, both models, the folds and the gate's parameters
            identify it: the same candidate beside the same champion is decided once, and a kept one stays kept. Use
            different keys in different gates of a guard.
        name : str, optional
            Name of the candidate in the history. If None, its class with the parameters that differ from defaults.

        Returns
        -------
        Decision
            The `outcome`, whether it is `certified`, and its `cost`. ``if gate.propose(model):`` tests whether it was
            kept.

        Raises
        ------
        InputError
            If the candidate cannot be used or is the champion object itself (nothing is spent); or if it fails on the
            holdout, but not on the training part (this is charged).
        BudgetExhausted
            If the guard answers no more queries.

        Examples
        --------
        See `Gate`.
        """
        check_short_texts(name=name)
        check_process(self._process, "gate")
        return self._proposed(self._sides.trained(candidate, cv, train_values), key, name)

    def last_evaluation(self, *, key: str | None = None) -> Decision | None:
        """Test the champion against the last certified model with nearly all of the remaining error budget.

        Use it at the end of a climb with milestones. Little error budget is left afterwards, unless the champion is
        confirmed.

        Parameters
        ----------
        key : str, optional
            Identity of the evaluation. The same key returns the same decision at no cost.

        Returns
        -------
        Decision or None
            The decision, or ``None`` if the champion is certified already; nothing is spent then.

        Raises
        ------
        InputError
            If the gate has ``certify="each"``, which certifies every candidate that it keeps.
        """
        if self.certify == "each":
            advice = "Here every model that propose() keeps is certified."
            raise InputError("certify", "'each'", "'milestones' for last_evaluation()", advice)
        check_query(key, 0.0, "")
        check_process(self._process, "gate")
        with self._lock:
            new, old = self._champion, self._certified
            if self.on_the_way:
                key = self._known_by(key, _LAST, new, old)[0]
            told = self._decided.get((_LAST, key))
            if told is not None:
                return replace(told[0], cost=0.0, repeated=True)
            if not self.on_the_way:
                return None
            rules, gains = self._rules(new, old), self._sides.gains(new, old)
            move = LastEvaluation(rules.proposal(gains))
            decision, verdict = self._decide(new, old, gains, _LAST, key, "", rules, lambda state: move, gains)
            if verdict == "milestone":
                self._certified = new
            if key is not None:
                self._decided[_LAST, key] = decision, new.level
            self._warn(decision, verdict, new, rules, gains)
            return decision

    def _proposed(self, new: Side, key: str | None, name: str) -> Decision:
        """Decide about a candidate with known training values."""
        check_query(key, 0.0, "")
        check_process(self._process, "gate")
        with self._lock:
            level = new.level
            how = new.folds, new.given and new.values
            key, digests = self._known_by(key, "", new, self._champion, self._certified, how=how)
            if isinstance(key, ContentKey) and digests[0] == digests[1] and digests[0] in self._kept:
                return replace(self._kept[digests[0]], cost=0.0, repeated=True)
            if ("", key) in self._decided:
                decision, known = self._decided["", key]
                if not isinstance(key, ContentKey) and not math.isclose(known, level, rel_tol=_SAME, abs_tol=_SAME):
                    seen = f"{key!r}, whose training value was {known!r} and is {level!r}"
                    advice = "A key names one candidate: use another one, or None."
                    raise InputError("key", seen, "the key of this candidate", advice)
                return replace(decision, cost=0.0, repeated=True)
            if new.same(self._champion.estimator):
                raise InputError("candidate", *self._sides.champion_again)
            climbing = self.on_the_way
            self._champion = old = self._sides.like(self._champion, new)
            if not climbing:
                self._certified = old
            self._certified = certified = self._sides.like(self._certified, new)
            rules, gains = self._rules(new, old, certified), self._sides.gains(new, old)
            whole = self._sides.gains(new, certified) if climbing else gains
            proposal, beyond, on_the_way = rules.proposal(gains), rules.proposal(whole), self.on_the_way
            blank = rules.blank()

            def plan(state: GateState) -> Move:
                if self.tolerance is not None:
                    return Tolerated.planned(state, proposal, blank, self._left())
                if self.certify == "each":
                    return Candidate.planned(state, proposal, blank)
                return Climb.planned(state, proposal, beyond, blank, on_the_way=on_the_way)

            decision, verdict = self._decide(new, certified, gains, "", key, name, rules, plan, whole)
            if decision and self.tolerance is None:
                self._champion = new
                if isinstance(key, ContentKey):
                    self._kept[digests[0]] = decision
            if verdict in PROVED and self.tolerance is None:
                self._certified = new
            if key is not None:
                self._decided["", key] = decision, level
            self._warn(decision, verdict, new, rules, whole)
            return decision

    def _known_by(
        self, key: str | None, about: str, new: Side, *others: Side, how: object = None
    ) -> tuple[str | None, list[Digest]]:
        """Return the key of a decision, and the digests of its models if these make the key."""
        if key is not None and not isinstance(key, SpareKey):
            return key, []
        found = [self.guard._queries.digest(one.estimator, self.metric) for one in (new, *others)]
        digests = [one for one in found if one is not None]
        if len(digests) < len(found):
            return key, []
        climbing = self._climbing()
        made = self.guard._score_key(key, "gate", digests, self.metric, about, self.certify, self._edge, climbing, how)
        return made, digests

    def _decide(
        self,
        new: Side,
        old: Side,
        gains: Gains,
        about: str,
        key: str | None,
        name: str,
        rules: Rules,
        plan: Callable[[GateState], Move],
        whole: Gains,
    ) -> tuple[Decision, Verdict]:
        """Carry out a move in the ledger, and return the decision and its verdict."""
        title = f"{'gate' if self.certify == 'each' else 'milestones'}: {self.metric.name}"
        title += f" by more than {self.delta!r}" if self.delta else ""
        title += "" if self.tolerance is None else f" with a tolerance of {self.tolerance!r}"
        most = self._range
        query = Query(0.5 * (1.0 + gains.mean), (-most, most), title + about, key)
        known_as = class_and_parameters(new.estimator)
        query = query.about(name or known_as)
        read = self._sides.on_holdout(new, old, rules)
        entry, repeated = self.guard._engine.decide(
            query,
            at_gate(title, plan),
            read,
            rules.blank(),
            self._edge,
            most * whole.mean,
        )
        named = "" if entry.candidate == known_as else entry.candidate
        told = self._told(entry, repeated, rules, named, last=bool(about))
        return told, cast(Verdict, entry.source)

    def _warn(self, told: Decision, verdict: Verdict, new: Side, rules: Rules, gains: Gains) -> None:
        """Warn of an unexpected verdict, after the gate has stored it, since warnings may be errors."""
        if new.folds is None or told.repeated or verdict in FREE or self.tolerance is not None:
            return
        level = told.error_budget_left * (1.0 if told.certified else math.expm1(told.cost))
        if level > 0.0:
            foreseen = rules.foreseen(gains, math.log(level))
            warn_of_verdict(told.name or class_and_parameters(new.estimator), foreseen, confirmed=told.certified)

    def _told(self, entry: Entry, repeated: bool, rules: Rules, name: str, *, last: bool) -> Decision:
        """Return the decision that a ledger entry stores."""
        verdict, risk = entry.source, entry.log_error_budget
        assert verdict in get_args(Verdict)
        assert risk is not None
        free = verdict in FREE
        before = risk if free or repeated else self.guard._engine.log_error_budget_before(entry)
        kept = verdict in PROVED or (verdict in ("step", "unconfirmed") and not last)
        outcome: DecisionOutcome = "keep" if kept else "reject"
        if verdict in ("worse", "unsettled"):
            outcome = "worse" if verdict == "worse" else "not settled"
        if verdict == "worse":
            rules = replace(rules, delta=0.0)
        return Decision(
            outcome=outcome,
            certified=verdict in PROVED or verdict == "worse",
            test=None if free else rules.test_name,
            cost=max(0.0, before - risk),
            error_budget_left=math.exp(risk),
            remaining=entry.remaining,
            gain=entry.train,
            query=entry.query,
            name=name,
            repeated=repeated,
            approximate=rules.approximate,
        )

    def _left(self) -> float:
        """Return the number of declared queries that are left; infinite if no number is declared."""
        queries = self.guard._mechanism.parameters.queries
        return math.inf if queries is None else max(1.0, queries - self.guard._engine.state().queries)

    def _rules(self, *models: Side) -> Rules:
        """Return the rules of the tests; public values decide whether they are 0 or 1."""
        ends = all(model.ends for model in models)
        parameters, one_law = self.guard._mechanism.parameters, self.guard._declared.iid
        grouped = self.guard._records.in_groups
        return Rules(parameters, self.guard.n, self._edge / self._range, ends and one_law, grouped)

    def __repr__(self) -> str:
        what = "each" if self.certify == "each" else "milestones"
        more = f" by more than {self.delta:g}" if self.delta else ""
        left = self.guard.status.error_budget_left
        approximate = bool(self.guard._mechanism.parameters.approximation)
        word = "approximately accepted" if approximate else "certified"
        if self.tolerance is not None:
            told = f"{self.metric.name}, not worse by more than {self.tolerance:g}, {word} by {self.test}"
            return f"<Gate: {told}; error budget left {left:.3g}>"
        way = f"the champion is on the way and NOT {word}" if self._climbing() else f"the champion is {word}"
        if not self._climbing() and self._certified.estimator is self._first:
            way = f"nothing is {word} yet; the champion is the model it was made with"
        return f"<Gate: {self.metric.name}{more}, {what} {word} by {self.test}; {way}; error budget left {left:.3g}>"


class _RemoteGate(
    Proxy,
    of=Gate,
    serves="__repr__ _proposed certified certify delta guard champion last_evaluation metric on_the_way resume test "
    "tolerance",
):
    """Proxy of a `Gate` in another process."""

    def propose(
        self,
        candidate: Any,
        *,
        cv: object | None = None,
        train_values: object | None = None,
        key: str | None = None,
        name: str = "",
    ) -> Decision:
        """Keep or reject a candidate; see `Gate.propose`. It is cross-validated in this process."""
        known = SpareKey(fresh_key()) if key is None else key
        if isinstance(candidate, str):  # the frame with this column is in the guard's process
            given: dict[str, Any] = {"cv": cv, "train_values": train_values, "key": known, "name": name}
            column: Decision = self._reference.call("propose", candidate, **given)
            return column
        new = ModelSides(self.guard, self.metric).trained(candidate, cv, train_values)
        decision: Decision = self._proposed(new, known, name)
        return decision
