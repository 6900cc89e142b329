"""Noise in the edges of claims: a little, or as much as protects single records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Final

from thresholdout.errors import InputError
from thresholdout.mechanisms.claims.interval import UNITS, Scales

if TYPE_CHECKING:
    from thresholdout.mechanisms.base import Known
    from thresholdout.mechanisms.claims.parameters import ClaimsParameters
    from thresholdout.noise.sources import NoiseSource

__all__ = ["EdgeNoise", "Private", "check_covered", "private_noise", "refuse_private"]

_NO_NOISE: Final = 1 << 20  # exponent of a state without noise
_COARSEST: Final = -1
_FINEST: Final = -30  # exponents of noise scales, in the range

_LETTERS: Final = 10  # that the declared epsilon is shared among, where no budget is declared
_EACH: Final = 4
_FOR_EACH: Final = 2  # letters for each answer from the holdout
_FINE: Final = 64  # grid steps for each record, so that rounding adds little to what one record moves
_INSTEAD: Final = "guard.ask or guard.score about means over records, one after another; or a guard without private="


@dataclass(frozen=True, slots=True)
class Private:
    """Noise with which all answers together are private; PROOFS.md, P6.

    Attributes
    ----------
    scale : int
        Of the noise that both edges share, in units of ``2**-40`` of the range; that of each test has twice this scale.
    letters : int
        After how many letters other than *confirmed* nothing is tested any more.
    moved : int
        D: how far one record moves a mean, in the same units, rounded up, its rounding to a grid included.
    """

    scale: int
    letters: int
    moved: int

    @property
    def epsilon(self) -> float:
        """Bound on the privacy loss of all answers together, under replacing one record."""
        exact = Fraction(2 * self.moved * self.letters, self.scale)
        found = float(exact)
        return found if Fraction(found) >= exact else math.nextafter(found, math.inf)

    def most(self, letters: int) -> int:
        """Return how many letters one question may have after so many, so that a misleading one leaves some."""
        return min(_EACH, self.letters - letters)

    def steps(self, steps: int, n: int) -> int:
        """Return a power of two of grid steps that is fine enough for D."""
        return max(steps, 1 << math.ceil(math.log2(_FINE * n)))


def private_noise(parameters: ClaimsParameters, n: int) -> Private | None:
    """Return the noise that parameters ask for; ``None`` where no epsilon is declared.

    Raises
    ------
    InputError
        When the noise would be larger than the range.

    Examples
    --------
    >>> from thresholdout.mechanisms.claims.parameters import ClaimsParameters
    >>> found = private_noise(ClaimsParameters(private=1.0, budget=3), 10_000)
    >>> found.letters, round(10_000 * found.scale / UNITS, 1), found.epsilon <= 1.0
    (6, 12.2, True)
    """
    if parameters.private is None:
        return None
    letters = _LETTERS if parameters.budget is None else _FOR_EACH * parameters.budget
    moved = -(-(_FINE + 1) * UNITS // (_FINE * n))
    scale = math.ceil(Fraction(2 * moved * letters) / Fraction(parameters.private))
    if 8 * scale > UNITS:
        least = 16.0 * moved * letters / UNITS
        seen = f"{parameters.private:g} for {n} records and {letters} letters, whose noise would hide everything"
        raise InputError("epsilon", seen, f"at least {least * 1.001:.3g}, fewer holdout_answers=, or more records")
    return Private(scale, letters, moved)


def check_covered(known: Known) -> None:
    """Refuse a question whose value one record moves by more than is proved.

    Raises
    ------
    InputError
        When it is no mean over all records.
    """
    if known.layout is not None or known.difference or known.duel is not None or known.part is not None:
        raise refuse_private(
            "a comparison of models" if known.layout is None else "a statistic that is no mean over records"
        )


def refuse_private(what: str) -> InputError:
    """Return the refusal of what tells more than letters do."""
    return InputError("private", f"{what}, which its epsilon does not cover", _INSTEAD)


class EdgeNoise:
    """Where the noise of a guard's edges comes from.

    Parameters
    ----------
    parameters : ClaimsParameters
        Say how much of it there is.
    private : Private or None
        A scale that is the same for all questions.

    Notes
    -----
    Scales are powers of two of the range, named by their exponents, which a state keeps; a private one has one scale
    and one exponent.
    """

    def __init__(self, parameters: ClaimsParameters, private: Private | None) -> None:
        self._noise = parameters.noise
        self._private = private

    def exponent(self, deviation: float) -> int:
        """Return the exponent of the scale for values of which the mean has this standard deviation."""
        if self._private is not None:
            return 0
        scale = self._noise * deviation
        return min(max(math.floor(math.log2(scale)), _FINEST), _COARSEST) if scale > 0.0 else _NO_NOISE

    def scales(self, exponent: int) -> Scales:
        """Return the scales of the noises in an edge of a test, in units of the range."""
        if exponent == _NO_NOISE:
            return ()
        scale = self._scale(exponent)
        return float(scale / UNITS), float(2 * scale / UNITS)

    def edge(self, exponent: int, noise: NoiseSource) -> int:
        """Draw the noise that both edges share."""
        return 0 if exponent == _NO_NOISE else noise.laplace(self._scale(exponent))

    def tests(self, exponent: int, noise: NoiseSource) -> tuple[int, int]:
        """Draw the noise of both halves of a test."""
        if exponent == _NO_NOISE:
            return 0, 0
        scale = 2 * self._scale(exponent)
        return noise.laplace(scale), noise.laplace(scale)

    def deviation(self) -> float:
        """Return the standard deviation of the noise in an edge, where it is large; else 0."""
        return 0.0 if self._private is None else math.sqrt(10.0) * self._private.scale / UNITS

    def _scale(self, exponent: int) -> Fraction:
        return _units(exponent) if self._private is None else Fraction(self._private.scale)


@cache
def _units(exponent: int) -> Fraction:
    """Return a scale, from its exponent."""
    return Fraction(UNITS) * Fraction(2) ** exponent
