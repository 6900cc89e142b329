"""Sums in slices are numpy's, to the bit."""

import numpy as np

from graphs.numerics.sliced_sums import SLICE, sum_in_slices
from tests.cases import for_each


@for_each("size", [0, 1, 9, SLICE, SLICE + 1, SLICE + 8, 2 * SLICE + 1, 3 * SLICE + 7, 10 * SLICE + 129])
def test_a_sum_in_slices_is_numpys(size: int) -> None:
    numbers = np.random.default_rng(size).standard_normal(size)
    parts = []

    def part(start: int, stop: int) -> float:
        parts.append((start, stop))
        return float(np.add.reduce(numbers[start:stop]))

    assert sum_in_slices(part, size) == numbers.sum()
    assert [start for start, _ in parts] == [0, *(stop for _, stop in parts[:-1])]
    assert parts[-1][1] == size
    assert max(stop - start for start, stop in parts) <= SLICE


def test_slices_one_after_the_other_are_another_sum() -> None:
    numbers = np.random.default_rng(0).standard_normal(3 * SLICE)
    assert sum(float(np.add.reduce(numbers[k : k + SLICE])) for k in range(0, 3 * SLICE, SLICE)) != numbers.sum()
