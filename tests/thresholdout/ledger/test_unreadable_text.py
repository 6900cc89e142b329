"""A stored text that is no text gives an error of fixed words: what can be read of it, a state, is secret."""

import sqlite3
import traceback
from pathlib import Path

import numpy as np
import pytest

from tests.cases import for_each
from thresholdout import Claims, Thresholdout
from thresholdout.errors import LedgerUnusable


def opened(file: Path) -> Thresholdout:
    return Thresholdout(np.arange(1000.0), queries=20, mechanism=Claims(holdout_answers=1), ledger=file)


def chained(error: BaseException | None) -> str:
    """Return everything that an error, its causes and what was being handled then say of themselves."""
    texts: list[str] = []
    while error is not None:
        texts += [*traceback.format_exception(error), repr(error.args)]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


@for_each("place", ["front", "end"])
def test_a_byte_that_is_no_text_shows_no_threshold(tmp_path: Path, place: str) -> None:
    file = tmp_path / "answers.db"
    opened(file)._ledger.close()
    stored = sqlite3.connect(file)
    (state,) = stored.execute("SELECT state FROM guards").fetchone()
    broken = b"\xff" + state.encode() if place == "front" else state.encode() + b"\xff"
    stored.execute("UPDATE guards SET state = CAST(? AS TEXT)", (broken,))
    stored.commit()
    stored.close()
    with pytest.raises(LedgerUnusable, match="holds text that cannot be decoded, so it is damaged") as caught:
        assert opened(file).status.answers_left == 1
    secret = state.split(" ", 1)[1]
    assert len(secret) >= 5
    assert secret not in chained(caught.value)
