"""Keys that a guard makes from queries, so that asking one again costs nothing.

*Part of the key.* Everything that a query is a function of: an estimator's class and fitted state, a function's code
and the objects that the code uses, the metric, the cross-validation, weights, bounds. The predictions for training
records, too, so that random predictions, or those with hidden inputs, make another query.

*No key.* Values that are given as arrays. A key from training values would answer one query with another's answer: two
models that agree on the training part need not agree elsewhere. A key from the holdout's values would be in the public
history, and whoever knows all records but one could test guesses of that one. So arrays are always a new query, unless
the caller passes a key.

*Privacy of a key.* The digest of the content is keyed with 256 random bits that are a secret of the guard. So a key
shows nothing, even if a function has closed over records of the holdout.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import warnings
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.identity import handed_out
from thresholdout.errors import InputError, LedgerMismatch, outside
from thresholdout.guard.content_keys import Unrecognised, content_digest
from thresholdout.ledger.entry import MADE, ContentKey, SpareKey
from thresholdout.suppressed_warnings import suppress_warnings

if TYPE_CHECKING:
    from thresholdout.data.identity import Part
    from thresholdout.ledger import Ledger
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = ["Digest", "KeyMaker", "QueryKeys", "check_own", "estimator_digest", "outputs", "rounded"]

_SECRET: Final = "queries/secret"
_FEW: Final = 200
"""Training records whose predictions are part of a key."""


class Digest(str):
    """Digest of a fitted estimator."""

    __slots__ = ()


def check_own(key: object) -> None:
    """Refuse a caller's key with the prefix of keys that a guard makes.

    Examples
    --------
    >>> check_own("monday")
    >>> check_own("content:0")
    Traceback (most recent call last):
    thresholdout.errors.InputError: key must be another text, or None; got a text that begins with 'content:'. ...
    """
    if isinstance(key, str) and key.startswith(MADE) and not isinstance(key, ContentKey):
        advice = "Guards make such keys from the content of queries, and find them again."
        raise InputError("key", f"a text that begins with {MADE!r}", "another text, or None", advice)


class KeyMaker:
    """Makes the key of a content with a guard's secret random bits."""

    def __init__(self, ledger: Ledger, identity: str) -> None:
        self._ledger = ledger
        self._id = identity

    def __call__(self, digest: str) -> ContentKey:
        """Return the key of the content with this digest."""
        return ContentKey(MADE + hmac.new(self._secret, digest.encode(), "sha256").hexdigest())

    @cached_property
    def _secret(self) -> bytes:
        found = self._ledger.document(self._id, _SECRET)
        while found is None:
            with contextlib.suppress(LedgerMismatch):  # another process may have stored one meanwhile
                self._ledger.put_document(self._id, _SECRET, secrets.token_hex(32))
            found = self._ledger.document(self._id, _SECRET)
        return bytes.fromhex(found)


class QueryKeys:
    """Keys of queries from their content; ``made`` makes a key from a digest."""

    def __init__(self, made: Callable[[str], ContentKey]) -> None:
        self.made = made
        self._unrecognised = False

    def known_by(self, key: str | None, *content: object) -> str | None:
        """Return a query's key: the caller's, or one from the content; ``None`` for a new query."""
        if key is not None and not isinstance(key, SpareKey):
            return key
        try:
            digest = content_digest(*content)
        except Unrecognised as reason:
            self.say_unrecognised(reason)
            return key
        return self.made(digest)

    def of_score(
        self,
        digest: Callable[[Any, Metric | Statistic], Digest | None],
        key: str | None,
        kind: str,
        models: Sequence[Any],
        score: Metric | Statistic,
        *rest: object,
    ) -> str | None:
        """Return the key of a query about fitted estimators (or their digests) and all else that it depends on."""
        if key is not None and not isinstance(key, SpareKey):
            return key
        digests = [model if isinstance(model, Digest) else digest(model, score) for model in models]
        return key if None in digests else self.known_by(key, kind, digests, score, *rest)

    def say_unrecognised(self, reason: Unrecognised) -> None:
        """Warn once that a query has no key of its content."""
        if not self._unrecognised:
            self._unrecognised = True
            warnings.warn(
                f"A query cannot be identified by its content: {reason}. Asked again, it is charged as a new query. "
                "Pass key= to identify it.",
                UserWarning,
                stacklevel=outside(),
            )


def estimator_digest(
    model: Any, score: Metric | Statistic, train: Part, unrecognised: Callable[[Unrecognised], None]
) -> Digest | None:
    """Return the digest of a fitted estimator and its predictions; ``None`` if it has none."""
    if getattr(model, "only_holdout", False):
        return None  # it wraps an array of values
    said = outputs(model, score.response_of(model), train)
    if said is None:
        return None
    try:
        return Digest(content_digest(model, said))  # after a prediction, which may have changed the model's state
    except Unrecognised as reason:
        unrecognised(reason)
        return None


def outputs(estimator: Any, response: str, train: Part) -> Any:
    """Return an estimator's outputs for the first training records, in single precision; ``None`` if it fails.

    Sums of several threads come in any order, so their last digits vary. All other differences make another query. A
    failure is reported by the computation of training values.
    """
    X = train[0]
    first = X.iloc[:_FEW] if hasattr(X, "iloc") else X[:_FEW]
    try:
        with suppress_warnings():
            return rounded(getattr(estimator, response)(handed_out((first,))[0]))
    except Exception:
        return None


def rounded(values: Any) -> Any:
    """Return floats in single precision."""
    found = np.asarray(values)
    return found.astype(np.float32) if found.dtype.kind == "f" else found
