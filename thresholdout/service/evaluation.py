"""The service without HTTP: holdouts, teams, submissions and their checks.

Every interface (HTTP, pages, agents, the command line) calls these methods and nothing else. Each takes the caller
first, and checks role, owner and phase before it does anything. An internal failure becomes the refusal "unavailable":
neither its message nor its kind reaches a caller.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, cast

from thresholdout.ledger import export_history, open_ledger
from thresholdout.service.administration import Administration
from thresholdout.service.authority import checked
from thresholdout.service.chained_answers import ChainedAnswers
from thresholdout.service.guard_cache import GuardCache
from thresholdout.service.leaderboards import Leaderboards
from thresholdout.service.limits import Failures, Limits
from thresholdout.service.readiness import readiness
from thresholdout.service.receipts.issuing import Receipts
from thresholdout.service.receipts.rollback_detection import check_newest
from thresholdout.service.refusals import ServiceRefused
from thresholdout.service.schemas import Holdout, Leaderboard, Outlook, Principal, Submission
from thresholdout.service.store.holdouts import HoldoutRow, Holdouts
from thresholdout.service.store.submissions import Champions, Kind, SubmissionRow, Submissions
from thresholdout.service.store.tables import prepare
from thresholdout.service.submissions import Desk
from thresholdout.service.tokens import Sessions, Tokens
from thresholdout.service.views import outlook_of, shown

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.ledger import SQLLedger
    from thresholdout.service.receipts.witness import Witness

__all__ = ["MOST_NUMBER", "EvaluationService"]

# Above the number of every submission.
MOST_NUMBER: Final = 2**62

# Submissions of a history that are read at once.
_MOST_ROWS: Final = 1000


class EvaluationService(Administration):
    """Score the predictions of teams on secret labels, with holdouts, API tokens and leaderboards in one database.

    The service keeps the labels of each holdout and answers submissions with certified intervals. An administrator
    creates holdouts (`create_holdout`) and API tokens (`new_token`). Teams send tables of predictions (`submit`,
    `compare`), and everyone who may see a holdout reads its `leaderboard`. The first argument of most methods is the
    caller, the object that `authenticate` returns for an API token. Create the service with `open`, not with the
    constructor. The command ``thresholdout serve`` offers the same functions over HTTP, on web pages and to agents.

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
            File with the key of an encrypted ledger. A ledger on a server always needs a key. If None, the environment
            variables ``THRESHOLDOUT_KEY`` and ``THRESHOLDOUT_KEY_FILE`` are used.
        limits : Limits, optional
            Limits of requests. If None, ``Limits()``.
        receipts : bool, default False
            Whether each answer comes with a signed receipt, which needs the library ``cryptography``.
        witness : Witness, optional
            Independent store that keeps each checkpoint. The ledger is refused if the witness knows more answers. If
            None, an older copy of the database is not detected.
        accept_rollback : str, optional
            Reason for accepting a ledger that the witness does not confirm. Every leaderboard shows it. If None, such a
            ledger is refused.
        answering : bool, default True
            Whether submissions are answered. If False, the service only administers tokens and holdouts, and no witness
            can be passed.

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
    def admit(self, by: Principal, name: str) -> Holdout:
        """Check that a team may send a table to a holdout, before the table is uploaded.

        Call it before an upload, so that a team whose table would be refused anyway does not send it.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only teams may call this method.
        name : str
            Name of the holdout.

        Returns
        -------
        Holdout
            Description of the holdout. Its attribute `rows` is the number of records of both parts.

        Raises
        ------
        ServiceRefused
            With the code "not_found" if there is no such holdout, or "rate" if too many tables of this API token were
            refused within this hour.
        """
        found = self._find(by, name)
        self._failures.check(by)
        return self._shown(found)

    @checked
    def failed(self, by: Principal, name: str) -> None:
        """Report that a table was refused before it reached the service, for example because its format was wrong.

        Refused tables are free up to a rate for each API token (`Limits.failures_per_hour`). Interfaces that read
        tables themselves call this method so that their refusals count, too.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`: a team or an administrator.
        name : str
            Name of the holdout.

        Raises
        ------
        ServiceRefused
            With the code "not_found" if there is no such holdout, or "rate" if the API token has reached its rate.
        """
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
        """Score a team's predictions on a holdout.

        If a team resubmits identical predictions, it receives the original answer and is not charged again.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only teams may call this method.
        name : str
            Name of the holdout.
        predictions : DataFrame
            Table with the id column of the holdout and either the column ``prediction`` or, for metrics of
            probabilities, one column ``p_<class>`` for each class. Every record of the holdout needs one row. The table
            is checked before anything is charged.
        idempotency_key : str
            Key of this request, 1 to 200 printable ASCII characters. The same key with the same content gets the same
            answer and charges nothing, so a request can be repeated after a lost connection.
        expected : float, optional
            Score that the team anticipates, for example from cross-validation. A good guess releases less information.
            If None, the default of `PredictionGuard.ask` is used.
        title : str, default ""
            Name that the team gives to the submission.
        wait : float, optional
            Number of seconds to wait for the answer. A submission that takes longer is returned in the state "running"
            and continues in the background. If None, the call waits until the answer is there.

        Returns
        -------
        Submission
            Attribute `id` identifies the submission, and `state` is its status, for example "answered", or "hidden" in
            a blind phase. `value` is the score, with its interval from `low` to `high`, if the feedback settings and
            the current phase reveal them.

        Raises
        ------
        ServiceRefused
            With the code of the refusal, such as "bad_table", "key_used", "closed", "quota", "allowance", "exhausted",
            "rate", "busy" or "stopping".
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
        """Compare a team's predictions with its champion, the best submission that it has compared so far.

        Predictions that are certified to be better become the new champion. The first ones become the champion at no
        cost. If the holdout's feedback is "verdict", `submit` does the same.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only teams may call this method.
        name : str
            Name of the holdout.
        predictions : DataFrame
            Table with one row for each record of the holdout, in the format that `submit` describes.
        idempotency_key : str
            Key of this request, 1 to 200 printable ASCII characters. Repeating the key with the same content returns
            the same answer at no charge.
        expected : float, optional
            Anticipated difference of the scores, the new predictions minus the champion. If None, the default of
            `PredictionGuard.compare` is used. It has no effect if the holdout's feedback is "verdict".
        title : str, default ""
            Name that the team gives to the submission.
        wait : float, optional
            Number of seconds to wait for the answer. A comparison that takes longer is returned in the state "running"
            and continues in the background. If None, the call waits until the answer is there.

        Returns
        -------
        Submission
            Its attribute `verdict` is "better", "worse", "not settled", or "first" if there was no champion. `value`,
            `low` and `high` are the difference of the scores and its interval, if the feedback settings reveal them.

        Raises
        ------
        ServiceRefused
            With the code "no_comparison" if the holdout's feedback is "best", or with the codes of `submit`.
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
        """Return one submission, for example to fetch the answer of one that was still running.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`: a team or an administrator.
        name : str
            Name of the holdout.
        id : str
            Attribute `id` of the submission, as returned by `submit`.

        Returns
        -------
        Submission
            The submission, as `submit` returns it.

        Raises
        ------
        ServiceRefused
            With the code "not_found" if there is no such submission, or it is another team's and the caller is a team.
        """
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
        """Return the submissions to a holdout, the oldest first.

        A team gets its own submissions. An administrator gets those of all teams, or of one.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`: a team or an administrator.
        name : str
            Name of the holdout.
        after : int, default 0
            Return only submissions whose attribute `number` is greater than this.
        before : int, optional
            Return only submissions whose attribute `number` is less than this, the newest first, and ignore `after`. If
            None, `after` applies.
        count : int, default 100
            Maximum number of submissions, from 1 to 1000.
        team : str, optional
            Name of the team whose submissions an administrator requests. If None, an administrator gets those of all
            teams.

        Returns
        -------
        list of Submission
            The submissions, as `submit` returns them.

        Raises
        ------
        ServiceRefused
            With the code "bad_request" if a number is out of range, or "forbidden" if a team names another team.
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
        """Return the leaderboard of a holdout, with certified ranks.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. A visitor sees public holdouts only.
        name : str
            Name of the holdout.

        Returns
        -------
        Leaderboard
            Its attribute `rows` has one object for each team, the best first, with `team`, the possible `ranks`, and
            the interval from `low` to `high` that contains the true score of the team's best submission. It is empty
            unless the holdout's feedback is "interval". `holdout` describes the holdout, and `mine` is the caller's
            team. In a blind phase, rows count visible answers only.

        Raises
        ------
        ServiceRefused
            With the code "not_found" if there is no such holdout, or the caller may not see it.
        """
        found = self._find(by, name)
        return Leaderboard(self._shown(found), self._leaderboards.rows(found), by.team)

    @checked
    def outlook(self, by: Principal, name: str) -> Outlook | None:
        """Forecast how much wider the intervals of a leaderboard will become.

        The forecast assumes that further answers release as much information as the last ones did on average.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.
        name : str
            Name of the holdout.

        Returns
        -------
        Outlook or None
            Attribute `half_width` is the half-width of the next answer to a new team whose anticipated score is right.
            `later` is the same half-width after `ahead` further answers. None in a blind phase, before the first
            answer, and for mechanisms that do not use anticipated scores.
        """
        found = self._find(by, name)
        return None if found.shown is not None else outlook_of(self._guards.get(found.identity), self.ledger)

    @checked
    def export(self, by: Principal, name: str) -> Iterator[str]:
        """Export the public history of a holdout as lines of JSON.

        The format is that of `thresholdout.ledger.export_history`. Anyone can verify the exported file with
        `verify_export`. It contains no labels.

        Parameters
        ----------
        by : Principal
            Caller, as returned by `authenticate`. Only administrators may call this method.
        name : str
            Name of the holdout.

        Returns
        -------
        iterator of str
            Lines of JSON.

        Raises
        ------
        ServiceRefused
            With the code "hidden" in a blind phase, or "not_found" if there is no such holdout.
        """
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
        """Return whether the service can answer, for monitoring.

        Parameters
        ----------
        writes : bool, default False
            Whether to test a commit to the database, and to count answers.

        Returns
        -------
        dict
            ``status`` is "ok", "damaged" or "unavailable". Other items are the number of ``holdouts``, the names of
            those that failed their check (``damaged``), and the state of the witness. With `writes` also the number of
            ``answers``, the seconds of a ``commit``, and, among holdouts with visible answers, the largest
            ``information_released`` in nats and the smallest ``error_budget_left``.
        """
        return readiness(self.ledger, self._holdouts, self._damaged, self._proofs.status, writes)

    def close(self) -> None:
        """Stop accepting requests, finish running submissions, and close the database."""
        self._desk.close()
        self._proofs.close()
        self.ledger.close()

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


def _lines(folder: tempfile.TemporaryDirectory[str], file: Path) -> Iterator[str]:
    """Yield the lines of a file, and remove its folder in the end."""
    with folder, open(file, encoding="ascii") as lines:
        yield from lines
