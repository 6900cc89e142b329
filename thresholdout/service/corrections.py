"""Corrected labels and withdrawn records of a guard: secret, in the guard's state.

The holdout stays the same, and the information released carries over. The guarantee afterwards depends on the basis of
the corrections, which the administrator declares; PROOFS.md, "The remaining error budget" (B12).
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import numpy as np

from thresholdout.data.tables import check_table, first_twice, id_texts, predicted_labels
from thresholdout.errors import InputError, LedgerDamaged
from thresholdout.guard.given_features import described
from thresholdout.guard.query import Query
from thresholdout.guard.query_engine import LabelsCorrected
from thresholdout.ledger.entry import check_short_texts
from thresholdout.mechanisms import Part

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from thresholdout.guard.guard import Thresholdout
    from thresholdout.ledger.entry import Entry
    from thresholdout.service.labelled_records import LabelledRecords

__all__ = ["MOST_CORRECTED", "Basis", "CorrectedLabels", "Corrections", "Labels"]

# The basis of corrections. "public": their time and their records follow from public facts, and each record was judged
# by itself. "labels": any other basis.
Basis: TypeAlias = Literal["public", "labels"]

# Records with corrections that a guard keeps: they are a part of its state, which each answer writes.
MOST_CORRECTED: Final = 10_000

_LABEL: Final = "label"
# The largest float below 1, since a note of 1 says that nothing is certified afterwards.
_NEARLY_ALL: Final = 1.0 - 2.0**-53

Told = TypeVar("Told")


@dataclass(frozen=True)
class Corrections:
    """Corrections by the place of the record in the holdout; ``None`` stands for a withdrawn record. Secret.

    `public` says whether all of them have the basis "public"; see `Basis`.

    Examples
    --------
    >>> made = Corrections({3: "cat", 5: None}, True, ("labels checked: a complaint",))
    >>> Corrections.from_text(made.to_text()) == made, made
    (True, Corrections(public=True, notes=('labels checked: a complaint',)))
    >>> made.labels(np.array(["a"] * 6)).tolist(), made.counted(6).tolist()
    (['a', 'a', 'a', 'cat', 'a', 'a'], [True, True, True, True, True, False])
    """

    rows: dict[int, Any] = field(default_factory=dict, repr=False)
    public: bool = True
    notes: tuple[str, ...] = ()

    @classmethod
    def from_text(cls, text: str) -> Corrections:
        """Return the corrections that `to_text` wrote; none for an empty text."""
        if not text:
            return cls()
        try:
            rows, public, notes = json.loads(zlib.decompress(base64.b64decode(text.encode(), validate=True)))
            found = cls({int(place): label for place, label in rows}, bool(public), tuple(map(str, notes)))
        except (binascii.Error, zlib.error, TypeError, ValueError):
            raise ValueError("no corrections") from None  # the text could show labels
        return found

    def to_text(self) -> str:
        """Return them as one line of text."""
        said = json.dumps([sorted(self.rows.items()), self.public, self.notes], separators=(",", ":"))
        return base64.b64encode(zlib.compress(said.encode(), 9)).decode()

    def with_rows(self, rows: dict[int, Any], basis: Basis, note: str) -> Corrections:
        """Return these corrections followed by further ones."""
        return Corrections({**self.rows, **rows}, self.public and basis == "public", (*self.notes, note))

    def labels(self, first: NDArray[Any]) -> NDArray[Any]:
        """Return the current labels, from those that the guard was made with."""
        if not self.rows:
            return first
        found = first.tolist()
        for place, label in self.rows.items():
            if label is not None:
                found[place] = label
        return np.asarray(found)

    def counted(self, n: int) -> NDArray[np.bool_] | None:
        """Return which of n records are not withdrawn; ``None`` for all of them."""
        gone = [place for place, label in self.rows.items() if label is None]
        if not gone:
            return None
        counted = np.ones(n, dtype=bool)
        counted[gone] = False
        return counted


@dataclass(frozen=True)
class Labels:
    """The current labels of a holdout. Secret, except `counted`: which records count, where some were withdrawn."""

    text: str
    values: NDArray[Any]
    counted: NDArray[np.bool_] | None
    corrections: Corrections

    def part(self, guard: Thresholdout, training: int) -> Part | None:
        """Return the part of the holdout that counts, for the mechanism; ``None`` for all of it."""
        return None if self.counted is None else described(self.counted, guard.dependence, training)

    def among(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of the records that count."""
        return values if self.counted is None else values[self.counted]

    def key(self, key: str) -> str:
        """Return the key of a query with these labels: with other labels it is another query."""
        if not self.text:
            return key
        # No client's key has this form.
        return f"labels {len(self.corrections.notes)}: {sha256(key.encode()).hexdigest()}"

    def asked(self, query: Query) -> Query:
        """Mark a query with the corrections that it is computed with; return it."""
        query.corrected = self.text
        return query


