"""Administration of the service's holdouts: new ones, their phases, and corrections of their labels."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.service.access import Access
from thresholdout.service.authority import checked, may_see
from thresholdout.service.chained_answers import DAMAGED
from thresholdout.service.corrections import Basis
from thresholdout.service.guarantee_text import looked_at, mechanism_for
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.refusals import ServiceRefused, details_of
from thresholdout.service.schemas import Feedback, Holdout, Principal
from thresholdout.service.settings import check_name, check_phase, check_size, check_text, checked_settings
from thresholdout.service.views import facts_of, holdout_shown

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.ledger import SQLLedger
    from thresholdout.service.guard_cache import GuardCache
    from thresholdout.service.leaderboards import Leaderboards
    from thresholdout.service.receipts.issuing import Receipts
    from thresholdout.service.schemas import Phase
    from thresholdout.service.store.holdouts import Facts, HoldoutRow, Holdouts

__all__ = ["Administration"]


class Administration(Access):
    """The part of the service that administers holdouts."""

    ledger: SQLLedger
    _guards: GuardCache
    _holdouts: Holdouts
    _leaderboards: Leaderboards
    _proofs: Receipts
    _damaged: frozenset[str]

    @checked
    def create_holdout(
        self,
        by: Principal,
        name: str,
        train: pd.DataFrame,
        holdout: pd.DataFrame,
        *,
        label: str,
        id: str = "id",
        groups: str | None = None,
        order: str | None = None,
        window: int | None = None,
        transition: pd.DataFrame | None = None,
        graph: pd.DataFrame | None = None,
        title: str = "",
        metric: str = "accuracy",
        feedback: Feedback = "interval",
        phase: Phase = "open",
        public: bool = False,
        quota: int | None = None,
        quota_days: float | None = None,
        confidence: float = 0.95,
        prior_queries: int | None = None,
        allow_duplicates: bool = False,
    ) -> Holdout:
        """Create a holdout from labelled tables.

        The labels are stored in the service's database, and information about them leaves it through certified answers
        only. Calling this method again with the same tables, name and settings changes nothing.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.
        name : str
            Name of the holdout in addresses: lower-case letters, digits and hyphens.
        train : DataFrame
            Table of the training part, one row per record. Its labels are not protected.
        holdout : DataFrame
            Table of the holdout, at least 20 records.
        label : str
            Column of both tables with the true labels: numbers, or names of classes.
        id : str, default "id"
            Column of both tables that identifies a record. An id may occur only once in the two tables together.
        groups : str, optional
            Column of the holdout with groups, within which records may depend on each other arbitrarily.
        order : str, optional
            Column that orders both tables, used with `window` or `transition`.
        window : int, optional
            Largest distance, in rows, at which records may depend on each other. See `PredictionGuard.create`.
        transition : DataFrame, optional
            Transition probabilities of the labels, if they form a Markov chain. See `PredictionGuard.create`.
        graph : DataFrame, optional
            Pairs of ids, in the first two columns, of records that may depend on each other. At most one of `groups`,
            `window`, `transition` and `graph` may be given. If none is, records are independent.
        title : str, default ""
            Name that the pages show. If empty, they show `name`.
        metric : str, default "accuracy"
            Metric that scores submissions, such as "accuracy" or "log_loss(clip=7)".
        feedback : {"interval", "verdict", "best"}, default "interval"
            Kind of answer. "interval": the score of each submission with a certified interval. "verdict": the result of
            a comparison with the team's champion, its last submission that was certified to be better. "best": only the
            best score of all submissions.
        phase : {"open", "blind", "closed"}, default "open"
            "open": submissions are accepted and answers are shown. "blind": submissions are accepted, and answers stay
            hidden until the holdout is closed. "closed": no submissions are accepted.
        public : bool, default False
            Whether visitors without a token see the leaderboard.
        quota : int, optional
            Maximum number of submissions of each team. If None, there is no quota.
        quota_days : float, optional
            Number of past days over which submissions count against the quota. If None, all submissions count.
        confidence : float, default 0.95
            Probability that all intervals of the holdout contain the true scores.
        prior_queries : int, optional
            Number of queries to this holdout before it came to the service. If None, there were none.
        allow_duplicates : bool, default False
            Whether a record of the holdout may be equal to one of the training part.

        Returns
        -------
        Holdout
            Description of the holdout, with its `name`, `metric`, `phase`, number of `records` and the guarantee in
            words (`promise`).

        Raises
        ------
        ServiceRefused
            With the code "bad_table", "bad_name" or "bad_request" if an argument cannot be used. With "name_taken" if
            another holdout has this name, or already has these records, whose budget would be spent twice.
        """
        check_name("name", name)
        chosen, settings = checked_settings(title, metric, public, feedback, quota, quota_days)
        check_phase(phase)
        check_size(len(holdout))
        there = self._holdouts.find(name)
        if there is not None and there.settings != settings:
            raise ServiceRefused("name_taken")
        try:
            guard = PredictionGuard.create(
                self.ledger,
                train,
                holdout,
                label=label,
                id=id,
                groups=groups,
                order=order,
                window=window,
                transition=transition,
                graph=graph,
                confidence=confidence,
                prior_queries=prior_queries or 0,
                allow_duplicates=allow_duplicates,
                mechanism=mechanism_for(feedback, chosen),
            )
            guard.check_metric(chosen)
        except InputError as error:
            raise ServiceRefused("bad_table", **details_of(error)) from None
        except LedgerMismatch:
            raise ServiceRefused("name_taken") from None
        if there is None:
            shown = 0 if phase == "blind" else None
            self._holdouts.add(name, guard.identity, settings, facts_of(guard, feedback, phase), phase, shown)
        found = self._holdouts.find(name)
        # Another process may have taken the name meanwhile.
        if found is None or found.identity != guard.identity:
            raise ServiceRefused("name_taken")
        return self._shown(found)

    @checked
    def holdouts(self, by: Principal) -> list[Holdout]:
        """Return all holdouts that the caller may see, the oldest first.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. A visitor sees public holdouts only.

        Returns
        -------
        list of Holdout
            Description of each holdout, as for `holdout`.
        """
        return [self._shown(found) for found in self._holdouts.all() if may_see(by, found)]

    @checked
    def holdout(self, by: Principal, name: str) -> Holdout:
        """Return the description of one holdout.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. A visitor sees public holdouts only.
        name : str
            Name of the holdout.

        Returns
        -------
        Holdout
            Its attributes include `title`, `metric`, `phase`, the guarantee in words (`promise`), the number of answers
            so far (`asked`), and the `information_released` in nats.

        Raises
        ------
        ServiceRefused
            With the code "not_found" if there is no such holdout, or the caller may not see it.
        """
        return self._shown(self._find(by, name))

    @checked
    def set_phase(self, by: Principal, name: str, phase: Phase) -> Holdout:
        """Change whether a holdout accepts submissions and shows answers.

        A blind phase can only end by closing the holdout. A closed holdout may be opened again. If an open holdout
        becomes blind, earlier answers stay visible and later ones are hidden.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.
        name : str
            Name of the holdout.
        phase : {"open", "blind", "closed"}
            The new phase. "open": submissions are accepted and answers are shown. "blind": submissions are accepted,
            and answers stay hidden until the holdout is closed. "closed": no submissions are accepted.

        Returns
        -------
        Holdout
            Description of the holdout in the new phase.

        Raises
        ------
        ServiceRefused
            With the code "bad_request" if the phase is unknown, or a blind holdout would be opened. With "not_found" if
            there is no such holdout.
        """
        found = self._find(by, name)
        if check_phase(phase) == "open" and found.phase == "blind":
            raise ServiceRefused("bad_request", argument="phase")
        if phase != found.phase:
            shown = self.ledger.count(found.identity) if phase == "blind" else None
            self._holdouts.set_phase(found.number, phase, shown)
            self._keep_facts(found.name)
            self._leaderboards.rows(self._find(by, name))  # read hidden answers here, not on the first visit
        return self._shown(self._find(by, name))

    @checked
    def correct(
        self, by: Principal, name: str, corrections: pd.DataFrame, reason: str, *, basis: Basis = "labels"
    ) -> Holdout:
        """Correct the labels of some records of a holdout, or withdraw records.

        Later answers refer to the corrected labels. The error budget is not renewed, because earlier answers have
        already released information about the other labels.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.
        name : str
            Name of the holdout.
        corrections : DataFrame
            One row per corrected record, with the id column of the holdout and the column ``label``. A record without a
            label is withdrawn.
        reason : str
            Reason for the correction, which the history and the holdout's page show to everyone.
        basis : {"labels", "public"}, default "labels"
            Basis on which records and labels were chosen. "public": the time and the records were chosen by public
            facts, and each label was judged by itself. Earlier and later answers then stay certified. "labels": any
            other case. Later answers then have no guarantee. See `PredictionGuard.correct` for the exact conditions.

        Returns
        -------
        Holdout
            Description of the holdout after the correction.

        Raises
        ------
        ServiceRefused
            With the code "bad_table" if a row cannot be used, "bad_name" if the reason is too long or has characters
            that are not allowed, or "bad_request" if the basis is unknown. Nothing is changed then.
        """
        found = self._find(by, name)
        check_text("reason", reason)
        if basis not in get_args(Basis):
            raise ServiceRefused("bad_request", argument="basis", expected=list(get_args(Basis)))
        # Until the new facts are stored, the guarantee is read from the guard.
        self._holdouts.set_facts(found.number, None)
        try:
            self._guards.get(found.identity).correct(corrections, reason, basis=basis)
        except InputError as error:
            self._keep_facts(found.name)
            raise ServiceRefused("bad_table", **details_of(error)) from None
        self._keep_facts(found.name)
        self._proofs.heed(found)
        return self._shown(self._find(by, name))

    def _find(self, by: Principal, name: str) -> HoldoutRow:
        """Return a visible holdout; an invisible one counts as not found."""
        found = self._holdouts.find(check_name("name", name))
        if found is None or not may_see(by, found):
            raise ServiceRefused("not_found")
        return found

    def _shown(self, found: HoldoutRow) -> Holdout:
        facts = found.facts or self._facts(found)
        damaged = (DAMAGED,) if found.identity in self._damaged else ()
        since = (*looked_at(self.ledger, found.identity), *self._proofs.notes(found), *damaged)
        if since:
            facts = replace(facts, promise=" ".join([facts.promise, *since]))
        return holdout_shown(found, facts, self.ledger, since)

    def _keep_facts(self, name: str) -> None:
        """Store the guard's current facts; nothing where another process changed them meanwhile."""
        found = self._holdouts.find(name)
        assert found is not None
        facts = self._facts(found)
        self._holdouts.set_facts(found.number, facts)
        # A change by another process meanwhile makes the stored facts stale.
        if self._facts(self._holdouts.find(name) or found) != facts:
            self._holdouts.set_facts(found.number, None)

    def _facts(self, found: HoldoutRow) -> Facts:
        return facts_of(self._guards.get(found.identity), found.settings.feedback, found.phase)
