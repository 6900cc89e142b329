"""Results as plain JSON, to the bit, and how two of them are compared."""

from __future__ import annotations

import math
import platform
import re
from fractions import Fraction
from typing import Any, Final

import numpy as np
import pandas as pd
import scipy
import sklearn
from threadpoolctl import threadpool_info

RELATIVE: Final = 2.0**-26
"""How far numbers may be from those of another platform, relative to their size: the square root of 2^-52, by which the
place of a flat minimum moves when the last bit does. Measured: 1.3e-8 on a processor without AVX-512."""

_FLOAT: Final = re.compile(r"-?0x[01]\.[0-9a-f]*p[+-][0-9]+|-?inf|nan")
_DECIMAL: Final = re.compile(r"-?[0-9]+\.[0-9]+(e[+-]?[0-9]+)?")


def plain(value: Any) -> Any:
    """Return a result as JSON knows it: floats as their bits in hexadecimal digits, arrays as lists, tables as rows."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, str):
        if _FLOAT.fullmatch(value):
            raise ValueError(f"the text {value!r} would be read as a number")
        return value
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, pd.DataFrame):
        rows = [[label, *row] for label, row in zip(value.index, value.itertuples(index=False), strict=True)]
        return plain([["", *value.columns], *rows])
    if value is pd.NA:
        return None
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    raise TypeError(f"a {type(value).__name__} can't be recorded")


def fingerprint() -> dict[str, Any]:
    """Return what decides how elementary functions and sums are rounded here."""
    simd: Any = np.show_config(mode="dicts")
    libraries = {
        (info["internal_api"], str(info.get("version")), info.get("architecture", "")) for info in threadpool_info()
    }
    return {
        "python": platform.python_version(),
        "libc": list(platform.libc_ver()),
        "machine": platform.machine(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "pandas": pd.__version__,
        "simd": {kind: sorted(names) for kind, names in simd.get("SIMD Extensions", {}).items()},
        "libraries": sorted(list(library) for library in libraries if library[0] == "openblas"),
    }


def difference(recorded: Any, found: Any, *, exact: bool, path: str = "") -> str:
    """Return where and how two plain results differ, empty when they are the same.

    To the bit, or but for `RELATIVE` in each number.
    """
    if isinstance(recorded, dict) and isinstance(found, dict):
        if list(recorded) != list(found):
            return f"{path}: keys {list(recorded)} became {list(found)}"
        steps: Any = [(recorded[key], found[key], f"{path}[{key!r}]") for key in recorded]
    elif isinstance(recorded, list) and isinstance(found, list):
        if len(recorded) != len(found):
            return f"{path}: {len(recorded)} items became {len(found)}"
        steps = [(a, b, f"{path}[{k}]") for k, (a, b) in enumerate(zip(recorded, found, strict=True))]
    else:
        same = type(recorded) is type(found) and recorded == found
        if not same and not exact and isinstance(recorded, str) and isinstance(found, str):
            same = _near(recorded.split(" "), found.split(" "))
        return "" if same else f"{path}: {_shown(recorded)} became {_shown(found)}"
    return next((text for a, b, at in steps if (text := difference(a, b, exact=exact, path=at))), "")


def _is_float(value: Any) -> bool:
    return isinstance(value, str) and _FLOAT.fullmatch(value) is not None


def _near(recorded: list[str], found: list[str]) -> bool:
    """Whether words are the same but for the last digits of numbers, as in a mechanism's state."""
    return len(recorded) == len(found) and all(
        a == b or (_is_float(a) == _is_float(b) and math.isclose(_number(a), _number(b), rel_tol=RELATIVE))
        for a, b in zip(recorded, found, strict=True)
    )


def _number(word: str) -> float:
    """Return a word as a number, not a number where it is none or an integer."""
    if _is_float(word):
        return float.fromhex(word)
    return float(word) if _DECIMAL.fullmatch(word) else math.nan


def _shown(value: Any) -> str:
    return f"{value} ({float.fromhex(value)!r})" if _is_float(value) else repr(value)[:200]
