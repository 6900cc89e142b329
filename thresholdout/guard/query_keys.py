"""Keys that a guard makes from queries themselves, so that asking one again costs nothing.

*What is known again.* Everything that a query is a function of: an estimator by its class and its fitted state, a
function by its code and what the code finds outside of itself, the metric, the cross-validation, weights, bounds. And
what comes out for training records, so that a prediction that is another one each time, or depends on what nobody can
see, is another query.

*What is not.* Values that come as arrays. A key from the training values would give one query another's answer: two
models that are equal on the training part need not be equal anywhere else. A key from the holdout's values would stand
in the history, which is public, and whoever knows all records but one could try what that one has to be. So arrays are
a new query each time, unless a key comes with them.

*What a key tells.* The digest of the content is made once more with 256 random bits that are a secret of the guard, so
that a key says nothing even where a function has closed over records of the holdout: only asking it again does.
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
"""Training records for which a model says what it says."""


class Digest(str):
    """What is left of a fitted estimator."""

    __slots__ = ()


def check_own(key: object) -> None:
    """Refuse a key of the caller's that looks like one that a guard makes.

    Examples
    --------
    >>> check_own("monday")
    >>> check_own("content:0")
    Traceback (most recent call last):
    thresholdout.errors.InputError: key must be another text, or no key: such keys are made from queries ...
    """
    if isinstance(key, str) and key.startswith(MADE) and not isinstance(key, ContentKey):
        expected = "another text, or no key: such keys are made from queries themselves, and asking again finds them"
        raise InputError("key", f"a text that begins with {MADE!r}", expected)


class KeyMaker:
    """Makes the key of a content, with random bits that are a secret of one guard."""

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
            with contextlib.suppress(LedgerMismatch):  # another process may have been faster
                self._ledger.put_document(self._id, _SECRET, secrets.token_hex(32))
            found = self._ledger.document(self._id, _SECRET)
        return bytes.fromhex(found)


class QueryKeys:
    """Keys of queries by their content; ``made`` makes a key from a digest."""

    def __init__(self, made: Callable[[str], ContentKey]) -> None:
        self.made = made
        self._unrecognised = False

    def known_by(self, key: str | None, *content: object) -> str | None:
        """Return a query's key: the caller's, or one by all that the query is a function of; ``None`` for a new one."""
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
        """Return the key of a query about what fitted estimators say, or digests of such, and all else it needs."""
        if key is not None and not isinstance(key, SpareKey):
            return key
        digests = [model if isinstance(model, Digest) else digest(model, score) for model in models]
        return key if None in digests else self.known_by(key, kind, digests, score, *rest)

    def say_unrecognised(self, reason: Unrecognised) -> None:
        """Say once that a query cannot be known again."""
        if not self._unrecognised:
            self._unrecognised = True
            warnings.warn(
                f"a query cannot be known by its content: {reason}. Asked again it is a new query, which costs "
                "what a new query costs, unless it comes with a key=",
                UserWarning,
                stacklevel=outside(),
            )


def estimator_digest(
    model: Any, score: Metric | Statistic, train: Part, unrecognised: Callable[[Unrecognised], None]
) -> Digest | None:
    """Return the digest of a fitted estimator and of what it says; ``None`` where that can't be told."""
    if getattr(model, "only_holdout", False):
        return None  # it stands for values
    said = outputs(model, score.response_of(model), train)
    if said is None:
        return None
    try:
        return Digest(content_digest(model, said))  # after a prediction, for which it may have made something
    except Unrecognised as reason:
        unrecognised(reason)
        return None


def outputs(estimator: Any, response: str, train: Part) -> Any:
    """Return what a fitted estimator says of the first training records, in single precision.

    Sums of threads come in any order, so that the last digits differ from call to call. Whatever else differs makes
    another query.

    Parameters
    ----------
    estimator : object
        Fitted.
    response : str
        The method that is called.
    train : tuple (X, y)
        The training part.

    Returns
    -------
    ndarray or None
        ``None`` where the method fails, which whoever computes training values will tell.
    """
    X = train[0]
    first = X.iloc[:_FEW] if hasattr(X, "iloc") else X[:_FEW]
    try:
        with suppress_warnings():
            return rounded(getattr(estimator, response)(handed_out((first,))[0]))
    except Exception:
        return None


def rounded(values: Any) -> Any:
    """Return values in single precision, where they are more precise."""
    found = np.asarray(values)
    return found.astype(np.float32) if found.dtype.kind == "f" else found
