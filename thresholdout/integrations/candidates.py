"""Candidates of any kind, kept or rejected by a guard: what every hook of a loop stands on.

Loops differ in what they call a candidate (texts of prompts, a program, parameters) and are alike in their habits:
they propose duplicates, retry what raises and then score it 0, call from threads and processes, die and start again,
and hand the texts of errors to a model. So a candidate is known by its content and judged once. What comes out is one
of six outcomes with a fixed text. What it says about the holdout's records is evaluated only when the gate looks, and
is kept in the ledger, so that neither a crash nor a judge that draws at random changes what was seen.
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
    """Keeps or rejects candidates of any kind; the first one is the champion that the next is compared with.

    A candidate is a text, or what JSON can write (texts and numbers in dicts and lists), and is known by that content:
    proposed again it has the verdict that it had, and nothing is evaluated or charged, also after a crash, from
    another thread, or beside another champion. Threads may use one object. Pickled, it is sent to other processes as
    a reference, and candidates are judged where the object was made. With the guard's ledger in a file, one that is
    made again goes on where the last one was.

    Parameters
    ----------
    guard : Thresholdout
        Of pairs (X, y), with its training part; in this process. `guard_of_examples` makes one of lists of examples.
    evaluate : callable, optional
        ``evaluate(candidate, part)`` returns a value for each record of the part, ``"train"`` or ``"holdout"``, in the
        guard's order. It is called for the holdout only when a look at it is worth its price. Of independent
        records or groups values may be random, as those of a model that judges are, drawn for each record by itself:
        what is certified is then about the mean over records *and* draws, and what was drawn for a candidate is kept.
        Without it, `propose` takes the values.
    name : str, default="candidates"
        What the history calls the climb, and what tells it from others of the same guard. Take another one for another
        `evaluate`.
    bounds : tuple of float, default=(0, 1)
        The range of the values; others are clipped to it, and missing ones count as the worst.
    greater_is_better : bool, default=True
        Whether values are scores, and no losses.
    certify, delta
        As in `Thresholdout.gate`.

    Attributes
    ----------
    guard : Thresholdout
        As given.
    name : str
        As given.

    Raises
    ------
    InputError
        When the guard cannot have a gate, or lives in another process; or when `name` was used with other `bounds`,
        `greater_is_better` or `certify`.

    Notes
    -----
    Two objects over one ledger, in two processes, go on from what either has kept, and from the values that either
    has drawn. Where both judge at the very same
    moment, each compares with the champion that it saw: let one object judge, and send it to the others.

    An `evaluate` that raises for the training records makes the outcome "failed", for nothing, and the error goes to
    the log (``thresholdout.integrations.candidates``). One that raises for the holdout is charged as an answer from the
    holdout, since the failure of a whole evaluation may depend on any label; let it score single records that fail with
    the worst value, and retry what fails for reasons of the network itself. The champion is evaluated there as well: a
    first candidate that cannot be makes every other one fail. While it runs on the holdout, nothing of this process is
    logged, since libraries log scores, and examples that fail; what `evaluate` prints, or writes to files, it should
    not.

    Examples
    --------
    Three "prompts", of which a judge likes the longer ones more:

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
            expected = "the guard itself: make this object where the guard is, and send it to other processes"
            raise InputError("guard", "a guard of another process", expected)
        if guard.parameters.approximation:
            raise InputError("guard", "one with normal limits, which certify no candidate", "one with limits='exact'")
        if evaluate is not None and not callable(evaluate):
            raise InputTypeError("evaluate", f"a {type(evaluate).__name__}", "a function evaluate(candidate, part)")
        check_short_texts(name=name)
        if not name or "/" in name:
            raise InputError("name", repr(name), "a name without '/'")
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
        """The candidate that the next one is compared with; ``None`` before the first one."""
        check_process(self._process, "climb")
        with self._lock:
            standing = self._found()
            return json.loads(self._kept(standing[-1])["candidate"]) if standing else None

    @property
    def exhausted(self) -> bool:
        """Whether the guard answers no more, so that every further candidate is rejected without being evaluated."""
        return self.guard.status.exhausted is not None

    def judged(self, candidate: Any) -> CandidateVerdict | None:
        """Return the verdict that a candidate has, or ``None`` for one that is new; nothing is evaluated."""
        check_process(self._process, "climb")
        return self._known(self._digest(_written(candidate)))

    def hold_to(self, **settings: Any) -> None:
        """Refuse what is not as it was when this name was used first: earlier verdicts would be about something else.

        Parameters
        ----------
        **settings
            What JSON can write.

        Raises
        ------
        InputError
            When one is another than before; nothing is spent.
        """
        for setting, value in settings.items():
            before = self._keep(f"settings/{setting}", {"value": value})["value"]
            if before != value:
                seen = f"{self.name!r}, by which candidates are judged with {setting}={before!r}"
                raise InputError("name", seen, f"another name for {setting}={value!r}")

    def propose(
        self, candidate: Any, *, train_values: ArrayLike | None = None, holdout_values: ArrayLike | None = None
    ) -> CandidateVerdict:
        """Keep or reject a candidate.

        Parameters
        ----------
        candidate : str, or what JSON can write
            Known by its content.
        train_values : array-like, optional
            Its value for each training record, where it was evaluated already.
        holdout_values : array-like, optional
            Its value for each record of the holdout, where it was evaluated already: in a process that keeps no labels,
            say, or with an evaluator that cannot be called from here. Secret.

        Returns
        -------
        CandidateVerdict
            Also where the candidate cannot be evaluated, and where the guard answers no more, which one warning says.

        Raises
        ------
        InputError
            When the candidate is no text and nothing that JSON can write, or values have the wrong shape; nothing is
            spent.
        LedgerError
            When the guard cannot be asked.
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
        """Judge a candidate that is new."""
        train = _unpacked(self._keep(digest, {"candidate": text, "train": _packed(train)})["train"])
        if given is not None:
            self._keep(digest + _HOLDOUT, {"values": _packed(given)})
        self._keep("first", {"digest": digest})
        standing = self._found()
        if standing[0] == digest:
            self._standing = standing
            return CandidateVerdict("first", 1)
        if self._gate is None or standing != self._standing:  # somebody else may have kept one meanwhile
            self._gate, self._standing = self._opened(standing), standing
        try:
            self._gate.propose(self._values(digest), train_values=train, key=self._prefix + digest, name=digest[:12])
        except BudgetExhausted:
            return self._exhausted()
        except BaseException as error:
            self._gate = None  # what was decided, if anything was, is in the ledger
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
                "the guard answers no more: further candidates are rejected with the score 0, without being evaluated; "
                "for more answers make a guard of new records",
                GuardExhaustedWarning,
                stacklevel=outside(),
            )
        return CandidateVerdict("exhausted")

    def _on_train(self, candidate: Any, digest: str, given: ArrayLike | None) -> NDArray[np.float64]:
        """Return a candidate's values on the training records: those that it had first."""
        kept = self._document(digest)
        if kept is not None:
            return _unpacked(kept["train"])
        if given is None:
            if self._evaluate is None:
                raise InputError("train_values", "nothing", "values, where there is no evaluate=")
            given = self._evaluate(candidate, "train")
        return self._checked(given, len(self.guard._open[1]), "train_values")

    def _values(self, digest: str) -> _Values:
        """Return a candidate as a gate sees it."""

        def on_holdout() -> NDArray[np.float64]:
            kept = self._document(digest + _HOLDOUT)
            if kept is not None:
                return _unpacked(kept["values"])
            if self._evaluate is None:
                raise InputError("holdout_values", "nothing", "values, where there is no evaluate=")
            candidate = json.loads(self._kept(digest)["candidate"])
            with unlogged:
                values = self._evaluate(candidate, "holdout")
            found = self._checked(values, self.guard.n, "evaluate")
            return _unpacked(self._keep(digest + _HOLDOUT, {"values": _packed(found)})["values"])

        return _Values(digest, on_holdout)

    def _checked(self, values: ArrayLike, n: int, argument: str) -> NDArray[np.float64]:
        """Return values in the range; each is clipped to it, and missing ones are the worst."""
        worst = self._metric.bounds[0 if self._metric.greater_is_better else 1]
        return np.asarray(clipped(values, n, self._metric.bounds, argument, worst), dtype=np.float64)

    def _opened(self, standing: list[str]) -> Gate:
        """Return a gate for the last of these candidates, which goes on where the last one was."""
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
        """Return the candidates that were kept earlier, by their digests; the last one is the champion."""
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
        """Return what a candidate is known by; it says nothing to who does not have the candidate."""
        return self.guard._made(content_digest(self.name, text)).split(":")[-1]

    def _kept(self, name: str) -> dict[str, Any]:
        found = self._document(name)
        assert found is not None
        return found

    def _document(self, name: str) -> dict[str, Any] | None:
        text = self.guard._ledger.document(self.guard._id, self._prefix + name)
        return None if text is None else dict(json.loads(text))

    def _keep(self, name: str, content: dict[str, Any]) -> dict[str, Any]:
        """Keep what nobody has kept by this name; return what is kept."""
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
    """What a climb is in every process but its own: it sends the candidates there."""


