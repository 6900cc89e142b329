"""A service with a holdout and teams, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from thresholdout.service.evaluation import EvaluationService
from thresholdout.service.limits import Limits
from thresholdout.service.schemas import Principal

__all__ = ["ADMIN", "HOLDOUT", "LABELS", "TABLE", "TRAIN", "N", "made", "right_in", "team"]

N = 400
LABELS = np.random.default_rng(3).integers(0, 2, 2 * N)
TABLE = pd.DataFrame({"id": [f"r{k}" for k in range(2 * N)], "x": np.arange(2 * N), "y": LABELS})
TRAIN, HOLDOUT = TABLE[:N], TABLE[N:]
ADMIN = Principal("", "admin")
"""Who administers a service on its own machine."""


def made(where: str | Path, *, limits: Limits | None = None, **settings: Any) -> EvaluationService:
    """Return a service with the holdout "cells"."""
    service = EvaluationService.open(where, limits=limits)
    service.create_holdout(ADMIN, "cells", TRAIN, HOLDOUT, **({"label": "y"} | settings))
    return service


def team(service: EvaluationService, name: str) -> Principal:
    """Return a team with a new key."""
    text, _ = service.new_token(ADMIN, "team", name)
    return service.authenticate(text)


def right_in(share: float, seed: int = 1) -> pd.DataFrame:
    """Return predictions for the holdout that are right in a share of the records."""
    wrong = np.random.default_rng(seed).permutation(N) >= round(share * N)
    labels = LABELS[N:]
    return pd.DataFrame({"id": HOLDOUT["id"], "prediction": np.where(wrong, 1 - labels, labels)})
