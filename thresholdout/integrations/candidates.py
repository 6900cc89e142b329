"""Candidates of any kind that a guard keeps or rejects, for all hooks of loops.

Loops propose duplicates, retry errors and score them 0, call from threads and processes, and stop and start again.
They show error texts to a model. So a candidate is identified by its content and judged once, and its verdict is one
of six outcomes with a fixed text. Holdout values are computed only for a planned evaluation and kept in the ledger:
neither a crash nor a judge that draws at random changes the values that were used.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
import warnings
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from thresholdout.data.values import check_bounds, clipped
from thresholdout.errors import (
    BudgetExhausted,
    GuardExhaustedWarning,
    InputError,
    InputTypeError,
    LedgerMismatch,
    outside,
)
from thresholdout.guard.content_keys import content_digest
from thresholdout.guard.sharing.shared_objects import Proxy, check_process, shared
from thresholdout.integrations.verdicts import CandidateVerdict, Outcome, outcome_of
from thresholdout.ledger.entry import check_short_texts
from thresholdout.scoring.metrics import Metric

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from thresholdout.guard.gates import Certify, Gate
    from thresholdout.guard.guard import Thresholdout
    from thresholdout.ledger.entry import Entry

__all__ = ["CandidateVerdict", "Evaluate", "GuardedCandidates", "Part", "unlogged"]

Part: TypeAlias = Literal["train", "holdout"]
Evaluate: TypeAlias = "Callable[[Any, Part], ArrayLike]"
"""``evaluate(candidate, part)``: a value for each record of that part, in the guard's order."""

_LOG: Final = logging.getLogger(__name__)
_HOLDOUT: Final = "/holdout"


