"""Standard error as a terminal, on which bars appear at once."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from graphs import progress_bar

__all__ = ["Terminal", "bars_at_once"]


class Terminal(io.StringIO):
    """What says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@contextmanager
def bars_at_once() -> Iterator[Terminal]:
    """Put a terminal in the place of standard error, on which bars appear without a delay."""
    stream, kept = Terminal(), {name: text for name, text in os.environ.items() if name != "TQDM_DISABLE"}
    with (
        patch.dict(os.environ, kept, clear=True),
        patch.object(progress_bar, "_DELAY", 0.0),
        patch.object(sys, "stderr", stream),
    ):
        yield stream
