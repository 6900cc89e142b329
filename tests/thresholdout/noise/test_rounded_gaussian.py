"""Gaussian noise, bit by bit; its distribution is tested in tests/statistical/test_gaussian_law.py."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.normal import keeping
from thresholdout.errors import InputError
from thresholdout.noise.rounded_gaussian import NormalDeviate, _bounds, _settle, round_normal, sample_normals
from thresholdout.noise.sources import NoiseSource, SeededNoise, SystemNoise

runs = st.integers(0, 14)
digits = st.integers(0, 2**52 - 1)


def stream(words: list[int]) -> Callable[[int], bytes]:
    """Entropy that hands out 64-bit words in turn; two at once where 16 bytes are asked for."""
    rest = iter(words)
    return lambda size: b"".join(next(rest).to_bytes(8, "little") for _ in range(size // 8))


def followed(start: int, words: list[int]) -> int:
    """The binary digits of a number, followed by those of 64-bit words."""
    for word in words:
        start = (start << 64) + word
    return start


class TestCoins:
    @given(runs, digits)
    def test_bounds_enclose_the_probability_tightly(self, run: int, x: int) -> None:
        low, high = _bounds(run, x, 52)
        with mpmath.workprec(400):
            largest = keeping(run + Fraction(x, 2**52), run)
            smallest = keeping(run + Fraction(x + 1, 2**52), run)
            assert mpmath.mpf(low.numerator) / low.denominator <= smallest
            assert largest <= mpmath.mpf(high.numerator) / high.denominator
        assert 0 <= high - low < Fraction(1, 2**51)
        assert high <= 1 + Fraction(1, 2**100)

    @given(runs, digits, st.integers(-2, 2))
    def test_near_a_tie_further_digits_decide_as_in_high_precision(self, run: int, x: int, offset: int) -> None:
        """The coin's first word agrees with the probability to about 2**-52; the rest comes from a fixed stream."""
        with mpmath.workprec(600):
            near = int(mpmath.floor(keeping(run + Fraction(x, 2**52), run) * 2**64))
        coin = min(max(near + offset * 300, 0), 2**64 - 1)
        rng = np.random.default_rng(5)
        words = [int.from_bytes(rng.bytes(8), "little") for _ in range(40)]
        decided = _settle(run, x, coin, stream(words))
        size = Fraction(
            (x << 64 * 20) + sum(word << 64 * (19 - i) for i, word in enumerate(words[::2])), 2 ** (52 + 1280)
        )
        uniform = (coin << 64 * 20) + sum(word << 64 * (19 - i) for i, word in enumerate(words[1::2]))
        with mpmath.workprec(2000):
            kept = mpmath.mpf(uniform) / mpmath.mpf(2) ** (64 * 21) < keeping(run + size, run)
        assert (decided is not None) == bool(kept)
        if decided is not None:
            known, bits = decided
            assert known == int((run + size) * 2**bits)

    def test_draws_are_those_of_the_slow_reading_of_the_same_bits(self) -> None:
        count = 3000
        rng = np.random.default_rng(7)
        first = [int.from_bytes(rng.bytes(8), "little") for _ in range(count)]
        coins = [int.from_bytes(rng.bytes(8), "little") for _ in range(count)]
        tail = [int.from_bytes(rng.bytes(8), "little") for _ in range(1000)]
        first[5] &= ~0x7FF  # eleven zeros: the run goes on in the tail
        calls = [np.array(first + coins, dtype="<u8").tobytes()]
        source = stream(tail)
        size = (count - 8) // 2
        numbers = sample_normals(size, lambda wanted: calls.pop() if calls else source(wanted))
        expected = []
        for word, coin in zip(first, coins, strict=True):
            low = word & 0x7FF
            if low == 0:
                continue  # a run of at least 11 is kept with probability below exp(-50)
            run = (low & -low).bit_length() - 1
            with mpmath.workprec(200):
                if mpmath.mpf(coin) / mpmath.mpf(2) ** 64 < keeping(run + Fraction(word >> 12, 2**52), run):
                    expected.append(NormalDeviate(bool(word >> 11 & 1), (run << 52) + (word >> 12), 52))
        assert len(expected) >= 0.45 * count
        assert numbers[: len(expected)] == expected[:size]

    @pytest.mark.parametrize("size", [0, 1, 5, 5000])
    def test_any_number_of_draws(self, size: int) -> None:
        assert len(sample_normals(size, np.random.default_rng(1).bytes)) == size


class TestRounding:
    @given(
        st.booleans(),
        st.integers(0, 5 << 52),
        st.fractions(-100, 100, max_denominator=10**6),
        st.fractions(Fraction(1, 10**6), 10**9, max_denominator=10**6),
        st.integers(0, 2**32),
    )
    def test_the_nearest_integer_of_the_whole_expansion(
        self, negative: bool, size: int, centre: Fraction, scale: Fraction, seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        words = [int.from_bytes(rng.bytes(8), "little") for _ in range(20)]
        rounded = round_normal(NormalDeviate(negative, size, 52), centre, scale, stream(words))
        long = Fraction(followed(size, words), 2 ** (52 + 64 * 20))
        exact = centre + scale * (-long if negative else long)
        assert rounded == (exact + Fraction(1, 2)).__floor__()

    def test_a_tie_is_settled_by_further_digits(self) -> None:
        """With one digit known, 1/2 + (1/2 or more) may round to 1 or 2; the stream says."""
        number = NormalDeviate(False, 1, 1)
        high, low = 2**64 - 1, 0
        assert round_normal(number, Fraction(1, 2), Fraction(3, 2), stream([high])) == 2
        assert round_normal(number, Fraction(1, 2), Fraction(3, 2), stream([low])) == 1
        assert round_normal(NormalDeviate(True, 1, 1), Fraction(1, 2), Fraction(3, 2), stream([high])) == -1
        assert round_normal(NormalDeviate(True, 1, 1), Fraction(1, 2), Fraction(3, 2), stream([low])) == 0

    @pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1, 3)])
    def test_a_scale_that_is_not_positive_is_refused(self, scale: Fraction) -> None:
        with pytest.raises(InputError, match="scale"):
            SystemNoise().rounded_gaussian(Fraction(0), scale)


class TestSources:
    def test_both_are_noise_sources(self) -> None:
        for source in (SystemNoise(), SeededNoise(0)):
            noise: NoiseSource = source
            assert isinstance(noise.rounded_gaussian(Fraction(1, 3), Fraction(7)), int)

    def test_seeded_noise_repeats(self) -> None:
        def draws(seed: int) -> list[int]:
            noise = SeededNoise(seed)
            return [noise.rounded_gaussian(Fraction(1, 3), Fraction(10**6)) for _ in range(100)]

        assert draws(3) == draws(3)
        assert draws(3) != draws(4)

    def test_a_copied_system_source_shares_nothing(self) -> None:
        noise = SystemNoise()
        noise.rounded_gaussian(Fraction(0), Fraction(2**40))
        assert noise._normals
        for twin in (copy.copy(noise), copy.deepcopy(noise), pickle.loads(pickle.dumps(noise))):
            assert not twin._normals

    @pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
    def test_a_forked_child_drops_the_buffer(self) -> None:
        program = """
import os
from fractions import Fraction
from thresholdout.noise.sources import SystemNoise
noise = SystemNoise()
noise.rounded_gaussian(Fraction(0), Fraction(1))
waiting = bool(noise._normals)
child = os.fork()
if child == 0:
    os._exit(0 if waiting and not noise._normals else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
