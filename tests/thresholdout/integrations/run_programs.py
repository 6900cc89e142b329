"""Programs of the contract, run by a command that notes what it runs."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from tests.thresholdout.integrations.contract import HOLDOUT, ROOT, TRAIN
from thresholdout import Thresholdout
from thresholdout.integrations import GuardedPrograms


def programs(**declared: Any) -> GuardedPrograms:
    """Return what judges the contract's programs."""
    parts = [(pd.DataFrame(records), pd.Series([one["id"] % 2 for one in records])) for records in (HOLDOUT, TRAIN)]
    module = "tests.thresholdout.integrations.predicting"
    command = f"{sys.executable} -m {module} {{candidate}} {{features}} {{predictions}}"
    return GuardedPrograms(Thresholdout(parts[0], train=parts[1], **declared), command, name="candidates")


@contextmanager
def noting(folder: Path) -> Iterator[list[tuple[str, Any]]]:
    """Yield a list that has each run of a program, text and part, in the end."""
    before, file = dict(os.environ), folder / "evaluated.txt"
    evaluated: list[tuple[str, Any]] = []
    os.environ |= {"EVALUATED": str(file), "PYTHONPATH": str(ROOT)}
    file.unlink(missing_ok=True)
    try:
        yield evaluated
    finally:
        os.environ.clear()
        os.environ |= before
        lines = [line.partition("\t") for line in file.read_text().splitlines()] if file.exists() else []
        evaluated.extend((text, part) for part, _, text in lines)
