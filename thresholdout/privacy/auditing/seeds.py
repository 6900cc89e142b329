"""Seeds of the runs of an audit: one for each, whatever the number of workers and the order of work."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np

from graphs.numerics.arguments import as_integer
from thresholdout.errors import InputError, InputTypeError

__all__ = ["entropy_of", "own_stream", "run_seed"]

_AUDIT = 0x6175646974  # "audit": no usual number of a spawned stream
_ODD = 0x9E3779B1  # 2**32 over the golden ratio, made odd: multiples differ for all 2**32 factors, and lie far apart


def entropy_of(random_state: Any) -> int:
    """Return a seed: the integer itself, one that a generator draws, or fresh entropy for None.

    Raises
    ------
    InputError, InputTypeError
        For a negative integer, or anything else.

    Examples
    --------
    >>> entropy_of(7)
    7
    """
    if random_state is None:
        return secrets.randbits(63)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(0, 2**63))
    entropy = as_integer(random_state)
    if entropy is None:
        raise InputTypeError("random_state", f"a {type(random_state).__name__}", "None, an integer, or a generator")
    if entropy < 0:
        raise InputError("random_state", repr(random_state), "0 or more")
    return entropy


def own_stream(entropy: int) -> np.random.Generator:
    """Return a generator for the audit's own coins, independent of ``default_rng(entropy)``.

    The audited outputs or canaries' coins often come from that one, made by the same integer.

    Examples
    --------
    >>> bool(own_stream(7).random() == np.random.default_rng(7).random())
    False
    """
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(_AUDIT,)))


def run_seed(entropy: int, data_set: int, run: int) -> int:
    """Return the seed of one run, below 2**32; no two runs of an audit have the same.

    `entropy` is the audit's, the data set 0 or 1, the run below 2**31.

    Examples
    --------
    >>> len({run_seed(5, part, run) for part in (0, 1) for run in range(1000)})
    2000
    """
    base = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    return (base + (2 * run + data_set) * _ODD) % 2**32
