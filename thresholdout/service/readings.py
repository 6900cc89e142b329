"""What a table of predictions says, as the service knows it again and keeps it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from thresholdout.service.prediction_guard import PredictionGuard

__all__ = ["content_of", "from_text", "to_text"]


def content_of(guard: PredictionGuard, metric: str, predictions: pd.DataFrame) -> str:
    """Return a digest of what a table says; refuse one that a guard cannot use."""
    return guard.read(predictions, metric).digest


def to_text(predictions: pd.DataFrame) -> str:
    """Return a table as text."""
    return predictions.to_csv(index=False)


def from_text(text: str) -> pd.DataFrame:
    """Return the table of a text."""
    import pandas as pd

    return pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
