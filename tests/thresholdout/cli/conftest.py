from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.thresholdout.cli.running import N
from thresholdout.ledger.cipher import KEY_FILE_VARIABLE, KEY_VARIABLE


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": [f"r{k}" for k in range(2 * N)],
            "x": rng.normal(size=2 * N),
            "patient": np.arange(2 * N) // 5,
            "day": rng.permutation(2 * N),
            "y": rng.integers(0, 2, size=2 * N),
        }
    )
    table[:N].to_csv(tmp_path / "train.csv", index=False)
    table[N:].to_csv(tmp_path / "holdout.csv", index=False)
    right = pd.DataFrame(
        {"id": table["id"], "prediction": table["y"], "p_0": 1.0 - table["y"], "p_1": 1.0 * table["y"]}
    )
    right.sample(frac=1, random_state=1).to_csv(tmp_path / "right.csv", index=False)
    overfitted = right.assign(prediction=np.where(np.arange(2 * N) < N, table["y"], rng.integers(0, 2, size=2 * N)))
    overfitted.to_csv(tmp_path / "overfitted.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    monkeypatch.delenv(KEY_FILE_VARIABLE, raising=False)
    return tmp_path
