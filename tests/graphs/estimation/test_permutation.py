"""What permutation tests of groups refuse."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import ArgumentError
from graphs.estimation.permutation import intraclass_correlation
from tests.cases import for_each


@for_each(
    ("groups", "seen"), [([0, 0, 0], "one group only"), ([0, 1], "groups of one record each"), ([0], "one group only")]
)
def test_groups_that_say_nothing_are_named(groups: list[int], seen: str) -> None:
    values = np.arange(len(groups), dtype=float)[:, None]
    with pytest.raises(ArgumentError, match=f"^groups must be .*; got {seen}"):
        intraclass_correlation(values, np.array(groups), 9, np.random.default_rng(0))