class CorrectedLabels:
    """The labels behind a guard, and their corrections."""

    def __init__(self, guard: Thresholdout, records: LabelledRecords) -> None:
        self._guard = guard
        self._records = records
        self._kept: Labels | None = None

    def now(self) -> Labels:
        """Return the current labels, whichever process corrected them."""
        text, kept = self._guard._engine.corrected(), self._kept
        if kept is None or kept.text != text:
            corrections = self._read(text)
            counted = corrections.counted(self._guard.n)
            kept = self._kept = Labels(text, corrections.labels(self._first), counted, corrections)
        return kept

    def with_these(self, ask: Callable[[Labels], Told]) -> Told:
        """Query with the current labels, and again if they are corrected meanwhile."""
        while True:
            try:
                return ask(self.now())
            except LabelsCorrected:
                continue  # nothing was answered or charged

    def correct(self, corrections: pd.DataFrame, reason: str, basis: Basis) -> Entry:
        """Replace labels; see `PredictionGuard.correct`."""
        if basis not in ("public", "labels"):
            raise InputError("basis", repr(basis)[:80], "'public' or 'labels'")
        name = f"labels {'checked' if basis == 'public' else 'corrected in view of labels'}: {reason}"
        check_short_texts(reason=reason, name=name)
        rows = self._rows(corrections)
        self._check_withdrawn(rows, basis)

        def change(text: str) -> tuple[str, float]:
            before = self._read(text)
            found = before.with_rows(rows, basis, name)
            if len(found.rows) > MOST_CORRECTED:
                raise InputError(
                    "corrections",
                    f"{len(found.rows)} records",
                    f"of at most {MOST_CORRECTED} records in all",
                    "Make a new guard with new records instead.",
                )
            least = min(self._count(before), self._count(found))
            if least == 0:
                raise InputError("corrections", "a withdrawal of all of them", "a table that leaves some records")
            # A mean moves by at most this share of its range (PROOFS.md, B12).
            return found.to_text(), min(len(rows) / least, _NEARLY_ALL) if basis == "public" else 1.0

        return self._guard._engine.correct(name, change)

    def _count(self, corrections: Corrections) -> int:
        """Return how many records count."""
        counted = corrections.counted(self._guard.n)
        return self._guard.n if counted is None else int(np.count_nonzero(counted))

    @cached_property
    def _first(self) -> NDArray[Any]:
        return self._records.parts()[1][1]

    def _read(self, text: str) -> Corrections:
        try:
            return Corrections.from_text(text)
        except ValueError:
            pass
        raise LedgerDamaged(self._guard._ledger.location, None, "The corrections of its labels cannot be read.")

    def _rows(self, corrections: pd.DataFrame) -> dict[int, Any]:
        """Return the labels of a table by the places of its records."""
        import pandas as pd

        table = check_table(corrections, "corrections", [self._records.id])
        if _LABEL not in table.columns:
            raise InputError(
                "corrections",
                f"a table without column {_LABEL!r}",
                f"a table with columns {self._records.id!r} and {_LABEL!r}",
            )
        ids = id_texts(table[self._records.id])
        twice = first_twice(ids)
        if twice is not None:
            raise InputError("corrections", f"id {twice!r} twice", "a table with one row for each record")
        train = len(self._records.train_labels)
        places = self._records.ids.get_indexer(pd.Index(ids, dtype=object)) - train
        if (places < 0).any():
            seen = f"id {ids[int(np.flatnonzero(places < 0)[0])]!r}, which is no record of the holdout"
            raise InputError("corrections", seen, "a table of records of the holdout")
        column = table[_LABEL]
        gone = np.array([pd.isna(one) or one == "" for one in column.tolist()], dtype=bool)
        rows: dict[int, Any] = dict.fromkeys(places[gone].tolist())
        if not gone.all():
            rows |= dict(zip(places[~gone].tolist(), self._labels(column[~gone]).tolist(), strict=True))
        return rows

    def _labels(self, column: pd.Series[Any]) -> NDArray[Any]:
        """Return new labels in the type of the original ones."""
        try:
            found = predicted_labels(column, self._first)
        except InputError as error:
            seen = str(error.seen).replace("'prediction'", repr(_LABEL))
            raise InputError("corrections", seen, error.expected, error.advice) from None
        if self._first.dtype.kind == "i":
            if (found != np.round(found)).any():
                raise InputError("corrections", "a label that is no integer", "a table of integers, as the labels are")
            found = found.astype(np.int64)
        return found

    def _check_withdrawn(self, rows: dict[int, Any], basis: Basis) -> None:
        """Refuse withdrawals where nothing is proved about means over the remaining records."""
        if all(label is not None for label in rows.values()):
            return
        guard = self._guard
        if guard._declared.sampling != "fixed_features" or not guard.parameters.withdraws:
            given = "" if guard._declared.sampling == "fixed_features" else ", not given the features"
            advice = (
                "Only a guard of claims about labels given the features can withdraw records; this one answers by "
                f"{guard._mechanism.name}{given}."
            )
            raise InputError("corrections", "a record without a label", "a table with a label for each record", advice)
        if basis != "public":
            raise InputError(
                "corrections",
                "a record without a label",
                "a table with a label for each record, beside basis='labels'",
                "Declare basis='public' if the records were chosen without the holdout's labels.",
            )
