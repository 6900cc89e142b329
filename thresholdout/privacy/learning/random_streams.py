"""Resources of a run: separate streams of random numbers for the start, the sampling and the noise; threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.numerics.arguments import as_integer
from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from threadpoolctl import ThreadpoolController

__all__ = ["Streams", "is_seeded", "streams", "threads_for"]


@dataclass(frozen=True)
class Streams:
    """Three independent generators: for starting values, for the records of a step, and for the noise."""

    initial: np.random.Generator
    sampling: np.random.Generator
    noise: np.random.Generator


def is_seeded(random_state: Any) -> bool:
    """Return whether somebody could know or repeat the noise of a `random_state`; false for fresh entropy only.

    An integer may be known. A generator may have been made from one, and may serve for other releases.

    Examples
    --------
    >>> is_seeded(None), is_seeded(0), is_seeded(np.random.default_rng())
    (False, True, True)
    """
    return random_state is not None and random_state is not np.random


def streams(random_state: Any = None, call: int = 0) -> Streams:
    """Return the streams of one call of a learner.

    None takes fresh entropy of the operating system; a release needs it. An integer gives the same streams each time:
    whoever knows it can compute the noise and subtract it, so it must stay secret, or serve for simulation only. A
    generator is asked for a seed.

    Calls that continue an earlier one, such as those of ``partial_fit``, count on in `call`: each has other streams for
    the same integer. So no state of a generator is kept, from which past noise could be computed.
    """
    number = as_integer(call)
    if number is None or number < 0:
        raise InputError("call", repr(call), "an integer of at least 0")
    entropy: Any
    if not is_seeded(random_state):
        entropy = None
    elif (seed := as_integer(random_state)) is not None:
        if seed < 0:
            raise InputError("random_state", repr(random_state), "an integer of at least 0")
        entropy = seed
    elif isinstance(random_state, np.random.RandomState):
        entropy = [int(word) for word in random_state.randint(0, 2**32, 4, dtype=np.uint64)]
    elif isinstance(random_state, np.random.Generator):
        entropy = [int(word) for word in random_state.integers(0, 2**32, 4)]
    else:
        seen = f"a {type(random_state).__name__}"
        raise InputTypeError("random_state", seen, "None, an integer, or a generator of numpy")
    # The call number in the key gives each call its own streams from one integer.
    root = np.random.SeedSequence(entropy, spawn_key=(number,))
    initial, sampling, noise = (np.random.default_rng(seed) for seed in root.spawn(3))
    return Streams(initial, sampling, noise)


def threads_for(small: bool) -> AbstractContextManager[object]:
    """Return a context in which products and decompositions use one thread, if they are small."""
    limits: AbstractContextManager[object] = _controller().limit(limits=1 if small else None, user_api="blas")
    return limits


@cache
def _controller() -> ThreadpoolController:
    """Find the loaded libraries once: the search takes milliseconds, longer than a small fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
