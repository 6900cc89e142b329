"""Tables that clients submit: predictions for a holdout, as files."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
import pandas as pd

__all__ = ["SHARE", "TYPES", "Format", "files", "labelled"]

Format = Literal["csv", "parquet"]
TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
SHARE = 0.85
"""Of the holdout's records, how many the predictions get right, and are expected to."""


def labelled(records: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a training part and a holdout with random labels 0 and 1."""
    y = np.random.default_rng(seed).integers(0, 2, 2 * records)
    table = pd.DataFrame({"id": [f"r{number:08}" for number in range(2 * records)], "y": y})
    return table[:records], table[records:]


def files(holdout: pd.DataFrame, format: Format, count: int, seed: int = 1) -> list[bytes]:
    """Return different predictions for a holdout, in an order of records that is not its own."""
    rng, labels = np.random.default_rng(seed), holdout["y"].to_numpy()
    order = rng.permutation(labels.size)
    ids, labels = holdout["id"].to_numpy()[order], labels[order]
    made = []
    for _ in range(count):
        right = rng.random(labels.size) < SHARE
        table, file = pd.DataFrame({"id": ids, "prediction": np.where(right, labels, 1 - labels)}), io.BytesIO()
        if format == "csv":
            table.to_csv(file, index=False)
        else:
            table.to_parquet(file, index=False)
        made.append(file.getvalue())
    return made
