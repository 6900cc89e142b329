"""One progress bar for all long work, on standard error, after two seconds."""

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
    """Return a progress bar; loop over it, or ``update`` it inside ``with``.

    It appears after two seconds, in terminals and notebooks, and disappears when the work is done. The environment
    variable ``TQDM_DISABLE`` (any text) turns all bars off; worker processes show none.
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
