"""Keys that a guard makes from questions themselves, so that asking one again costs nothing.

*What is known again.* Everything that a question is a function of: an estimator by its class and its fitted state, a
function by its code and what the code finds outside of itself, the metric, the cross-validation, weights, bounds. And
what comes out for training records, so that a prediction that is another one each time, or depends on what nobody can
see, is another question.

*What is not.* Values that come as arrays. A key from the training values would give one question another's answer: two
models that are equal on the training part need not be equal anywhere else. A key from the holdout's values would stand
in the history, which is public, and whoever knows all records but one could try what that one has to be. So arrays are
a new question each time, unless a key comes with them.

*What a key tells.* The digest of the content is made once more with 256 random bits that are a secret of the guard, so
that a key says nothing even where a function has closed over records of the holdout: only asking it again does.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.data.identity import handed_out
from thresholdout.errors import InputError, LedgerMismatch
from thresholdout.guard.captured_code import Unrecognised
from thresholdout.guard.question_keys import content_digest
from thresholdout.ledger.entry_checks import MADE, ContentKey, SpareKey
from thresholdout.silence import silence

if TYPE_CHECKING:
    from thresholdout.data.identity import Part
    from thresholdout.ledger import Ledger
    from thresholdout.scoring.metrics import Metric
    from thresholdout.scoring.statistics import Statistic

__all__ = ["Digest", "RecognisesQuestions", "check_own", "outputs", "rounded"]

_SECRET: Final = "questions/secret"
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
    thresholdout.errors.InputError: key: a text that begins with 'content:'; expected: another text, ...
    """
    if isinstance(key, str) and key.startswith(MADE) and not isinstance(key, ContentKey):
        expected = "another text, or no key: such keys are made from questions themselves, and asking again finds them"
        raise InputError("key", f"a text that begins with {MADE!r}", expected)


class RecognisesQuestions:
    """The part of a guard that knows questions again."""

    _ledger: Ledger
    _id: str
    _unrecognised = False

    @property
    @abstractmethod
    def train(self) -> Part:
        """The training part."""

    def _known_by(self, key: str | None, *content: object) -> str | None:
        """Return a question's key: the caller's, or one by its content, or ``None`` for a new question.

        Parameters
        ----------
        key : str or None
            The caller's.
        *content
            All that the question is a function of.
        """
        if key is not None and not isinstance(key, SpareKey):
            return key
        try:
            digest = content_digest(*content)
        except Unrecognised as reason:
            self._say_unrecognised(reason)
            return key
        return self._made(digest)

    def _made(self, digest: str) -> ContentKey:
        """Return the key of a content, which only this guard can make."""
        return ContentKey(MADE + hmac.new(self._secret, digest.encode(), "sha256").hexdigest())

    def _score_key(
        self, key: str | None, kind: str, models: Sequence[Any], score: Metric | Statistic, *rest: object
    ) -> str | None:
        """Return the key of a question about what fitted estimators say.

        Parameters
        ----------
        key : str or None
            The caller's.
        kind : str
            What is asked.
        models : sequence of estimators
            Fitted, or digests of such, see `_digest`.
        score : Metric or Statistic
            By what they are judged.
        *rest
            All else that the question is a function of.
        """
        if key is not None and not isinstance(key, SpareKey):
            return key
        digests = [model if isinstance(model, Digest) else self._digest(model, score) for model in models]
        return key if None in digests else self._known_by(key, kind, digests, score, *rest)

    def _digest(self, model: Any, score: Metric | Statistic) -> Digest | None:
        """Return the digest of a fitted estimator and of what it says; ``None`` where that can't be told."""
        if getattr(model, "only_holdout", False):
            return None  # it stands for values
        said = outputs(model, score.response_of(model), self.train)
        if said is None:
            return None
        try:
            return Digest(content_digest(model, said))  # after a prediction, for which it may have made something
        except Unrecognised as reason:
            self._say_unrecognised(reason)
            return None

    def _say_unrecognised(self, reason: Unrecognised) -> None:
        """Say once that a question cannot be known again."""
        if not self._unrecognised:
            self._unrecognised = True
            warnings.warn(
                f"a question cannot be known by its content: {reason}. Asked again it is a new question, which costs "
                "what a new question costs, unless it comes with a key=",
                UserWarning,
                stacklevel=4,
            )

    @cached_property
    def _secret(self) -> bytes:
        found = self._ledger.document(self._id, _SECRET)
        while found is None:
            with contextlib.suppress(LedgerMismatch):  # another process may have been faster
                self._ledger.put_document(self._id, _SECRET, secrets.token_hex(32))
            found = self._ledger.document(self._id, _SECRET)
        return bytes.fromhex(found)


def outputs(estimator: Any, response: str, train: Part) -> Any:
    """Return what a fitted estimator says of the first training records, in single precision.

    Sums of threads come in any order, so that the last digits differ from call to call. Whatever else differs makes
    another question.

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
        with silence():
            return rounded(getattr(estimator, response)(handed_out((first,))[0]))
    except Exception:
        return None


def rounded(values: Any) -> Any:
    """Return values in single precision, where they are more precise."""
    found = np.asarray(values)
    return found.astype(np.float32) if found.dtype.kind == "f" else found
