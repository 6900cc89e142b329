"""The service without HTTP: holdouts, teams, submissions and their checks.

Every interface (HTTP, pages, agents, the command line) calls these methods and nothing else. Each takes the caller
first, and checks role, owner and phase before it does anything. An internal failure becomes the refusal "unavailable":
neither its message nor its kind reaches a caller.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast, get_args

from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.ledger import export_history, open_ledger
from thresholdout.service.access import Access
from thresholdout.service.authority import checked, may_see
from thresholdout.service.chained_answers import DAMAGED, ChainedAnswers
from thresholdout.service.corrections import Basis
from thresholdout.service.guarantee_text import looked_at, mechanism_for
from thresholdout.service.guard_cache import GuardCache
from thresholdout.service.leaderboards import Leaderboards
from thresholdout.service.limits import Failures, Limits
from thresholdout.service.prediction_guard import PredictionGuard
from thresholdout.service.readiness import readiness
from thresholdout.service.receipts.issuing import Receipts
from thresholdout.service.receipts.rollback_detection import check_newest
from thresholdout.service.refusals import ServiceRefused, details_of
from thresholdout.service.schemas import Feedback, Holdout, Leaderboard, Outlook, Principal, Submission
from thresholdout.service.settings import check_name, check_phase, check_size, check_text, checked_settings
from thresholdout.service.store.holdouts import Facts, HoldoutRow, Holdouts
from thresholdout.service.store.submissions import Champions, Kind, SubmissionRow, Submissions
from thresholdout.service.store.tables import prepare
from thresholdout.service.submissions import Desk
from thresholdout.service.tokens import Sessions, Tokens
from thresholdout.service.views import facts_of, holdout_shown, outlook_of, shown

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.witness import Witness
    from thresholdout.service.schemas import Phase

__all__ = ["MOST_NUMBER", "EvaluationService"]

# Above the number of every submission.
MOST_NUMBER: Final = 2**62

# Submissions of a history that are read at once.
_MOST_ROWS: Final = 1000


class EvaluationService(Access):
    """Score the predictions of teams on secret labels, with holdouts, API tokens and leaderboards in one database.

    The service keeps the labels of each holdout and answers submissions with certified intervals. Each call acts for
    a holder of an API token, who is an administrator, a team or a visitor. Make it with `open`, not with the
    constructor.

    Attributes
    ----------
    ledger : SQLLedger
        Ledger that stores the answers and all other state.
    limits : Limits
        Limits of tables, tokens and concurrent work.
    sessions : Sessions
        Sign-ins of people who use the service's pages.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> table = pd.DataFrame({"id": range(4000), "x": range(4000), "y": [0, 1] * 2000})
    >>> folder = tempfile.TemporaryDirectory()
    >>> service = EvaluationService.open(Path(folder.name, "leaderboard.db"))
    >>> admin = service.authenticate(service.first_admin_token())
    >>> holdout = service.create_holdout(admin, "parity", table[:2000], table[2000:], label="y")
    >>> text, token = service.new_token(admin, "team", "ann")
    >>> right = pd.DataFrame({"id": table["id"][2000:], "prediction": table["x"][2000:] % 2})
    >>> ann = service.authenticate(text)
    >>> told = service.submit(ann, "parity", right, idempotency_key="first", expected=1.0)
    >>> told.state, told.high
    ('answered', 1.0)
    >>> [(row.team, row.ranks) for row in service.leaderboard(ann, "parity").rows]
    [('ann', '1')]
    >>> service.close()
    >>> folder.cleanup()
    """

    def __init__(self, ledger: SQLLedger, limits: Limits, proofs: Receipts, answering: bool) -> None:
        store = prepare(ledger.database)
        self._answering = answering
        self.ledger = ledger
        self.limits = limits
        self._proofs = proofs
        self._guards = GuardCache(ledger)
        self._tokens = Tokens(store)
        self.sessions = Sessions(store, self._tokens)
        self._holdouts = Holdouts(store)
        self._submissions = Submissions(store)
        self._failures = Failures(store, limits.failures_per_hour)
        self._leaderboards = Leaderboards(ledger)
        champions = Champions(store)
        self._answers = ChainedAnswers(ledger, self._submissions, champions)
        self._desk = Desk(
            ledger, self._guards, self._holdouts, self._submissions, champions, self._failures, self._answers, proofs,
            limits,
        )  # fmt: skip
        self._damaged = self._answers.check_all(self._holdouts.all()) if answering else frozenset()

    @classmethod
    def open(
        cls,
        database: str | Path,
        *,
        key_file: str | Path | None = None,
        limits: Limits | None = None,
        receipts: bool = False,
        witness: Witness | None = None,
        accept_rollback: str | None = None,
        answering: bool = True,
    ) -> Self:
        """Open the service in a database, or create a new one.

        Parameters
        ----------
        database : str or Path
            A file, or the address of a PostgreSQL server, as for `SQLLedger`.
        key_file : str or Path, optional
            File with the key of an encrypted ledger. A ledger on a server always needs a key.
        limits : Limits, optional
            Limits of requests. If None, ``Limits()``.
        receipts : bool, default False
            Whether each answer comes with a signed receipt, which needs the library ``cryptography``.
        witness : Witness, optional
            Independent store that keeps each checkpoint. The ledger is refused if the witness knows more answers.
        accept_rollback : str, optional
            Reason for accepting such a ledger nevertheless. Every leaderboard shows it.
        answering : bool, default True
            Whether submissions are answered. If False, only tokens and holdouts can be administered, without a
            witness.

        Returns
        -------
        EvaluationService
            The open service. Call `close` at the end.

        Raises
        ------
        ThresholdoutError
            If `open_ledger` refuses the database, or the witness does not confirm that the ledger is the newest copy.
        """
        ledger = cast("SQLLedger", open_ledger(database, key_file=key_file))
        try:
            signer = None
            if receipts:
                from thresholdout.service.receipts.signing_keys import Signer

                signer = Signer(ledger)
            if answering:
                check_newest(ledger, witness, accept=accept_rollback)
            return cls(ledger, Limits() if limits is None else limits, Receipts(ledger, signer, witness), answering)
        except BaseException:
            ledger.close()
            raise

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
        """Create a holdout from labelled tables. The same tables under the same name again change nothing.

        Parameters
        ----------
        by : Principal
            Administrator who makes the call.
        name : str
            Name in addresses: lower-case letters, digits and hyphens.
        train, holdout, label, id, groups, order, window, transition, graph
            Tables, names of their columns, and dependence between records, as for `PredictionGuard.create`. The
            holdout needs at least 20 records.
        title : str, default ""
            Name that the pages show.
        metric : str, default "accuracy"
            Metric that scores submissions.
        feedback : {"interval", "verdict", "best"}, default "interval"
            Kind of answer: an interval for each submission, the verdict of a comparison with the team's champion, or
            only the best score of all.
        phase : {"open", "blind", "closed"}, default "open"
            An open holdout accepts submissions and shows answers, a blind one accepts them and hides the answers
            until it is closed, and a closed one accepts none.
        public : bool, default False
            Whether visitors without a token see the leaderboard.
        quota : int, optional
            Maximum number of submissions of each team. If None, there is no quota.
        quota_days : float, optional
            Number of days that the quota is counted over. If None, it is counted over all time.
        confidence, prior_queries, allow_duplicates
            Confidence level, number of earlier queries to the holdout, and whether equal rows are allowed, as for
            `PredictionGuard.create`.

        Returns
        -------
        Holdout
            Description of the holdout.

        Raises
        ------
        ServiceRefused
            With the code "bad_table", "bad_name", "bad_request" or "name_taken". The last one means that another
            holdout has this name, or already has these records, whose budget would be spent twice.
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
        """Return the holdouts that the caller may see, the oldest first."""
        return [self._shown(found) for found in self._holdouts.all() if may_see(by, found)]

    @checked
    def holdout(self, by: Principal, name: str) -> Holdout:
        """Return the description of one holdout, by its name."""
        return self._shown(self._find(by, name))

    @checked
    def set_phase(self, by: Principal, name: str, phase: Phase) -> Holdout:
        """Change whether a holdout accepts submissions and shows answers.

        The phases are "open", "blind" and "closed". A blind phase can only end by closing. A closed holdout may be
        opened again. A blind phase after an open one hides the answers from then on.
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
        """Replace the labels of some records, or withdraw records; the information released carries over.

        Parameters
        ----------
        by : Principal
            An administrator.
        name : str
            The holdout.
        corrections, reason, basis
            As for `PredictionGuard.correct`; the history and the notes show the reason.

        Returns
        -------
        Holdout
            The holdout as it is shown.

        Raises
        ------
        ServiceRefused
            "bad_table" with its error, "bad_name" or "bad_request"; nothing is changed then.
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

    @checked
    def admit(self, by: Principal, name: str) -> Holdout:
        """Return the holdout that a team is about to send a table for; refuse if every table would be refused."""
        found = self._find(by, name)
        self._failures.check(by)
        return self._shown(found)

    @checked
    def failed(self, by: Principal, name: str) -> None:
        """Count a table that was refused before it came here against the public rate of its API token."""
        self._find(by, name)
        self._failures.count(by)

    @checked
    def submit(
        self,
        by: Principal,
        name: str,
        predictions: pd.DataFrame,
        *,
        idempotency_key: str,
        expected: float | None = None,
        title: str = "",
        wait: float | None = None,
    ) -> Submission:
        """Score predictions of a team, and charge each content once.

        Parameters
        ----------
        by : Principal
            Team that submits.
        name : str
            Name of the holdout.
        predictions : DataFrame
            Table of predictions, as for `PredictionGuard.ask`. It is checked before anything is charged.
        idempotency_key : str
            Key of this request. The same key with the same content gets the same answer and charges nothing.
        expected : float, optional
            Score that the team anticipates.
        title : str, default ""
            Name that the team gives to the submission.
        wait : float, optional
            Number of seconds after which a running submission is returned as "running" and continues. If None, the
            call waits for the answer.

        Returns
        -------
        Submission
            The submission with its answer, as far as the phase shows it.

        Raises
        ------
        ServiceRefused
            With the code of the refusal, such as "bad_table", "key_used", "closed", "quota", "allowance",
            "exhausted", "rate", "busy" or "stopping".
        """
        found = self._find_to_answer(by, name)
        kind: Kind = "comparison" if found.settings.feedback == "verdict" else "score"
        told = self._desk.take(
            by, found, kind, predictions, idempotency_key=idempotency_key, expected=expected, title=title, wait=wait
        )
        self._leaderboards.follow(found, told.query)
        return told

    @checked
    def compare(
        self,
        by: Principal,
        name: str,
        predictions: pd.DataFrame,
        *,
        idempotency_key: str,
        expected: float | None = None,
        title: str = "",
        wait: float | None = None,
    ) -> Submission:
        """Compare predictions with the team's champion.

        Better predictions replace the champion. The first ones become it, free of charge.

        Parameters
        ----------
        by, name, predictions, idempotency_key, title, wait
            As for `submit`.
        expected : float, optional
            The team's anticipated difference.

        Returns
        -------
        Submission
            The submission with its verdict, as far as the phase shows it.
        """
        found = self._find_to_answer(by, name)
        if found.settings.feedback == "best":
            raise ServiceRefused("no_comparison")
        return self._desk.take(
            by, found, "comparison", predictions, idempotency_key=idempotency_key, expected=expected, title=title,
            wait=wait,
        )  # fmt: skip

    @checked
    def submission(self, by: Principal, name: str, id: str) -> Submission:
        """Return a submission: one of the team's own, or any for an administrator."""
        found = self._find(by, name)
        row = self._submissions.find(id)
        if row is None or row.holdout != found.number or (by.role == "team" and row.team != by.team):
            raise ServiceRefused("not_found")
        return self._submitted(found, self._answers.of(found, [row])[0])

    @checked
    def history(
        self,
        by: Principal,
        name: str,
        *,
        after: int = 0,
        before: int | None = None,
        count: int = 100,
        team: str | None = None,
    ) -> list[Submission]:
        """Return submissions, the oldest first: a team's own, or for an administrator all or one team's.

        Parameters
        ----------
        by : Principal
            A team, or an administrator.
        name : str
            The holdout.
        after : int, default 0
            `number` of the last known submission.
        before : int, optional
            `number` of the first known submission: return those before it, the newest first, and ignore `after`.
        count : int, default 100
            At most so many, up to 1000.
        team : str, optional
            The team, for an administrator.

        Returns
        -------
        list of Submission
            The submissions.
        """
        found = self._find(by, name)
        start = after if before is None else before
        if not 0 <= start <= MOST_NUMBER or not 1 <= count <= _MOST_ROWS:
            raise ServiceRefused("bad_request", argument="after, before or count", most=_MOST_ROWS)
        if by.role == "team" and team not in (None, by.team):
            raise ServiceRefused("forbidden")
        whose, rows = by.team if by.role == "team" else team, self._submissions
        if whose is None:
            read = rows.of_all if before is None else rows.of_all_before
            every = self._answers.of(found, read(found.number, start, count))
            return [self._submitted(found, row, number=row.place) for row in every]
        read_own = rows.of_team if before is None else rows.of_team_before
        own = self._answers.of(found, read_own(found.number, whose, start, count))
        return [self._submitted(found, row) for row in own]

    @checked
    def leaderboard(self, by: Principal, name: str) -> Leaderboard:
        """Return the leaderboard, as far as it is certified and shown in this phase."""
        found = self._find(by, name)
        return Leaderboard(self._shown(found), self._leaderboards.rows(found), by.team)

    @checked
    def outlook(self, by: Principal, name: str) -> Outlook | None:
        """Return how the intervals of a leaderboard will widen; ``None`` in a blind phase, and before any answer."""
        found = self._find(by, name)
        return None if found.shown is not None else outlook_of(self._guards.get(found.identity), self.ledger)

    @checked
    def export(self, by: Principal, name: str) -> Iterator[str]:
        """Return the public history as lines of JSON; see `export_history`."""
        found = self._find(by, name)
        if found.shown is not None:
            raise ServiceRefused("hidden")
        folder = tempfile.TemporaryDirectory()
        try:
            file = Path(folder.name, "history.jsonl")
            export_history(self.ledger, found.identity, file)
        except BaseException:
            folder.cleanup()
            raise
        return _lines(folder, file)

    def health(self, *, writes: bool = False) -> dict[str, Any]:
        """Return whether the service can answer, with the state of its holdouts (`thresholdout.service.readiness`)."""
        return readiness(self.ledger, self._holdouts, self._damaged, self._proofs.status, writes)

    def close(self) -> None:
        """Stop accepting requests, finish running submissions, and close the database."""
        self._desk.close()
        self._proofs.close()
        self.ledger.close()

    def _find(self, by: Principal, name: str) -> HoldoutRow:
        """Return a visible holdout; an invisible one counts as not found."""
        found = self._holdouts.find(check_name("name", name))
        if found is None or not may_see(by, found):
            raise ServiceRefused("not_found")
        return found

    def _find_to_answer(self, by: Principal, name: str) -> HoldoutRow:
        """Return a holdout whose guard may be queried here."""
        if not self._answering:
            raise ServiceRefused("unavailable")
        found = self._find(by, name)
        if found.identity in self._damaged:
            raise ServiceRefused("damaged")
        return found

    def _submitted(self, found: HoldoutRow, row: SubmissionRow, number: int | None = None) -> Submission:
        return shown(found, self._proofs.current(found, row), number=number)

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


def _lines(folder: tempfile.TemporaryDirectory[str], file: Path) -> Iterator[str]:
    """Yield the lines of a file, and remove its folder in the end."""
    with folder, open(file, encoding="ascii") as lines:
        yield from lines
