"""Guards of examples that are no rows of a table: questions with answers, tasks, documents."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from thresholdout.errors import InputError, InputTypeError
from thresholdout.guard.guard import Thresholdout

__all__ = ["digest_of", "guard_for", "guard_of_examples"]


def guard_of_examples(train: Sequence[Any], holdout: Sequence[Any], **declared: Any) -> Thresholdout:
    """Return a guard of lists of examples, such as questions with answers, tasks or documents.

    A guard (`Thresholdout`) answers queries about a holdout and tracks an error budget. This one is for
    `GuardedCandidates` and the hooks that use it (`DSPyHoldout`, `GEPAHoldout`). It holds digests of the examples
    alone. A ledger recognises the holdout by them, and an example in both parts is refused. The function that evaluates
    candidates computes their scores, in the order of these lists.

    Parameters
    ----------
    train, holdout : sequence
        Public examples of the training part, and examples of the holdout. An example is a text, a number, a dict or
        list of them as JSON represents them, or an object with such fields, such as an example of DSPy.
    **declared
        Further arguments of `Thresholdout`, such as ``groups=``, ``ledger=`` or ``sampling="iid"``.

    Returns
    -------
    Thresholdout
        Guard whose records are the examples.

    Raises
    ------
    InputTypeError
        If JSON cannot represent an example, or if a part is not a list.
    OverlapError
        If an example is in both parts.

    Examples
    --------
    >>> train = [{"question": f"{k} + 1", "answer": k + 1} for k in range(300)]
    >>> holdout = [{"question": f"{k} + 2", "answer": k + 2} for k in range(300)]
    >>> guard_of_examples(train, holdout).n
    300
    >>> guard_of_examples(train, train[:10])
    Traceback (most recent call last):
    thresholdout.errors.OverlapError: ...
    """
    parts = []
    for argument, examples in (("holdout", holdout), ("train", train)):
        if isinstance(examples, str | Mapping) or not hasattr(examples, "__len__"):
            raise InputTypeError(argument, f"a {type(examples).__name__}", "a list of examples")
        rows = [np.frombuffer(digest_of(example, argument), dtype="<i8") for example in examples]
        parts.append((np.array(rows, dtype=np.int64).reshape(-1, 4), np.zeros(len(rows), dtype=np.int64)))
    return Thresholdout(parts[0], train=parts[1], **declared)


def guard_for(
    guard: Thresholdout | None, train: Sequence[Any], holdout: Sequence[Any], declared: Mapping[str, Any]
) -> Thresholdout:
    """Return the given guard if its sizes are those of the examples, or a new guard of the examples."""
    if guard is None:
        return guard_of_examples(train, holdout, **declared)
    if declared:
        advice = "An existing guard has its own declarations."
        raise InputError(
            "guard", f"a guard beside {', '.join(declared)}", f"None beside {next(iter(declared))}=", advice
        )
    sizes = len(guard._open[1]), guard.n
    if sizes != (len(train), len(holdout)):
        seen = f"a guard of {sizes[0]} open records and {sizes[1]} of the holdout"
        expected = f"a guard of {len(train)} and {len(holdout)} records, in the order of the examples"
        raise InputError("guard", seen, expected)
    return guard


def digest_of(example: Any, argument: str) -> bytes:
    """Return the 32 bytes that identify an example; `argument` is its name in messages."""
    try:
        text = json.dumps(example, sort_keys=True, default=_fields)
    except (TypeError, ValueError, RecursionError):
        expected = "a list of texts, numbers, dicts and lists of them, or objects with such fields"
        raise InputTypeError(argument, f"a {type(example).__name__} that JSON cannot write", expected) from None
    return hashlib.sha256(text.encode()).digest()


def _fields(thing: Any) -> dict[str, Any]:
    """Return the fields of an object of a type that JSON does not write."""
    for method in ("toDict", "model_dump", "_asdict"):
        if callable(getattr(thing, method, None)):
            return dict(getattr(thing, method)())
    return dict(vars(thing))
