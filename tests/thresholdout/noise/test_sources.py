"""The noise, bit by bit; its distribution is tested in tests/statistical/test_noise_law.py."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import for_each
from tests.oracles.noise import at_least, coin_floor, continuous_at_least, probability
from thresholdout.errors import InputError
from thresholdout.noise.sources import DiscreteLaplace, NoiseSource, SeededNoise, SystemNoise, _Coin

SCALES = [Fraction(1, 1024), Fraction(1, 7), Fraction(1), Fraction(22, 7), Fraction(3 * 2**39), Fraction(2**48)]


def _words(stack: list[int]) -> Callable[[int], bytes]:
    """Entropy that is taken from the end of a list."""
    return lambda size: stack.pop().to_bytes(size, "little")


class TestCoins:
    @pytest.mark.slow
    @for_each("scale", SCALES)
    @for_each("bits", [0, 16, 80, 208])
    def test_digits_are_those_of_high_precision(self, scale: Fraction, bits: int) -> None:
        law = DiscreteLaplace(scale)
        for j, coin in enumerate(law._coins[:-1]):
            assert coin.exponent == 2**j / scale
            assert coin.digits(bits) == coin_floor(coin.exponent, bits, logistic=True)
        assert law._coins[-1].digits(bits) == coin_floor(2**law._count / scale, bits, logistic=False)

    @pytest.mark.slow
    @given(
        st.fractions(min_value=Fraction(1, 2**48), max_value=100, max_denominator=2**48).filter(bool),
        st.integers(0, 300),
        st.booleans(),
    )
    @settings(deadline=None, max_examples=200)
    def test_digits_of_any_exponent(self, exponent: Fraction, bits: int, logistic: bool) -> None:
        coin = _Coin(exponent, logistic=logistic)
        assert coin.digits(bits) == coin_floor(exponent, bits, logistic=logistic)

    @for_each("logistic", [True, False])
    def test_ties_go_on_with_further_digits(self, logistic: bool) -> None:
        coin = _Coin(Fraction(3, 7), logistic=logistic)
        first = coin_floor(coin.exponent, 64, logistic=logistic)
        second = coin_floor(coin.exponent, 128, logistic=logistic) - (first << 64)
        for last, heads in ((second - 1, True), (second + 1, False)):
            words = [last, first]
            assert coin.toss(_words(words)) is heads
            assert not words

    def test_a_toss_after_the_first_word_continues_the_expansion(self) -> None:
        coin = _Coin(Fraction(3, 7), logistic=True)
        rest = coin_floor(coin.exponent, 80, logistic=True) - (coin_floor(coin.exponent, 16, logistic=True) << 64)
        assert coin.toss(lambda size: (rest - 1).to_bytes(size, "little"), 16)
        assert not coin.toss(lambda size: (rest + 1).to_bytes(size, "little"), 16)


class TestConstruction:
    @for_each("scale", [Fraction(1, 7), Fraction(1), Fraction(22, 7), Fraction(40)])
    def test_independent_digits_make_the_geometric_law(self, scale: Fraction) -> None:
        """The product over digits and top equals (1-q) q**x, in 60 digits."""
        count = DiscreteLaplace(scale)._count
        with mpmath.workdps(60):
            s = mpmath.mpf(scale.numerator) / scale.denominator
            q = mpmath.exp(-1 / s)
            for x in (0, 1, 2, 3, 5, 17, 100, 1000):
                product = mpmath.mpf(1)
                for j in range(count):
                    p = 1 / (1 + mpmath.exp(2**j / s))
                    product *= p if x >> j & 1 else 1 - p
                ratio = mpmath.exp(-(2**count) / s)
                product *= (1 - ratio) * ratio ** (x >> count)
                assert mpmath.almosteq(product, (1 - q) * q**x, rel_eps=mpmath.mpf(10) ** -50)

    @pytest.mark.slow
    @for_each("scale", [Fraction(1, 50), Fraction(5, 2), Fraction(3 * 2**39)])
    def test_draws_are_those_of_the_slow_reading_of_the_same_bits(self, scale: Fraction) -> None:
        """Each geometric number again, from comparisons of long binary fractions; a third of all words tie."""
        law = DiscreteLaplace(scale)
        columns = law._count + 1
        rng = np.random.default_rng(5)
        coins = [(Fraction(2**j) / scale, True) for j in range(law._count)]
        coins.append((Fraction(2**law._count) / scale, False))
        heads = [coin_floor(x, 16, logistic=logistic) for x, logistic in coins]
        size = 8
        words = rng.integers(0, 2**16, (2 * size, columns))
        ties = rng.random(words.shape) < 1 / 3
        words[ties] = np.broadcast_to(heads, words.shape)[ties]
        tail = rng.integers(0, 2**64, 100_000, dtype=np.uint64).tolist()
        stream = iter(tail)
        calls = [words.astype("<u2").tobytes()]

        def entropy(size: int) -> bytes:
            return calls.pop() if calls else next(stream).to_bytes(size, "little")

        draws = law.sample(size, entropy)

        replay = iter(tail)

        def toss(column: int, bits: int, seen: int) -> bool:
            x, logistic = coins[column]
            while seen == coin_floor(x, bits, logistic=logistic):
                bits += 64
                seen = (seen << 64) + next(replay)
            return seen < coin_floor(x, bits, logistic=logistic)

        numbers = []
        for row in words.tolist():
            number = sum(toss(j, 16, row[j]) << j for j in range(law._count))
            top = 0
            if toss(law._count, 16, row[-1]):
                top = 1
                while toss(law._count, 0, 0):
                    top += 1
            numbers.append(number + (top << law._count))
        expected = [a - b for a, b in zip(numbers[:size], numbers[size:], strict=True)]
        assert draws.tolist() == expected

    def test_what_lies_above_the_digits_is_counted(self) -> None:
        """Zeros toss heads everywhere; then the first toss above 64 ones ends the count."""
        law = DiscreteLaplace(Fraction(1))
        answers = [
            bytes(2 * (law._count + 1)) + b"\xff" * (2 * (law._count + 1)),
            bytes(8),
            bytes(8),
            bytes(8),
            b"\xff" * 8,
        ]
        draws = law.sample(1, lambda size: answers.pop(0))
        # Digits all heads, and the top is 1 (settled) + 2 (more heads); the second geometric number is 0.
        assert draws.tolist() == [(2**law._count - 1) + (3 << law._count)]

    def test_beyond_62_bits_is_an_error_and_never_wraps(self) -> None:
        with pytest.raises(OverflowError):
            DiscreteLaplace(Fraction(2**48)).sample(1, bytes)

    @for_each("size", [0, 1, 2047, 2048, 2049, 5000])
    def test_any_number_of_draws(self, size: int) -> None:
        assert SeededNoise(1).laplace_array(Fraction(9), size).shape == (size,)

    @for_each("scale", [Fraction(0), Fraction(-1), Fraction(1, 1025), Fraction(2**48 + 1)])
    def test_scales_out_of_range_are_refused(self, scale: Fraction) -> None:
        with pytest.raises(InputError, match="scale"):
            SystemNoise().laplace(scale)


class TestDomination:
    """What `noise_slack` rests on: PROOFS.md, "Noise"."""

    @for_each("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100), Fraction(10**6)])
    def test_the_tails_of_the_discrete_law(self, scale: Fraction) -> None:
        reach = int(30 * scale) + 3
        with mpmath.workdps(60):
            half = mpmath.mpf(1) / 2
            for k in {*range(-20, 21), *range(-reach, reach + 1, max(1, reach // 50))}:
                assert at_least(k, scale) <= continuous_at_least(mpmath.mpf(k - 1), scale)
                if k >= 1:
                    assert 2 * at_least(k, scale) <= 2 * continuous_at_least(k - half, scale)

    def test_the_oracle_adds_up(self) -> None:
        scale = Fraction(7, 2)
        with mpmath.workdps(60):
            for k in (-5, 0, 3):
                gap = at_least(k, scale) - at_least(k + 1, scale)
                assert mpmath.almosteq(gap, probability(k, scale), rel_eps=mpmath.mpf(10) ** -50)


class TestSources:
    def test_both_are_noise_sources(self) -> None:
        system: NoiseSource = SystemNoise()
        seeded: NoiseSource = SeededNoise(0)
        assert system.for_release
        assert not seeded.for_release

    def test_seeded_noise_says_that_it_is_not_for_release(self) -> None:
        assert "not for release" in repr(SeededNoise(3))
        assert "NOT for release" in (SeededNoise.__doc__ or "")

    def test_seeded_noise_repeats(self) -> None:
        scales = [Fraction(3), Fraction(2**40)]
        first, second = SeededNoise(11), SeededNoise(11)
        other = SeededNoise(12)
        draws = [first.laplace(scales[i % 2]) for i in range(200)]
        assert draws == [second.laplace(scales[i % 2]) for i in range(200)]
        assert draws != [other.laplace(scales[i % 2]) for i in range(200)]

    def test_a_copied_seeded_source_continues(self) -> None:
        noise = SeededNoise(4)
        noise.laplace(Fraction(1000))
        for twin in (pickle.loads(pickle.dumps(noise)), copy.deepcopy(noise)):
            original = copy.deepcopy(noise)
            assert [twin.laplace(Fraction(1000)) for _ in range(100)] == [
                original.laplace(Fraction(1000)) for _ in range(100)
            ]

    @for_each("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
    def test_a_copied_system_source_shares_nothing(self, duplicate: Callable[[SystemNoise], SystemNoise]) -> None:
        noise = SystemNoise()
        noise.laplace(Fraction(2**48))
        twin = duplicate(noise)
        assert not twin._buffers
        assert twin.laplace(Fraction(2**48)) not in noise._buffers[2**48, 1]

    def test_no_draw_is_shown(self) -> None:
        noise = SystemNoise()
        noise.laplace(Fraction(5))
        assert repr(noise) == "SystemNoise()"

    def test_scales_that_are_equal_share_a_buffer(self) -> None:
        noise = SystemNoise()
        noise.laplace(Fraction(10, 2))
        noise.laplace(Fraction(5))
        assert list(noise._buffers) == [(5, 1)]

    def test_threads_never_share_a_draw(self) -> None:
        """1,000 draws of scale 2**48 coincide by chance with probability below 1e-9."""
        noise = SystemNoise()
        draws: list[list[int]] = []

        def work() -> None:
            draws.append([noise.laplace(Fraction(2**48)) for _ in range(250)])

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({draw for part in draws for draw in part}) == 1000

    @pytest.mark.slow
    @pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
    def test_a_forked_child_drops_the_buffer(self) -> None:
        program = """
import os
from fractions import Fraction
from thresholdout.noise.sources import SystemNoise
noise, scale = SystemNoise(), Fraction(2**48)
noise.laplace(scale)
waiting = set(noise._buffers[scale.as_integer_ratio()])
child = os.fork()
if child == 0:
    fresh = not noise._buffers and not any(noise.laplace(scale) in waiting for _ in range(len(waiting)))
    os._exit(0 if waiting and fresh else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
