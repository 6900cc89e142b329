"""Threads for the products of small matrices, which waiting for other threads makes slower."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from threadpoolctl import ThreadpoolController

__all__ = ["threads_for"]


def threads_for(small: bool) -> AbstractContextManager[object]:
    """Return a context in which products and decompositions use one thread, if they are small.

    Examples
    --------
    >>> with threads_for(small=True):
    ...     pass
    """
    limits: AbstractContextManager[object] = _controller().limit(limits=1 if small else None, user_api="blas")
    return limits


@cache
def _controller() -> ThreadpoolController:
    """Find the loaded libraries once: that takes milliseconds, longer than a small fit."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
