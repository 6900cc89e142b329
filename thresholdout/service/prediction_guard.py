"""A guard that holds the labels: predictions come in, answers go out.

A leaderboard or an evaluation service uses a guard in this way. Labels are stored in the ledger once, at creation.
Afterwards predictions are scored, and labels of the holdout are released through the guard's answers only.
Labels of the training part are not protected: outside of a leaderboard the history shows the exact training value of
every query, so two predictions that differ in one training record reveal its label. Pass a training part that may be
public. A client who knows these labels can choose the training value, so it is no evidence; a leaderboard uses none.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from thresholdout.certificates import Certificate
from thresholdout.certificates.prior_queries import PriorQueries, check_prior_queries
from thresholdout.certificates.problem import declared_confidence
from thresholdout.data.arguments import check_count
from thresholdout.data.tables import read_table
from thresholdout.errors import InputError
from thresholdout.guard.given_features import check_sampling
from thresholdout.guard.guard import Thresholdout
from thresholdout.guard.holdout import Records
from thresholdout.guard.likely_mistakes import warn_of_columns
from thresholdout.guard.releases import Releases
from thresholdout.ledger import Ledger, open_ledger
from thresholdout.mechanisms.claims.kinds import is_unlimited
from thresholdout.mechanisms.kind import Parameters
from thresholdout.noise.sources import SystemNoise
from thresholdout.planning.declaration import (
    Claims,
    Declaration,
    MechanismName,
    Sampling,
    SparseVector,
    read_declaration,
)
from thresholdout.planning.declared_parameters import check_choice
from thresholdout.scoring.metrics import Metric, get_metric
from thresholdout.service.corrections import Basis, CorrectedLabels, Corrections
from thresholdout.service.labelled_records import (
    DOCUMENT,
    LabelledRecords,
    check_stored,
    chosen_guard,
    documents_of,
    known_records,
    labelled,
    stored_records,
)
from thresholdout.service.prediction_queries import DecidesAboutPredictions
from thresholdout.service.prediction_reader import PredictionReader
from thresholdout.service.standings import Standing, standings

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.ledger.entry import Entry

__all__ = ["DOCUMENT", "PredictionGuard", "read_table"]

# Dependence for which estimands can be given the features.
_FIXED_FEATURES = ("independent", "groups")


class PredictionGuard(DecidesAboutPredictions):
    """Score tables of predictions on secret labels that a guard stores in its ledger.

    A guard (`Thresholdout`) answers queries about a holdout and tracks an error budget, the probability of error that
    all answers share. This guard also stores the labels, so clients send predictions and never see labels. Create it
    with `create`, and open it again with `open`.

    Attributes
    ----------
    guard : Thresholdout
        The guard that answers the queries.
    queries : int or None
        Declared number of queries, or None for any number.

    Examples
    --------
    >>> import pandas as pd, tempfile
    >>> table = pd.DataFrame({"id": range(4000), "x": range(4000), "y": [0, 1] * 2000})
    >>> path = Path(tempfile.mkdtemp()) / "guard.db"
    >>> service = PredictionGuard.create(path, table[:2000], table[2000:], label="y", queries=100,
    ...                                  mechanism=Claims(holdout_answers=1))
    >>> predictions = pd.DataFrame({"id": table["id"], "prediction": table["x"] % 2})
    >>> PredictionGuard.open(path).ask(predictions, "accuracy").value
    1.0
    """

    def __init__(self, guard: Thresholdout, records: LabelledRecords, queries: int | None) -> None:
        self.guard = guard
        self.queries = queries
        self._records = records
        self._reader = PredictionReader(records, guard._id)
        self._labels = CorrectedLabels(guard, records)

    @classmethod
    def create(
        cls,
        path: str | Path | Ledger,
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
        queries: int | None = None,
        confidence: float = 0.95,
        mechanism: MechanismName | Claims | SparseVector | Parameters = "leaderboard",
        sampling: Sampling | None = None,
        prior_queries: int | PriorQueries = 0,
        allow_duplicates: bool = False,
    ) -> PredictionGuard:
        """Create a guard for labelled tables, and store the labels in its ledger.

        If the ledger already has this guard with the same declarations, it is opened, with its remaining budget.

        Parameters
        ----------
        path : str, Path or Ledger
            A file, the address of a PostgreSQL server, or an open ledger. An existing file must hold the same guard,
            with the same training part. A server may hold other guards too; `identity` tells them apart.
        train, holdout : DataFrame
            Tables of the training part and of the holdout. They have one row per record, and the columns that the other
            arguments name.
        label : str
            Column of the true labels: numbers, or names of classes. Text is read as numbers only if all labels of both
            tables are numbers and no two of them are equal as numbers, so "01" and "1" are two classes.
        id : str, default "id"
            Column that identifies a record. Its values are compared as text and must be unique in both tables together.
        groups : str, optional
            Column of the holdout with groups, within which records may depend on each other arbitrarily. The guard then
            uses `graphs.Groups`.
        order : str, optional
            Column that orders both tables, where the holdout comes after the training part. It is used with `window` or
            `transition`.
        window : int, optional
            Distance beyond which records are independent: rows of the holdout more than `window` apart, in the order of
            the column `order` or of the table. The guard then uses `graphs.MovingWindow`.
        transition : DataFrame, optional
            Transition probabilities, if the labels in the order of the column `order` form a Markov chain and records
            depend on each other only through it. The first column holds the labels, and each further column, named by a
            label, the probability that this label comes next. The guard then uses `graphs.MarkovChain`, beginning after
            the last training label. The probabilities must be known: an estimate from the training labels is not
            enough.
        graph : DataFrame, optional
            Pairs of ids, in the first two columns, of records that may depend on each other. Connected records of the
            holdout form a group. Edges of training records are left out: the certificate is then about the holdout's
            expected values given the training records. If none of `groups`, `window`, `transition` and `graph` is
            given, records are independent.
        queries : int, optional
            Number of queries that the guard must answer. If None, as many as its budget allows.
        confidence : float, default 0.95
            Probability that all intervals contain the true scores.
        mechanism : str or object, default "leaderboard"
            Mechanism that computes the answers, as for `Thresholdout`. The default does not trust a client's
            anticipated score. Mechanisms that answer from a part of the records are refused, because a table of
            predictions by id need not apply the same function to every record.
        sampling : {"fixed_features", "independent"}, optional
            Definition of the true score. With "fixed_features" it is the expectation over the labels of these records,
            given their features. With "independent" it is the expectation over features and labels together, and the
            rule that predicts a record must have been chosen without the holdout's features. If None, "fixed_features"
            for independent records and groups, since clients have the features, and "independent" for orders and for
            Algorithm 1 by hand.
        prior_queries : int or PriorQueries, default 0
            Number of queries to this holdout before the guard was created.
        allow_duplicates : bool, default False
            Whether a record of the holdout may be equal to one of the training part, apart from its id.

        Returns
        -------
        PredictionGuard
            The guard.

        Raises
        ------
        InputError
            If a column is missing, an id occurs twice, a label is missing or invalid, an edge names an unknown record,
            or more than one kind of dependence is named. Nothing has been written then.
        LedgerMismatch
            If the ledger holds a guard for other data, or a guard for this holdout with other declarations. It is left
            as it is.

        Warns
        -----
        LikelyMistakeWarning
            If a column of the training part suggests groups or an order in time, and no dependence is declared.
        """
        records = labelled(
            train,
            holdout,
            label=label,
            id=id,
            groups=groups,
            order=order,
            window=window,
            transition=transition,
            graph=graph,
            allow_duplicates=allow_duplicates,
        )
        if all(given is None for given in (groups, order, window, transition, graph)):
            warn_of_columns(train.drop(columns=[id, label]), "order={!r} beside window=")
        by_hand = isinstance(mechanism, Parameters) and bool(mechanism.approximation)
        if by_hand or (isinstance(mechanism, Claims) and mechanism.limits == "normal"):
            raise InputError(
                "limits", "'normal'", "'exact' for predictions of clients", "Its intervals are guaranteed."
            )
        declared = Declaration(
            queries=None if queries is None else check_count("queries", queries),
            confidence=confidence,
            mechanism=mechanism,
            sampling=_usual_sampling(mechanism, records) if sampling is None else sampling,
            prior_queries=check_prior_queries(prior_queries),
        )
        documents = documents_of(records)
        made = _guard(records, path, declared, documents)
        check_stored(made._ledger, made._id, documents)
        return cls(made, records, queries)

    @classmethod
    def open(cls, path: str | Path | Ledger, guard: str | None = None) -> PredictionGuard:
        """Open an existing guard from its file or from an open ledger.

        Parameters
        ----------
        path : str, Path or Ledger
            Path of the ledger's file, address of a database server, or an open ledger. A server may hold many guards.
        guard : str, optional
            First characters of the guard's `identity`. Needed if the ledger has several guards with labels.

        Returns
        -------
        PredictionGuard
            The guard, with its remaining budget.

        Raises
        ------
        LedgerUnusable
            If the file is missing, is not a ledger, or holds no labels.
        InputError
            If there are several such guards, or none.
        """
        ledger = open_ledger(path, must_exist=True)
        identity = chosen_guard(ledger, guard)
        records = stored_records(ledger, identity)
        declared, _ = read_declaration(ledger, identity)
        made = _guard(records, ledger, declared, {}, known_records(ledger, identity))
        return cls(made, records, declared.queries)

    @property
    def rows(self) -> int:
        """Number of records of training part and holdout, the largest possible number of rows of predictions."""
        return self.guard.n + len(self._records.train_labels)

    @property
    def nbytes(self) -> int:
        """Approximate size of the open guard in memory, in bytes."""
        return self._records.nbytes

    @property
    def identity(self) -> str:
        """Identity of the guard in its ledger; the first characters are enough for `open`."""
        return self.guard._id

    @property
    def id_column(self) -> str:
        """Name of the column that identifies a record."""
        return self._records.id

    @property
    def certificate(self) -> Certificate:
        """Certificate of the answers: the guarantee, with its assumptions, as for `Thresholdout.certificate`."""
        return self.guard.certificate

    @property
    def labels(self) -> str:
        """Type of the labels in words, such as "read as numbers, 2 different ones in the training part"."""
        kind = "text" if self._records.train_labels.dtype.kind == "U" else "numbers"
        return f"read as {kind}, {self._records.classes.size} different ones in the training part"

    @property
    def note(self) -> str:
        """Condition of the certificate in words, if groups or edges join both parts; otherwise an empty text."""
        both = self._records.dependence.get("in_both", 0)
        if not both:
            return ""
        from_edges = self._records.dependence.get("from") == "edges"
        seen = "edges touch both parts" if from_edges else "groups occur in both parts"
        return f"{both} {seen}: the certificate is about the holdout's expected values given the training records"

    @property
    def corrections(self) -> Corrections:
        """Corrections of the labels since the guard was created. Their representation shows no label."""
        return self._labels.now().corrections

    def correct(self, corrections: pd.DataFrame, reason: str, *, basis: Basis = "labels") -> Entry:
        """Replace the labels of some records, or withdraw records.

        The holdout stays the same, and its error budget is not renewed. Later answers refer to the corrected records
        and labels, earlier answers to those of their time. The history records the reason for the correction, but no
        label.

        Parameters
        ----------
        corrections : DataFrame
            One row per corrected record, with the id column and the column ``label``: new labels of some records of the
            holdout, in the form of `create`'s tables. A record without a label is withdrawn. Records that were checked
            and keep their label may be included.
        reason : str
            Reason for the correction, which everybody may read. It must not depend on the labels.
        basis : {"labels", "public"}, default "labels"
            "public" declares two things. (i) The time of the corrections and the choice of records do not depend on the
            labels: they follow from a fixed date, or from a dispute raised by somebody who does not know the holdout's
            labels, and then the records found to be right are included. (ii) Each record's new label depends on public
            facts and this record alone, not on other labels. The guarantee then holds for earlier and later answers,
            and `standings` widens earlier intervals by the share of records in the table. With "labels" nothing is
            guaranteed about later answers, `standings` counts earlier ones alone, and the holdout's page says so.

        Returns
        -------
        Entry
            Entry of the history that notes the correction.

        Raises
        ------
        InputError
            If a row cannot be used, or the mechanism's history has no notes. Nothing is changed then.

        Examples
        --------
        >>> import pandas as pd
        >>> table = pd.DataFrame({"id": range(400), "y": [0, 1] * 200})
        >>> service = PredictionGuard.create(open_ledger(None), table[:200], table[200:], label="y")
        >>> new = pd.DataFrame({"id": [210, 211], "label": [1, 1]})
        >>> service.correct(new, "two disputed labels", basis="public").name, service.corrections
        ('labels checked: two disputed labels', Corrections(public=True, notes=(...)))
        """
        return self._labels.correct(corrections, reason, basis)

    @property
    def releases(self) -> Releases:
        """Record of other private releases about the holdout.

        Any other computation on the holdout, such as a private statistic, releases information too. Call
        ``releases.record`` before anyone sees the result. Whoever has access to the ledger can do so while a service
        answers from it. Later submissions have wider intervals, and the text of the guarantee mentions the release. It
        does not count against any client's allowance. The computation must be fixed before the next submission is
        answered.

        Examples
        --------
        >>> import pandas as pd
        >>> from thresholdout.privacy.accounting import GaussianAnswer
        >>> table = pd.DataFrame({"id": range(4000), "y": [0, 1] * 2000})
        >>> service = PredictionGuard.create(open_ledger(None), table[:2000], table[2000:], label="y")
        >>> route = service.releases.record(GaussianAnswer(500.0)).route
        >>> route, round(service.guard.status.information_released, 2)
        ('claims', 0.42)
        """
        return self.guard.releases

    def standings(self, metric: str | Metric = "accuracy") -> list[Standing]:
        """Return the certified standings of the clients, by the best submission of each.

        Parameters
        ----------
        metric : str or Metric, default "accuracy"
            Metric of the scores. Submissions with other metrics are ignored.

        Returns
        -------
        list of Standing
            One object for each client, the best first. Attribute `team` is the client, and its true rank lies between
            `first` and `last`.

        Raises
        ------
        InputError
            If the mechanism reports only the best score of all clients.

        Examples
        --------
        >>> import pandas as pd, tempfile
        >>> table = pd.DataFrame({"id": range(4000), "y": [0, 1] * 2000})
        >>> path = Path(tempfile.mkdtemp()) / "guard.db"
        >>> service = PredictionGuard.create(path, table[:2000], table[2000:], label="y")
        >>> right = table.rename(columns={"y": "prediction"})
        >>> answer = service.ask(right, expected=0.9, client="ann")
        >>> answer = service.ask(right.assign(prediction=0), expected=0.5, client="bob")
        >>> [(team.team, team.first, team.last) for team in service.standings()]
        [('ann', 1, 1), ('bob', 2, 2)]
        """
        chosen = get_metric(metric)
        if self.guard._mechanism.about == "best":
            seen = f"{self.guard._mechanism.name}, which reports only the best score of all"
            raise InputError("mechanism", seen, "'leaderboard' for standings")
        entries = self.guard._ledger.entries(self.guard._id)
        return standings(entries, chosen.name, greater_is_better=chosen.greater_is_better)


def _usual_sampling(mechanism: object, records: LabelledRecords) -> Sampling:
    """Return the default sampling: fixed features, where that is proved."""
    serves = mechanism.given_features if isinstance(mechanism, Parameters) else not isinstance(mechanism, SparseVector)
    if not serves or records.dependence["kind"] not in _FIXED_FEATURES or is_unlimited(records.model()):
        return "independent"
    return "fixed_features"


def _guard(
    records: LabelledRecords,
    ledger: str | Path | Ledger,
    declared: Declaration,
    documents: dict[str, str],
    known: tuple[str, str] | None = None,
) -> Thresholdout:
    train, holdout = records.parts()
    model = records.model()
    checked = replace(
        declared,
        confidence=declared_confidence(declared.confidence),
        mechanism=check_choice(declared.mechanism),
        sampling=check_sampling(declared.sampling, model, len(holdout)),
        dependence=model.fingerprint(),
    )
    apart = True  # since all ids are different
    kept = Records(holdout, train, apart, known)
    return Thresholdout._of_records(kept, model, checked, SystemNoise(), ledger, documents)
