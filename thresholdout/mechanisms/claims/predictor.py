"""Placing a claim: the information of the training value and of earlier answers about the holdout's value.

Validity does not depend on any of this: a claim may be any function of the public history. The prediction determines
how often claims are confirmed, and so the width of answers.

The difference ``h - t`` between a query's holdout value and its training value is modelled as normal. It is sampling
noise of both parts, half of whose variance all queries share (models that fail on the same records), and a shift of
their training values that all queries share too (cross-validated models are fitted to fewer records; resubstitution
flatters). With v the variance of one record's value, c = 1/n + 1/n_train and b = 0.02 min(t, 1-t) sqrt(min(1,
1,000/n_train)),

    h - t = u . F + e,   u = (sqrt(v c / 2), b),   F ~ Normal(0, I_2),   e ~ Normal(0, v c / 2).

So the regression on all earlier answers is one on two common factors. Its memory is the precision and the information
of F: five numbers, for any number of queries. An answer is an observation of h as far as it is released: a normal law
that is cut to the confirmed cell, by its first two moments. All variances are multiplied by kappa^2 >= 1, the mean
squared surprise of the last few answers. Training values that are no estimates of anything (a model's score on the
records that it was fitted to) then make wide claims instead of many failures. One surprise counts at most `_OUTLIER`
times the allowance of kappa: a single candidate with a training value far off does not widen the claims about all
others, and a run of them still does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["SHARED", "Prediction", "PredictorState", "learn", "predict"]

# A model that is cross-validated in five folds lacks a fifth of its records. Where the error falls as n^-0.1, which is
# slow, that is 2 % of the error.
_SHIFT: Final = 0.02
# More records remove a part of the error that falls at least as n^-1/2. From 1,000 records on, the shift falls as
# sampling does: a constant one would be most of a prediction (simulated searches of 20 queries, scores near 0.5,
# n_train = n). Where training values do not flatter, answers at 5,000 records are 6 % narrower, and at 20,000 records
# 13 % narrower, than with a shift that falls from 10,000 records on. Where they flatter by 1 %, they are 11 % narrower
# at 20,000 records and as wide at 100,000; by 2 % at 100,000 records, they are 8 to 13 % wider.
_SHIFT_RECORDS: Final = 1_000.0
SHARED: Final = 0.5
"""Share of the sampling variance: two models of one search are wrong on about half of the same records."""
_ROOT: Final = math.sqrt(2.0)
_PRIOR: Final = 4.0  # answers without surprise that the first ones are averaged with: one surprise alone is no rule
_FADING: Final = 0.5  # a surprise counts half at the next answer: a search moves on to other models
_OUTLIER: Final = 5.0  # squared deviations, beyond 97 % of a normal law: one outlier widens claims by no more
_LARGEST: Final = 1e4  # squared deviations: keeps sums of states finite


@dataclass(frozen=True, slots=True)
class PredictorState:
    """The memory of earlier answers: precision and information of the two common factors.

    `surprise` and `weight` are squared surprises of the answers in standard deviations, and their number, both with
    fading weights.
    """

    xx: float = 1.0
    xy: float = 0.0
    yy: float = 1.0
    x: float = 0.0
    y: float = 0.0
    surprise: float = 0.0
    weight: float = 0.0

    @property
    def kappa(self) -> float:
        """The factor by which standard deviations exceed the model's."""
        return math.sqrt(max(1.0, (_PRIOR + self.surprise) / (_PRIOR + self.weight)))


@dataclass(frozen=True, slots=True)
class Prediction:
    """A normal prediction of a query's holdout value, in units of the range.

    `loadings` are u, the query's dependence on the common factors, and `own` is the variance of the rest. kappa has
    multiplied the deviation, and its square the own variance. `train` is the training value.
    """

    mean: float
    deviation: float
    loadings: tuple[float, float]
    own: float
    kappa: float
    train: float


def predict(
    memory: PredictorState, train: float, variance: float, effective: float, effective_train: float
) -> Prediction:
    """Predict the holdout value of the next query."""
    sampling = variance * (1.0 / effective + 1.0 / effective_train)
    shift = _SHIFT * math.sqrt(min(1.0, _SHIFT_RECORDS / effective_train))
    first, second = math.sqrt(SHARED * sampling), shift * 0.5 * (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * variance)))
    own = (1.0 - SHARED) * sampling
    m = memory
    determinant = m.xx * m.yy - m.xy * m.xy
    moved = (first * (m.yy * m.x - m.xy * m.y) + second * (m.xx * m.y - m.xy * m.x)) / determinant
    spread = (first * first * m.yy - 2.0 * first * second * m.xy + second * second * m.xx) / determinant
    deviation = m.kappa * math.sqrt(max(0.0, spread) + own)
    return Prediction(train + moved, deviation, (first, second), own, m.kappa, train)


def learn(memory: PredictorState, made: Prediction, low: float, high: float) -> PredictorState:
    """Remember that the holdout value was between two numbers."""
    mean, variance = _cut_normal((low - made.mean) / made.deviation, (high - made.mean) / made.deviation)
    m = memory
    surprise = min(_LARGEST, made.kappa**2 * min(_OUTLIER, mean * mean + variance))
    faded = _FADING * m.surprise + surprise, _FADING * m.weight + 1.0
    if variance >= 0.999:  # a cell of this width is not informative
        return PredictorState(m.xx, m.xy, m.yy, m.x, m.y, *faded)
    deviation = made.deviation / made.kappa
    noise = deviation * deviation * variance / (1.0 - variance)  # of an observation that would leave this variance
    seen = made.mean + made.deviation * mean / (1.0 - variance) - made.train
    first, second = made.loadings
    precision = 1.0 / (made.own + noise)
    return PredictorState(
        m.xx + first * first * precision,
        m.xy + first * second * precision,
        m.yy + second * second * precision,
        m.x + first * seen * precision,
        m.y + second * seen * precision,
        *faded,
    )


def _cut_normal(low: float, high: float) -> tuple[float, float]:
    """Return mean and variance of a standard normal variable that is cut to an interval."""
    if low > 0.0:  # the left tail is the accurate one
        mean, variance = _cut_normal(-high, -low)
        return -mean, variance
    if high < -6.0 or high - low < 1e-6:  # a cell far out, or a point: near its inner end
        width = high - low
        rate = -high + 1.0 / max(1.0, -high)
        inside = min(0.5 * width, 1.0 / rate)
        # exponential beyond the inner end, or uniform where the cell is shorter
        return high - inside, max(1e-9, min(inside * inside, width * width / 12.0))
    mass = 0.5 * (math.erfc(-high / _ROOT) - math.erfc(-low / _ROOT))
    at_low, at_high = _density(low), _density(high)
    mean = (at_low - at_high) / mass
    variance = (
        1.0 + (low * at_low if at_low else 0.0) / mass - (high * at_high if at_high else 0.0) / mass - mean * mean
    )
    return mean, min(1.0, max(1e-9, variance))


def _density(z: float) -> float:
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) if abs(z) < 38.0 else 0.0