class _Unlogged:
    """Nothing goes to a log of this process meanwhile: libraries log examples that fail, and scores."""

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
        """Return the values on the holdout, which is all that a gate asks for."""
        assert self._on_holdout is not None
        return self._on_holdout()


def _keeps(outcome: Outcome) -> bool:
    return bool(CandidateVerdict(outcome))


def _as_said(y: NDArray[Any], output: NDArray[Any], classes: NDArray[Any] | None) -> NDArray[Any]:
    return output


def _written(candidate: Any) -> str:
    """Return a candidate as the text that it is known by.

    Examples
    --------
    >>> _written({"b": 1, "a": "text"})
    '{"a": "text", "b": 1}'
    >>> _written({1: "one"})
    Traceback (most recent call last):
    thresholdout.errors.InputTypeError: candidate must be a text, or texts and numbers in dicts (with texts as ...
    """
    try:
        text = json.dumps(candidate, sort_keys=True)
        same = json.loads(text) == candidate
    except (TypeError, ValueError, RecursionError):
        same = False
    if not same:
        expected = "a text, or texts and numbers in dicts (with texts as keys) and lists"
        raise InputTypeError("candidate", f"a {type(candidate).__name__} that JSON does not give back", expected)
    return text


def _packed(values: NDArray[np.float64]) -> str:
    return base64.b64encode(zlib.compress(values.astype("<f8").tobytes(), 1)).decode()


def _unpacked(text: str) -> NDArray[np.float64]:
    """Return values that were packed.

    Examples
    --------
    >>> _unpacked(_packed(np.array([0.1, 1.0]))).tolist()
    [0.1, 1.0]
    """
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<f8").astype(np.float64)