@shared
class GuardedCandidates:
    """Keep or reject candidates of any kind by their scores on a holdout.

    Use it in a loop that improves prompts, programs or pipelines. A guard (`Thresholdout`) answers queries about a
    holdout and tracks an error budget. The first candidate becomes the champion. Each later one replaces the champion
    only if the guard certifies that it is better, or, with ``certify="milestones"``, also if the training scores accept
    it. The loop learns one of six outcomes for each candidate and no score of the holdout.

    A candidate is a text, or texts and numbers in dicts and lists as JSON represents them. Its content identifies it. A
    repeated candidate returns its earlier verdict, and nothing is evaluated or charged, even after a crash, from
    another thread, or beside another champion. Threads may share one object. If the object is pickled, other processes
    get a reference, and candidates are judged in the process that made it. With the guard's ledger in a file, a new
    object continues where the last one stopped.

    Parameters
    ----------
    guard : Thresholdout
        Guard of pairs (X, y) with a training part, in this process. `guard_of_examples` makes one from lists of
        examples.
    evaluate : callable, optional
        Function ``evaluate(candidate, part)`` that returns a score for each record of the part, ``"train"`` or
        ``"holdout"``, in the guard's order. It is called for the holdout only in a planned evaluation. Scores of
        independent records or groups may be random, as those of a model that judges are, if they are drawn for each
        record separately. The certificate is then about the mean over records *and* draws, and the draws of a candidate
        are kept. If None, pass the scores to `propose`.
    name : str, default "candidates"
        Name in the history, which distinguishes several loops on one guard. Use another name for another `evaluate`.
    bounds : tuple of float, default (0, 1)
        Range of the scores. Scores outside are clipped to it, and missing ones count as the worst.
    greater_is_better : bool, default True
        Whether larger scores are better. Pass False for losses.
    certify : {"each", "milestones"}, default "each"
        "each" tests every candidate that is better on the training part. "milestones" lets the training scores accept
        candidates at no cost, and from time to time tests the current one against the last certified one.
    delta : float, default 0.0
        By how much the mean score of a candidate has to be better.

    Attributes
    ----------
    guard : Thresholdout
        The guard, as passed.
    name : str
        The name, as passed.
    champion : object or None
        Candidate that the next one is compared with.
    exhausted : bool
        Whether the guard is exhausted.

    Raises
    ------
    InputError
        If the guard cannot have a gate or lives in another process, or if `name` was used with other `bounds`,
        `greater_is_better` or `certify`.

    Notes
    -----
    If `evaluate` raises an error for the training records, the outcome is "failed", which is free, and the error goes
    to the log ``thresholdout.integrations.candidates``. If it raises for the holdout, an answer from the holdout is
    charged, since such a failure may depend on any label. So give single records that fail the worst score, and retry
    network errors. The champion is evaluated there too: if the first candidate cannot be evaluated, all others fail.
    During an evaluation of the holdout nothing of this process is logged, since libraries log scores and examples.
    `evaluate` itself should not print them or write them to files.

    Two objects over one ledger, in two processes, share kept candidates and drawn scores. If both judge at the same
    moment, each compares with the champion that it read. To avoid this, send one object to all processes.

    Examples
    --------
    Three "prompts"; the judge prefers longer ones:

    >>> import numpy as np
    >>> from thresholdout.integrations import guard_of_examples
    >>> examples = {"train": list(range(1000)), "holdout": list(range(1000, 3000))}
    >>> guard = guard_of_examples(**examples, sampling="iid")
    >>> def evaluate(prompt, part):
    ...     return [k % 10 < len(prompt) for k in examples[part]]
    >>> candidates = GuardedCandidates(guard, evaluate)
    >>> for prompt in ("Add.", "Add both.", "Add"):
    ...     print(candidates.propose(prompt))
    CandidateVerdict(outcome='first', place=1, number=0, repeated=False)
    CandidateVerdict(outcome='kept', place=2, number=1, repeated=False)
    CandidateVerdict(outcome='rejected', place=0, number=2, repeated=False)
    >>> candidates.propose("Add both.").repeated, candidates.champion
    (True, 'Add both.')
    """

    def __init__(
        self,
        guard: Thresholdout,
        evaluate: Evaluate | None = None,
        *,
        name: str = "candidates",
        bounds: tuple[float, float] = (0.0, 1.0),
        greater_is_better: bool = True,
        certify: Certify = "each",
        delta: float = 0.0,
    ) -> None:
        if isinstance(guard, Proxy):
            advice = "Make this object where the guard is, and send it to other processes."
            raise InputError("guard", "a guard of another process", "one of this process", advice)
        if guard.parameters.approximation:
            raise InputError("guard", "one with normal limits, which certify no candidate", "one with limits='exact'")
        if evaluate is not None and not callable(evaluate):
            raise InputTypeError("evaluate", f"a {type(evaluate).__name__}", "a function evaluate(candidate, part)")
        check_short_texts(name=name)
        if not name or "/" in name:
            raise InputError("name", repr(name), "a text without '/', and not empty")
        self.guard = guard
        self.name = name
        self._evaluate = evaluate
        self._metric = Metric(name, "predict", _as_said, check_bounds(bounds), greater_is_better, False)
        self._certify: Certify = certify
        self._delta = delta
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._warned = False
        self._prefix = f"candidates/{name}/"
        self._gate: Gate | None = None
        n = len(guard._open[-1])
        lowest = np.full(n, self._metric.bounds[0])
        guard.gate(_Values("", None), self._metric, certify=certify, delta=delta, train_values=lowest)
        low, high = self._metric.bounds
        self.hold_to(bounds=[low, high], greater_is_better=greater_is_better, certify=certify)
        self._standing = self._found()

    @property
    def champion(self) -> Any:
        """Candidate that the next one is compared with, the last one that was kept. None before the first one."""
        check_process(self._process, "climb")
        with self._lock:
            standing = self._found()
            return json.loads(self._kept(standing[-1])["candidate"]) if standing else None

    @property
    def exhausted(self) -> bool:
        """Whether the guard is exhausted, so that new candidates are rejected without an evaluation."""
        return self.guard.status.exhausted is not None

    def judged(self, candidate: Any) -> CandidateVerdict | None:
        """Return the earlier verdict of a candidate, or None if it was not judged; nothing is evaluated or charged."""
        check_process(self._process, "climb")
        return self._known(self._digest(_written(candidate)))

    def hold_to(self, **settings: Any) -> None:
        """Fix settings at the first use of this name, and refuse other values later.

        Parameters
        ----------
        **settings
            Names and values of settings, of types that JSON represents.

        Raises
        ------
        InputError
            If a setting differs from its first value. Nothing is spent.
        """
        for setting, value in settings.items():
            before = self._keep(f"settings/{setting}", {"value": value})["value"]
            if before != value:
                seen = f"{self.name!r}, a name in use with {setting}={before!r}"
                raise InputError("name", seen, f"another name for {setting}={value!r}")

    def propose(
        self, candidate: Any, *, train_values: ArrayLike | None = None, holdout_values: ArrayLike | None = None
    ) -> CandidateVerdict:
        """Judge a candidate: keep it as the new champion, or reject it.

        Parameters
        ----------
        candidate : str, or texts and numbers in dicts and lists
            The candidate. Its content identifies it.
        train_values : array-like, optional
            Score of the candidate for each training record, if it was evaluated already. If None, `evaluate` computes
            them.
        holdout_values : array-like, optional
            Score of the candidate for each record of the holdout, if it was evaluated already, as in a process without
            labels. If None, `evaluate` computes them when needed. They are secret.

        Returns
        -------
        CandidateVerdict
            Verdict with its ``outcome``. It is true if the candidate is kept. A candidate that cannot be evaluated has
            the outcome "failed". If the guard is exhausted, the outcome is "exhausted", with one warning.

        Raises
        ------
        InputError
            If the candidate is not of a type that JSON represents, or scores are missing or of the wrong shape. Nothing
            is spent.
        LedgerError
            If the ledger cannot be read or written.
        """
        check_process(self._process, "climb")
        text = _written(candidate)
        digest = self._digest(text)
        told = self._known(digest)
        if told is not None:
            return told
        if self.exhausted:
            return self._exhausted()
        holdout = None if holdout_values is None else self._checked(holdout_values, self.guard.n, "holdout_values")
        try:
            train = self._on_train(candidate, digest, train_values)
        except InputError:
            raise
        except Exception:
            _LOG.warning("a candidate could not be evaluated on the training records", exc_info=True)
            return CandidateVerdict("failed")
        with self._lock:
            told = self._known(digest)
            return told if told is not None else self._judged(candidate, text, digest, train, holdout)

    def _judged(
        self, candidate: Any, text: str, digest: str, train: NDArray[np.float64], given: NDArray[np.float64] | None
    ) -> CandidateVerdict:
        """Judge a new candidate."""
        train = _unpacked(self._keep(digest, {"candidate": text, "train": _packed(train)})["train"])
        if given is not None:
            self._keep(digest + _HOLDOUT, {"values": _packed(given)})
        self._keep("first", {"digest": digest})
        standing = self._found()
        if standing[0] == digest:
            self._standing = standing
            return CandidateVerdict("first", 1)
        if self._gate is None or standing != self._standing:  # another process may have kept one meanwhile
            self._gate, self._standing = self._opened(standing), standing
        try:
            self._gate.propose(self._values(digest), train_values=train, key=self._prefix + digest, name=digest[:12])
        except BudgetExhausted:
            return self._exhausted()
        except BaseException as error:
            self._gate = None  # the ledger has every decision; a gate made from it has no half-done step
            if not isinstance(error, InputError) or self._entry(digest) is None:
                raise
        told = self._known(digest)
        assert told is not None
        if told:
            self._standing = [*standing, digest]
        return CandidateVerdict(told.outcome, told.place, told.number)

    def _known(self, digest: str) -> CandidateVerdict | None:
        """Return the verdict of a candidate that was judged before."""
        if self._standing and digest == self._standing[0]:
            return CandidateVerdict("first", 1, repeated=True)
        entry = self._entry(digest)
        if entry is None:
            return None
        outcome: Outcome = outcome_of(entry.source)
        place = 1 + self._found().index(digest) if _keeps(outcome) else 0
        return CandidateVerdict(outcome, place, entry.query, repeated=True)

    def _exhausted(self) -> CandidateVerdict:
        if not self._warned:
            self._warned = True
            warnings.warn(
                "The guard is exhausted. Further candidates are rejected with the score 0 and not evaluated. "
                "For more answers make a guard of new records.",
                GuardExhaustedWarning,
                stacklevel=outside(),
            )
        return CandidateVerdict("exhausted")

    def _on_train(self, candidate: Any, digest: str, given: ArrayLike | None) -> NDArray[np.float64]:
        """Return a candidate's first values on the training records."""
        kept = self._document(digest)
        if kept is not None:
            return _unpacked(kept["train"])
        if given is None:
            if self._evaluate is None:
                advice = "Or make this object with evaluate=."
                raise InputError("train_values", "nothing", "a value for each training record", advice)
            given = self._evaluate(candidate, "train")
        return self._checked(given, len(self.guard._open[1]), "train_values")

    def _values(self, digest: str) -> _Values:
        """Return a candidate as an estimator for the gate."""

        def on_holdout() -> NDArray[np.float64]:
            kept = self._document(digest + _HOLDOUT)
            if kept is not None:
                return _unpacked(kept["values"])
            if self._evaluate is None:
                advice = "Or make this object with evaluate=."
                raise InputError("holdout_values", "nothing", "a value for each holdout record", advice)
            candidate = json.loads(self._kept(digest)["candidate"])
            with unlogged:
                values = self._evaluate(candidate, "holdout")
            found = self._checked(values, self.guard.n, "evaluate")
            return _unpacked(self._keep(digest + _HOLDOUT, {"values": _packed(found)})["values"])

        return _Values(digest, on_holdout)

    def _checked(self, values: ArrayLike, n: int, argument: str) -> NDArray[np.float64]:
        """Return values clipped to the range, with missing ones at the worst end."""
        worst = self._metric.bounds[0 if self._metric.greater_is_better else 1]
        return np.asarray(clipped(values, n, self._metric.bounds, argument, worst), dtype=np.float64)

    def _opened(self, standing: list[str]) -> Gate:
        """Return a gate for the last of these candidates, which continues where the last gate stopped."""
        certified = standing[0]
        for entry in self._entries():
            if outcome_of(entry.source) == "kept":
                certified = entry.key.removeprefix(self._prefix)
        values = _unpacked(self._kept(certified)["train"])
        gate = self.guard.gate(
            self._values(certified), self._metric, certify=self._certify, delta=self._delta, train_values=values
        )
        if certified != standing[-1]:
            gate.resume(self._values(standing[-1]), _unpacked(self._kept(standing[-1])["train"]))
        return gate

    def _found(self) -> list[str]:
        """Return the digests of the candidates that were kept earlier; the last one is the champion."""
        first = self._document("first")
        if first is None:
            return []
        kept = [entry.key for entry in self._entries() if _keeps(outcome_of(entry.source))]
        return [str(first["digest"]), *(key.removeprefix(self._prefix) for key in kept)]

    def _entries(self) -> list[Entry]:
        entries = self.guard._ledger.entries(self.guard._id)
        return [entry for entry in entries if entry.key.startswith(self._prefix)]

    def _entry(self, digest: str) -> Entry | None:
        return self.guard._ledger.find(self.guard._id, self._prefix + digest)

    def _digest(self, text: str) -> str:
        """Return a digest that identifies a candidate, and reveals nothing to anybody without the candidate."""
        return self.guard._made(content_digest(self.name, text)).split(":")[-1]

    def _kept(self, name: str) -> dict[str, Any]:
        found = self._document(name)
        assert found is not None
        return found

    def _document(self, name: str) -> dict[str, Any] | None:
        text = self.guard._ledger.document(self.guard._id, self._prefix + name)
        return None if text is None else dict(json.loads(text))

    def _keep(self, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """Keep content under a name if nothing is kept there; return the kept content."""
        if self._document(name) is None:
            with suppress(LedgerMismatch):  # another process was faster
                self.guard._ledger.put_document(self.guard._id, self._prefix + name, json.dumps(content))
        return self._kept(name)

    def __repr__(self) -> str:
        kept = max(0, len(self._found()) - 1)
        left = self.guard.status.error_budget_left
        return f"<GuardedCandidates: {self.name}; {kept} kept after the first; error budget left {left:.3g}>"


class _RemoteCandidates(
    Proxy,
    of=GuardedCandidates,
    serves="__repr__ exhausted guard champion judged name propose",
):
    """A reference in another process, which sends candidates to the one that made the object."""


class _Unlogged:
    """Suppress all logs of this process during an evaluation of the holdout: libraries log examples and scores."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._going_on = 0
        self._before = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._going_on:
                self._before = logging.root.manager.disable
                logging.disable(logging.CRITICAL)
            self._going_on += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._going_on -= 1
            if not self._going_on:
                logging.disable(self._before)


unlogged: Final = _Unlogged()


class _Values:
    """A candidate as an estimator whose predictions are its values on the holdout."""

    only_holdout = True

    def __init__(self, digest: str, on_holdout: Callable[[], NDArray[np.float64]] | None) -> None:
        self._digest = digest
        self._on_holdout = on_holdout

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the values on the holdout, the only predictions that a gate needs."""
        assert self._on_holdout is not None
        return self._on_holdout()


def _keeps(outcome: Outcome) -> bool:
    return bool(CandidateVerdict(outcome))


def _as_said(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
    return output


def _written(candidate: Any) -> str:
    """Return the text that identifies a candidate: JSON with sorted keys."""
    try:
        text = json.dumps(candidate, sort_keys=True)
        same = json.loads(text) == candidate
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        expected = "a text, or texts and numbers in dicts (with texts as keys) and lists"
        raise InputTypeError("candidate", f"a {type(candidate).__name__} that JSON does not restore", expected)
    return text


def _packed(values: NDArray[np.float64]) -> str:
    return base64.b64encode(zlib.compress(values.astype("<f8").tobytes(), 1)).decode()


def _unpacked(text: str) -> NDArray[np.float64]:
    """Return the values of a text that `_packed` wrote."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f8").astype(np.float64)
