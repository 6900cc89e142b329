"""How far long work is: one bar for everything, on standard error, once two seconds are over."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["progress_bar"]

_DELAY: Final = 2.0
"""Seconds after which a bar appears."""


def progress_bar(
    items: Iterable[Any] | None = None,
    *,
    doing: str,
    unit: str,
    total: int | None = None,
    done: int = 0,
    show: bool = True,
) -> tqdm[Any]:
    """Return a bar that shows how far long work is; loop over it, or ``update`` it inside ``with``.

    It appears after two seconds, in terminals and notebooks, and goes when the work is done. The environment variable
    ``TQDM_DISABLE`` (any text) turns all bars off; processes that others started show none.

    Examples
    --------
    >>> [number**2 for number in progress_bar(range(3), doing="squaring", unit="numbers")]
    [0, 1, 4]
    >>> with progress_bar(doing="adding", unit="rows", total=10) as bar:
    ...     added = bar.update(10)
    """
    from multiprocessing import current_process

    notebook = "ipykernel.zmqshell" in sys.modules
    hidden = not show or bool(os.environ.get("TQDM_DISABLE")) or current_process().name != "MainProcess"
    bar: tqdm[Any] = _bars(notebook)(
        items,
        desc=doing,
        total=total,
        initial=done,
        unit=f" {unit}",
        delay=_DELAY,
        leave=False,
        disable=True if hidden else (False if notebook else None),  # None: shown where standard error is a terminal
    )
    return bar


def _bars(notebook: bool) -> Any:
    """Return the class of bars; without ipywidgets, tqdm's own choice would warn about work that takes no time."""
    if notebook and find_spec("ipywidgets") is not None:
        from tqdm.notebook import tqdm_notebook

        return tqdm_notebook
    from tqdm import tqdm

    return tqdm
