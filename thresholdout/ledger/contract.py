"""The contract that every ledger keeps."""

from __future__ import annotations

import json
import math
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import NoReturn, Self, TypeAlias

from thresholdout.errors import InputError, InputTypeError, LedgerError, LedgerMismatch, SharingError
from thresholdout.ledger.entry import Entry

__all__ = [
    "JSON",
    "Compute",
    "Ledger",
    "check_creation",
    "check_question",
    "check_repeat",
    "check_texts",
    "fresh_key",
    "parameters_text",
]

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"

Compute: TypeAlias = Callable[[str], tuple[str, Entry]]
"""From a guard's state to its next state and the entry that led there."""


class Ledger(ABC):
    """The store of guards: their parameters, their state and every answer they gave.

    A guard's budget is only worth something if it can't be spent twice. A ledger keeps these promises, and
    ``tests/thresholdout/ledger/contract.py`` checks them for every kind of ledger:

    *One at a time.* Questions to one guard happen one after another, whatever the number of threads (and,
    for a ledger in a file, of processes): each starts from the state that the one before it left.

    *All or nothing.* A question's new state and its entry are stored together, or neither is. Whatever goes
    wrong before that, in the mechanism or in the store, leaves the ledger as it was, and still usable.

    *Stored first.* When `ask` returns, both are stored as durably as this kind of ledger can. An answer that
    left is always in the history; the converse may fail when the process dies before the answer is read.

    *Asked once.* A key names one question. Asking with a known key returns the stored entry, draws no noise
    and charges nothing; this is how an answer is fetched that got lost on its way.

    *Nothing changes.* Parameters, documents and entries never change once stored; only the state does. The
    entries of a guard are numbered 1, 2, 3 and so on.

    *Nothing tells.* The state and the documents are secret. They come out of `state` and `document` and
    nowhere else: no message, log or ``repr`` shows them.

    *One place.* A ledger can't be copied or pickled, since both copies would spend the same budget.

    A ledger takes a state and a document as opaque text, and compares them with nothing. Text is any string
    that UTF-8 can encode; numbers are finite, and come back exactly (though -0.0 may come back as 0.0).

    Attributes
    ----------
    location : str
        Where the guards are kept, for messages.
    """

    location: str

    @abstractmethod
    def create(
        self,
        guard: str,
        parameters: Mapping[str, JSON],
        state: str,
        documents: Mapping[str, str] | None = None,
    ) -> None:
        """Store a new guard, unless it is there already.

        Parameters
        ----------
        guard : str
            The guard's identity: the fingerprint of its data.
        parameters : mapping of str to JSON values
            What the guard was made with. Not secret.
        state : str
            The state before the first question. Secret.
        documents : mapping of str to str, optional
            Texts to keep with the guard, stored together with it. Secret.

        Raises
        ------
        LedgerMismatch
            The guard is there with other parameters.
        LedgerUnusable
            The store can't be written; nothing was stored.

        Notes
        -----
        For a guard that is there with the same parameters this does nothing: its state and its documents stay
        what they are, since the first state would be a fresh budget.
        """

    @abstractmethod
    def ask(self, guard: str, key: str | None, train: float, name: str, compute: Compute) -> tuple[Entry, bool]:
        """Answer a question once, and store the answer before it leaves.

        Parameters
        ----------
        guard : str
            The guard's identity.
        key : str or None
            The question's identity; None makes a new one.
        train : float
            Mean on the training part; must be the same, to nine digits, when a key is repeated.
        name : str
            What is asked, for the history.
        compute : callable
            Maps the present state to the next state and the entry to store, whose ``query`` is one more
            than that of the guard's last entry. Called once, or not at all for a repeated key. Its ``key``,
            ``train`` and ``name`` are replaced by the ones given here. It must not use the ledger.

        Returns
        -------
        entry : Entry
            The entry as stored.
        repeated : bool
            Whether it was stored before, and this question charged nothing.

        Raises
        ------
        InputError
            The key was used with another train value, or a value can't be stored.
        LedgerMismatch
            The ledger has no such guard.
        LedgerUnusable
            The store can't be read or written; nothing was answered.
        Exception
            Whatever `compute` raises; nothing is stored then.
        """

    @abstractmethod
    def state(self, guard: str) -> str:
        """Return a guard's present state. Secret: it tells where the noisy threshold is."""

    @abstractmethod
    def parameters(self, guard: str) -> dict[str, JSON]:
        """Return what a guard was made with."""

    @abstractmethod
    def entries(self, guard: str) -> list[Entry]:
        """Return a guard's history, in the order of its questions."""

    @abstractmethod
    def guards(self) -> list[str]:
        """Return the guards' identities, in the order of their creation."""

    @abstractmethod
    def put_document(self, guard: str, name: str, text: str) -> None:
        """Keep a text with a guard.

        Parameters
        ----------
        guard : str
            The guard's identity.
        name : str
            The document's name, such as ``"labels"``.
        text : str
            The text. Secret.

        Raises
        ------
        LedgerMismatch
            There is no such guard, or it has a document of this name with another text.
        LedgerUnusable
            The store can't be written; nothing was stored.
        """

    @abstractmethod
    def document(self, guard: str, name: str) -> str | None:
        """Return a text kept with a guard, or None when there is none of this name. Secret."""

    @abstractmethod
    def close(self) -> None:
        """Release what the ledger holds; every later use but another `close` raises `LedgerUnusable`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def __reduce__(self) -> NoReturn:
        raise SharingError(
            f"ledger {self.location}: a ledger can't be copied or pickled, both copies would spend the same "
            "budget; open its file again instead"
        )

    def _unknown(self, guard: str) -> LedgerMismatch:
        """Error for a guard that is not here."""
        return LedgerMismatch(
            self.location, f"holds no guard {guard[:12]!r}...; it was made for other data, or not created yet"
        )

    def _check_parameters(self, guard: str, stored: Mapping[str, JSON], given: Mapping[str, JSON]) -> None:
        """Refuse parameters that differ from the stored ones."""
        names = [
            name
            for name in dict.fromkeys([*stored, *given])
            if name not in stored or name not in given or stored[name] != given[name]
        ]
        if names:
            seen = ", ".join(f"{name} is {stored.get(name)!r}, not {given.get(name)!r}" for name in names)
            raise LedgerMismatch(
                self.location,
                f"holds guard {guard[:12]!r}... with other parameters: {seen}; "
                "use these, or new data with a ledger of its own",
            )

    def _check_document(self, name: str, stored: str, given: str) -> None:
        """Refuse a document that would change the stored one."""
        if stored != given:
            raise LedgerMismatch(self.location, f"has a document {name!r} with another text; documents never change")

    def _settled(self, entry: Entry, number: int, key: str, train: float, name: str) -> Entry:
        """Return a new entry as it is stored, after checking that it can be."""
        if entry.query != number:
            raise LedgerError(
                self.location, f"the mechanism numbered question {number} as {entry.query}; nothing was stored"
            )
        if entry.key != key or entry.train != train or entry.name != name:
            entry = Entry(
                query=entry.query,
                key=key,
                name=name,
                train=train,
                value=entry.value,
                half_width=entry.half_width,
                source=entry.source,
                remaining=entry.remaining,
                lower=entry.lower,
                upper=entry.upper,
            )
        for value in (entry.train, entry.value, entry.half_width, entry.lower, entry.upper):
            if not math.isfinite(value):
                raise InputError("entry", f"a value is {value}", "finite numbers")
        return entry

    def _reentered(self) -> LedgerError:
        """Error for a mechanism that uses the ledger while it is asked."""
        return LedgerError(self.location, "was used by the mechanism that it asks; nothing was stored")


def fresh_key() -> str:
    """Return a key that no other question has: 128 random bits as 32 hexadecimal digits.

    Examples
    --------
    >>> len(fresh_key())
    32
    """
    return secrets.token_hex(16)


def check_texts(**texts: str) -> None:
    """Refuse what is not text that every ledger can store, without repeating it.

    Parameters
    ----------
    **texts : str
        Arguments by name.

    Raises
    ------
    InputTypeError
        One is not a string.
    InputError
        One can't be encoded as UTF-8.
    """
    for argument, text in texts.items():
        if not isinstance(text, str):
            raise InputTypeError(argument, f"a {type(text).__name__}", "a string")
        if not text.isascii():
            _check_encodable(argument, text)


def check_question(key: str | None, train: float, name: str) -> None:
    """Refuse a question that no ledger could store; see `Ledger.ask`."""
    if key is not None:
        check_texts(key=key)
        if not key:
            raise InputError("key", "an empty string", "a text of your own, or None for a new key")
    check_texts(name=name)
    if not isinstance(train, float | int):
        raise InputTypeError("train", f"a {type(train).__name__}", "a number")
    if not math.isfinite(train):
        raise InputError("train", train, "a finite number")


def check_repeat(stored: Entry, train: float) -> None:
    """Refuse a key that is used for another question.

    The order of a sum may differ between runs, so training values are the same when they agree to nine digits.
    """
    if not math.isclose(stored.train, train, rel_tol=1e-9, abs_tol=1e-9):
        raise InputError(
            "key",
            f"{stored.key!r} was asked with train value {stored.train!r}, now {train!r}",
            "a key names one question; use another key, or None",
        )


def parameters_text(parameters: Mapping[str, JSON]) -> str:
    """Return parameters as JSON text.

    Parameters
    ----------
    parameters : mapping of str to JSON values
        What a guard was made with.

    Returns
    -------
    str
        The text; reading it gives equal parameters.

    Raises
    ------
    InputTypeError
        The parameters can't be written as JSON.

    Examples
    --------
    >>> parameters_text({"threshold": 0.04, "budget": None})
    '{"threshold": 0.04, "budget": null}'
    """
    try:
        text = json.dumps(dict(parameters), allow_nan=False)
        same = bool(json.loads(text) == dict(parameters))
    except (TypeError, ValueError) as error:
        raise InputTypeError("parameters", str(error), "values that JSON can hold") from None
    if not same:
        raise InputTypeError("parameters", "they change when written as JSON", "names that are strings, and lists")
    return text


def check_creation(guard: str, state: str, documents: Iterable[tuple[str, str]]) -> None:
    """Refuse a guard that no ledger could store; see `Ledger.create`."""
    check_texts(guard=guard, state=state)
    if not guard:
        raise InputError("guard", "an empty string", "a fingerprint")
    for name, text in documents:
        check_texts(name=name, document=text)


def _check_encodable(argument: str, text: str) -> None:
    """Refuse text with lone surrogates; the error that Python raises would carry the text itself."""
    try:
        text.encode()
    except UnicodeEncodeError:
        encodable = False
    else:
        encodable = True
    if not encodable:
        raise InputError(argument, "text with lone surrogates", "text that UTF-8 can encode")
