"""64-bit words for the entries of a table: numbers, times and texts."""

from __future__ import annotations

import hashlib
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from thresholdout.errors import ThresholdoutError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KINDS", "Precision", "entry_sums", "mixed", "rounded", "squared_sums"]

Precision: TypeAlias = "type[np.float64] | type[np.float32] | type[np.float16]"
"""Precision to which numbers are rounded before they are hashed."""

KINDS: Final = 5
"""Constants of a column: one for numbers, two for times, two for texts."""

_SIP_KEYS: Final = ("thresholdout txt", "of other records")
_EXPECTED: Final = [15843686470144626680, 12651451966514728376]
"""Words of the text "abcdefgh", which detect another hash function in pandas."""
_PLAIN: Final = frozenset({str, bytes, bool, int, float, np.float64, np.int64, type(None)})
"""Types whose equal objects have equal words here."""
_MISSING: Final = ("NAType", "NaTType")


def mixed(x: NDArray[np.uint64], spare: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers one to one, in place: the finaliser of splitmix64."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        np.right_shift(x, np.uint64(shift), out=spare)
        x ^= spare
        x *= np.uint64(factor)
    np.right_shift(x, np.uint64(31), out=spare)
    x ^= spare
    return x


def rounded(values: NDArray[np.float64], precision: Precision) -> NDArray[np.float64]:
    """Round to a precision; numbers beyond its range become infinite."""
    if precision is np.float64:
        return values
    with np.errstate(over="ignore"):
        return values.astype(precision).astype(np.float64)


def squared_sums(
    values: NDArray[np.float64], keys: NDArray[np.uint64], spare: NDArray[np.float64]
) -> NDArray[np.uint64]:
    """Return the sums of the words of numbers, and of their squares, along the first axis."""
    values += 0.0  # turns -0.0 into 0.0
    with np.errstate(all="ignore"):
        if math.isnan(values.sum()):
            values[np.isnan(values)] = np.nan
    return _sums(values.view(np.uint64), keys, spare.view(np.uint64))


def _sums(words: NDArray[np.uint64], keys: NDArray[np.uint64], spare: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return sums of scrambled words and of their squares; words and spare are overwritten."""
    words += keys
    mixed(words, spare)
    if len(words) == 1:
        return np.stack([words[0], np.multiply(words[0], words[0], out=spare[0])])
    found = np.empty((2, words.shape[1]), dtype=np.uint64)
    words.sum(axis=0, out=found[0])
    words *= words
    words.sum(axis=0, out=found[1])
    return found


def entry_sums(column: NDArray[Any], keys: NDArray[np.uint64], precision: Precision) -> NDArray[np.uint64]:
    """Return the words and their squares of a column that is not numeric; numbers in it are rounded."""
    if column.dtype.kind in "mM":
        return _time_sums(column, keys)
    codes, items = _different(column.astype(object, copy=False))
    if isinstance(items, np.ndarray):
        return _text_sums(items, keys)[:, codes]
    found = np.zeros((2, len(items)), dtype=np.uint64)
    told = [_told(item) for item in items]
    numbers = [k for k, one in enumerate(told) if isinstance(one, float)]
    times = [k for k, one in enumerate(told) if isinstance(one, int)]
    texts = [k for k, one in enumerate(told) if isinstance(one, str)]
    if numbers:
        values = rounded(np.array([told[k] for k in numbers], dtype=np.float64), precision)[None, :]
        found[:, numbers] = squared_sums(values.copy(), keys[:1], np.empty_like(values))
    if times:
        stamps = np.array([int(told[k]) % 2**64 for k in times], dtype=np.uint64)
        found[:, times] = _stamp_sums(stamps, keys)
    if texts:
        plain = np.empty(len(texts), dtype=object)
        plain[:] = [told[k] for k in texts]
        found[:, texts] = _text_sums(plain, keys)
    return found[:, codes]


def _time_sums(column: NDArray[Any], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words and squares of times or durations, by their nanoseconds."""
    missing = np.isnat(column)
    found = _stamp_sums(_nanoseconds(column).view(np.uint64), keys)
    if missing.any():
        nothing = np.full((1, 1), np.nan)
        found[:, missing] = squared_sums(nothing, keys[:1], np.empty_like(nothing))
    return found


def _stamp_sums(stamps: NDArray[np.uint64], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words and squares of nanoseconds, two words for each."""
    words = np.stack([stamps, stamps])
    return _sums(words, keys[1:3, None], np.empty_like(words))


def _nanoseconds(column: NDArray[Any]) -> NDArray[np.int64]:
    """Return times or durations as nanoseconds, modulo 2^64."""
    unit, count = np.datetime_data(column.dtype)
    if unit in "YM":
        return _nanoseconds(column.astype(f"{column.dtype.kind}8[D]"))
    known = {"W": 604_800_000_000_000, "D": 86_400_000_000_000, "h": 3_600_000_000_000, "m": 60_000_000_000}
    known |= {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
    if unit not in known:
        return column.astype(f"{column.dtype.kind}8[ns]").view(np.int64)
    plain = column.astype(column.dtype.newbyteorder("=")).view(np.int64)
    return plain * np.int64(known[unit] * count)


def _told(item: object) -> float | int | str:
    """Return a number or a missing value as a float, a time as integer nanoseconds, anything else as text."""
    if type(item) is str:  # the most frequent case, and cheaper than the checks below
        return item
    if item is None or type(item).__name__ in _MISSING:
        return math.nan
    if isinstance(item, Real | Decimal | np.bool_):
        return float(item)
    if isinstance(item, np.datetime64 | np.timedelta64):
        return math.nan if np.isnat(item) else int(_nanoseconds(np.array([item]))[0])
    if isinstance(item, date | timedelta):
        return _moment(item)
    return _text(item)


def _text(item: object) -> str:
    """Return a text that different objects do not share, as far as their types allow."""
    if isinstance(item, str):
        return str(item)
    if isinstance(item, np.ndarray):
        return f"array {item.dtype} {item.shape} {hashlib.sha256(np.ascontiguousarray(item).tobytes()).hexdigest()}"
    if isinstance(item, list | tuple):
        return f"{type(item).__name__} [{', '.join(map(_text, item))}]"
    if isinstance(item, set | frozenset):
        return f"set [{', '.join(sorted(map(_text, item)))}]"
    if isinstance(item, date | timedelta):
        return f"ns {_moment(item)}"
    return str(item)


def _moment(moment: Any) -> int:
    """Return a time as nanoseconds, in UTC if it has a zone: the same time in two zones is equal."""
    if hasattr(moment, "to_numpy"):  # times of pandas, which have nanoseconds
        stamp = moment.to_numpy()
    elif isinstance(moment, timedelta):
        return (moment.days * 86_400 + moment.seconds) * 10**9 + moment.microseconds * 1_000
    elif isinstance(moment, datetime) and moment.tzinfo is not None:
        stamp = np.datetime64(moment.astimezone(UTC).replace(tzinfo=None))
    else:
        stamp = np.datetime64(moment)
    return int(_nanoseconds(np.array([stamp]))[0])


def _different(objects: NDArray[Any]) -> tuple[NDArray[np.intp] | slice, list[Any] | NDArray[Any]]:
    """Return a column's codes and its distinct entries, which are an array if they are texts.

    Equal objects may have different texts, such as the tuples (1,) and (1.0,). So only texts and numbers are
    factorized; other columns are returned as they are.
    """
    from pandas import factorize
    from pandas.api.types import infer_dtype

    if infer_dtype(objects, skipna=False) == "string":
        return factorize(objects)
    items = objects.tolist()
    if any(kind.__name__ not in _MISSING for kind in set(map(type, items)) - _PLAIN):
        return slice(None), items
    codes, different = factorize(objects)
    found = different.tolist()
    missing = codes < 0
    if missing.any():
        codes[missing] = len(found)
        found.append(None)
    return codes, found


def _text_sums(texts: NDArray[Any], keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words and squares of texts: two words for each, scrambled SipHash-2-4 of its UTF-8 under two keys."""
    _check_words()
    try:
        words = _sip_words(texts)
    except UnicodeEncodeError:  # a lone surrogate, which only bytes can hold
        plain = np.empty(len(texts), dtype=object)
        plain[:] = [text.encode("utf-8", "surrogatepass") for text in texts]
        words = _sip_words(plain)
    return _sums(words, keys[3:, None], np.empty_like(words))


def _sip_words(items: NDArray[Any]) -> NDArray[np.uint64]:
    from pandas.util import hash_array

    return np.stack([hash_array(items, hash_key=key, categorize=False) for key in _SIP_KEYS])


@cache
def _check_words() -> None:
    """Refuse a pandas version with another hash of texts, which would take a known holdout for a new one."""
    if _sip_words(np.array(["abcdefgh"], dtype=object)).ravel().tolist() != _EXPECTED:
        import pandas as pd

        raise ThresholdoutError(f"pandas {pd.__version__} hashes texts otherwise than versions 2 and 3 do; use those")
