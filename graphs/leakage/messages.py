"""Leakage by message passing: the contraction phi, projective diameters, and messages along a chain.

Proofs of all statements: `graphs/PROOFS.md`, sections 1 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.errors import ArgumentError
from graphs.leakage.chain_budgets import SWEPT, TINY, Span, gain, messages_from_right, nats
from graphs.leakage.profile import Profile
from graphs.numerics.arguments import FloatArray, IntArray, real_array
from graphs.numerics.rounding import UNIT, charges, up

__all__ = ["FAINTEST", "Edges", "along_chain", "along_stretches", "fixed_point", "phi", "projective_diameter"]

#: Equal budgets up to this are bounded by group privacy: their messages would underflow.
FAINTEST = 1e-280

#: Records for which the recursion along a homogeneous chain is evaluated one by one before it continues in bulk.
EXPLICIT = 2048

#: Records covered by one power of a map when a recursion continues in bulk.
STRETCH = 256

#: Relative distance to the fixed point at which the recursion counts as converged; all later records take the limit.
CONVERGED = 2.0**-44


def phi(diameter: FloatArray | float, leakage: FloatArray | float) -> FloatArray:
    """Return the remainder of a leakage behind an edge of a projective diameter.

    If h >= 0 has log-range at most alpha and ln dp/dq has log-range at most D, then E_p h <= exp(phi) E_q h, and no
    smaller number suffices (`graphs/PROOFS.md`, Lemma 2).
    """
    diameter, leakage = np.asarray(diameter, dtype=np.float64), np.asarray(leakage, dtype=np.float64)
    t, r = gain(diameter)
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        value = up(np.expm1(leakage / 2))
        found = up(2 * np.log1p(up(t / (1 / value + r))), 16)
    found = np.maximum(found, TINY)
    result: FloatArray = np.minimum(np.minimum(diameter, leakage), np.where(np.isnan(found), np.inf, found))
    return result


def projective_diameter(potential: FloatArray, relative_error: float = 0.0) -> float:
    """Return the projective diameter of a non-negative matrix.

    Multiplying a row or a column by a positive number changes nothing, and neither does transposition.
    """
    expected = "a matrix of finite numbers that are not negative"
    weights = real_array("potential", potential, expected)
    if weights.ndim != 2 or not np.isfinite(weights).all() or (weights < 0).any():
        raise ArgumentError("potential", f"an array of shape {weights.shape} with other entries", expected)
    weights = weights[(weights > 0).any(axis=1)]
    weights = weights[:, (weights > 0).any(axis=0)]
    if weights.size == 0 or min(weights.shape) == 1:
        return 0.0 if (weights > 0).all() else float("inf")
    if (weights == 0).any():
        return float("inf")
    logs = np.log(weights)
    pad = log_error(logs, relative_error)
    ranges = [np.ptp(logs[a] - logs[a + 1 :], axis=1).max() for a in range(len(logs) - 1)]
    return up(float(max(ranges)) + pad, 2)


def log_error(logs: FloatArray, relative_error: float) -> float:
    """Return a bound on the error of the range of a difference of two rows of computed logarithms."""
    finite = logs[np.isfinite(logs)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    # a range is a difference of two differences: four errors of entries, and rounding of logarithms of this size
    return 4.1 * relative_error + 64 * UNIT * largest


@dataclass(frozen=True, slots=True)
class Edges:
    """Diameters of the edges of a chain, long edges included."""

    steps: IntArray  # shape (J,): lengths m of the edges, increasing, the first 1
    # shape (J,): diameter of the m-step kernel from record i to record i + m, for every i >= len(head)
    diameters: FloatArray
    head: FloatArray  # shape (h, J): the same for the first records, where fewer states are possible

    def keep(self, chosen: IntArray) -> Edges:
        """Return the edges of the chosen lengths (positions in `steps`)."""
        return Edges(self.steps[chosen], self.diameters[chosen], self.head[:, chosen])

    def replaceable(self) -> npt.NDArray[np.bool_]:
        """Return which edges contract no more than as many single steps, from every record; shape (J,).

        If t = tanh(D/4) of the edge of m steps is at least the m-th power of that of one step, the edge contracts less
        than m single steps, up to the rounding of t, and counts the same budgets. The result is all False where the
        first records have edges of their own.
        """
        if len(self.head) or not np.isfinite(self.diameters[0]):
            return np.zeros(len(self.steps), dtype=np.bool_)
        t = gain(self.diameters)[0]
        found: npt.NDArray[np.bool_] = t >= (t[0] * (1 - 64 * UNIT)) ** self.steps
        return found

    def after(self, record: int) -> Edges:
        """Return the edges of the part of the chain that begins at a record."""
        return Edges(self.steps, self.diameters, self.head[record:])

    def of(self, position: int, count: int) -> FloatArray:
        """Return the diameters of the edges of one length that start at records 0 to `count` - 1."""
        start = self.head[:count, position]
        return np.concatenate([start, np.full(count - len(start), self.diameters[position])])


class _Steps:
    """The maps rho_{i+m} -> E + phi(Delta_m, E + eps' + rho_{i+m}) for one eps', on v = expm1(rho/2)."""

    def __init__(self, epsilon: float, edges: Edges) -> None:
        self.steps = edges.steps
        with np.errstate(over="ignore"):
            self.before = up(np.expm1(self.steps * (epsilon / 2)), 18)
            self.after = up(np.expm1((self.steps - 1) * (epsilon / 2)), 18)
        self.t, self.r = gain(edges.diameters)
        self.head_t, self.head_r = gain(edges.head)

    def apply(self, values: FloatArray, t: FloatArray, r: FloatArray, count: int) -> FloatArray:
        """Apply the first `count` maps to one value each, rounding up."""
        f, g = self.before[:count], self.after[:count]
        inner = values * (1 + f) + f
        contracted = t[:count] / (1 / inner + r[:count])
        result: FloatArray = contracted * (1 + g) + g
        return up(result, 16)

    def matrix(self, position: int) -> FloatArray:
        """Return one map as a matrix [[A, B], [C, D]] of positive entries: v -> (A v + B) / (C v + D)."""
        f, g, t, r = (float(x[position]) for x in (self.before, self.after, self.t, self.r))
        q = t * (1 + g) + g * r
        return np.array([[(1 + f) * q, f * q + g], [r * (1 + f), 1 + r * f]])

    def limit(self) -> tuple[float, int]:
        """Return a value that the best map does not exceed when applied to it, and the number of that map.

        The maps are increasing and concave, so a point that is mapped to itself or below bounds every iterate that
        starts below it. The fixed point is computed and enlarged until rounded arithmetic verifies this.
        """
        f, g, t, r = self.before, self.after, self.t, self.r
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            q = t * (1 + g) + g * r
            constant, square = f * q + g, r * (1 + f)
            linear = f + g + f * g - r * ((1 + f) * (2 + g) + f)
            root = np.sqrt(linear**2 + 4 * constant * square)
            fixed = np.where(linear > 0, (linear + root) / (2 * square), 2 * constant / (root - linear))
        fixed = np.where(np.isfinite(fixed), fixed, np.inf)
        best = int(np.argmin(fixed))
        if not np.isfinite(fixed[best]):
            return float("inf"), best
        enlarge = 2.0**-49  # some units above the computed fixed point, doubled until T(v) <= v holds
        while enlarge < 1:
            value = float(fixed[best]) * (1 + enlarge)
            if float(self.apply(np.full(len(f), value), t, r, len(f))[best]) <= value:
                return value, best
            enlarge *= 2
        return float("inf"), best


def fixed_point(epsilon: float, edges: Edges) -> float:
    """Return an upper bound on the message that travels along an endless homogeneous chain, nats."""
    return float(nats(np.array(_Steps(epsilon, edges).limit()[0])))


def along_chain(
    n: int, epsilon: float | FloatArray, edges: Edges, known: npt.NDArray[np.bool_] | None = None
) -> Profile:
    """Return the leakages that messages along a chain give, from both sides.

    With E(i, j) the sum of the budgets strictly between, the message from the right is
    rho_i = min over m of E(i, i+m) + phi(Delta_m, E(i, i+m) + eps'_{i+m} + rho_{i+m}), rho = 0 at the last record
    and at most the sum of all budgets to the right; likewise from the left. The leakage is eps'_i plus both.
    """
    if not isinstance(epsilon, float):
        return _per_record(n, epsilon, edges, known)
    if n == 1 or not FAINTEST < epsilon < 500:
        return Profile.constant(epsilon if n == 1 else up(n * epsilon, 1), n)
    maps = _Steps(epsilon, edges.keep(np.flatnonzero(edges.steps * epsilon < 1000)))
    limit, best = maps.limit()
    starts = len(edges.head)
    if starts == 0 and not np.isfinite(edges.diameters).any():
        return Profile.constant(up(n * epsilon, 1), n)
    right, right_fill = _side(max(n - starts, 1), maps, limit, best, 0)
    left, left_fill = (right, right_fill) if starts == 0 else _side(n, maps, limit, best, starts)
    first = _first_records(n, maps, right, right_fill, starts)
    ends = max(len(right), len(left), starts)
    length = n if 2 * ends >= n else ends
    from_left = _capped(_extended(left, left_fill, length), 0, epsilon)
    from_right = from_left if starts == 0 else _capped(_extended(right, right_fill, length), 0, epsilon)
    early = _capped(first[::-1], n - len(first), epsilon)[::-1]
    if length == n:
        values = from_right[::-1].copy()
        values[:starts] = early
        return Profile.of(up(epsilon + values + from_left, 2))
    far_right, far_left = (float(nats(np.array(fill))) for fill in (right_fill, left_fill))
    head = np.full(ends, far_right)
    head[:starts] = early
    tail = up(epsilon + from_right[::-1] + far_left, 2)
    return Profile.ends(up(epsilon + head + from_left, 2), up(epsilon + far_right + far_left, 2), tail, n)


def along_stretches(lengths: IntArray, epsilon: float, edges: Edges) -> list[FloatArray]:
    """Return the leakages along chains of several lengths, all records of which have the same budget.

    >>> edge = Edges(np.array([1]), np.array([3.58351893845611]), np.zeros((0, 1)))
    >>> [values.round(6) for values in along_stretches(np.array([1, 2]), 0.1, edge)]
    [array([0.1]), array([0.171421, 0.171421])]
    """
    longest = int(lengths.max(initial=1))
    if longest == 1 or not FAINTEST < epsilon < 500 or not np.isfinite(edges.diameters).any():
        return [np.full(n, epsilon if n == 1 else up(n * epsilon, 1)) for n in lengths.tolist()]
    maps = _Steps(epsilon, edges.keep(np.flatnonzero(edges.steps * epsilon < 1000)))
    values = _capped(_extended(*_side(longest, maps, *maps.limit(), 0), longest), 0, epsilon)
    sums = (values[n - 1 :: -1] + values[:n] if n > 1 else np.zeros(1) for n in lengths.tolist())
    return [np.where(both == 0, epsilon, up(epsilon + both, 2)) for both in sums]


def _side(length: int, maps: _Steps, limit: float, best: int, starts: int) -> tuple[FloatArray, float]:
    """Follow the recursion from one end of the chain.

    Returns the values at the first records, and one value that bounds all others. The first `starts` edges have
    diameters of their own (left end only).
    """
    longest = int(maps.steps[-1])
    explicit = min(length, EXPLICIT + starts + longest)
    values = np.zeros(explicit)
    count = 0
    for k in range(1, explicit):
        count += count < len(maps.steps) and maps.steps[count] <= k
        t, r = maps.t, maps.r
        if starts and k - longest < starts:
            t, r = _head_gains(maps, k, count, starts)
        with np.errstate(over="ignore", divide="ignore"):
            found = maps.apply(values[k - maps.steps[:count]], t, r, count)
        values[k] = found.min()
        settled = k >= starts + longest and values[k] >= limit * (1 - CONVERGED)
        if settled and values[k - longest : k + 1].max() <= limit * (1 + CONVERGED):
            return values[: k + 1], max(limit, float(values[k - longest : k + 1].max()))
    window = float(values[max(explicit - longest, 0) :].max())
    if explicit == length or not window <= limit:
        return values, max(limit, window)
    return _continued(values, length, maps, best, limit), limit


def _head_gains(maps: _Steps, k: int, count: int, starts: int) -> tuple[FloatArray, FloatArray]:
    """Return the gains of the edges that end at record k, those that start at the first records included."""
    origin = k - maps.steps[:count]
    early = origin < starts
    t, r = maps.t[:count].copy(), maps.r[:count].copy()
    t[early] = maps.head_t[origin[early], np.flatnonzero(early)]
    r[early] = maps.head_r[origin[early], np.flatnonzero(early)]
    return t, r


def _continued(values: FloatArray, length: int, maps: _Steps, best: int, limit: float) -> FloatArray:
    """Continue a slowly converging recursion in bulk, with powers of the map that is best in the long run.

    Any step length is valid, so one may be repeated; short stretches stay close to the best choice.
    Products of matrices with positive entries have small relative errors entry by entry; their number is charged.
    """
    step = int(maps.steps[best])
    repeats = max(STRETCH // step, 1)
    power = _power(maps.matrix(best), repeats)
    shift = step * repeats
    pieces, last = [values], values
    total = len(values)
    with np.errstate(over="ignore", invalid="ignore"):
        while total < length and not last[-1] >= limit * (1 - CONVERGED):
            source = last[-shift:]
            moved = (power[0, 0] * source + power[0, 1]) / (power[1, 0] * source + power[1, 1])
            last = np.minimum(up(np.where(np.isnan(moved), np.inf, moved), 80 * repeats), limit)
            pieces.append(last)
            total += len(last)
    return np.concatenate(pieces)[:length]


def _power(matrix: FloatArray, exponent: int) -> FloatArray:
    """Return a power of a matrix of positive entries, up to a positive factor."""
    result = np.eye(2)
    while exponent:
        if exponent & 1:
            result = result @ matrix
            result /= result.max()
        matrix = matrix @ matrix
        matrix /= matrix.max()
        exponent >>= 1
    return result


def _first_records(n: int, maps: _Steps, right: FloatArray, fill: float, starts: int) -> FloatArray:
    """Return the messages from the right at the first records, whose edges have diameters of their own."""
    starts = min(starts, n)
    later = starts + np.arange(int(maps.steps[-1]) + 1)
    values = np.concatenate([np.zeros(starts), _look_up(right, fill, n - 1 - later)])
    for i in range(min(starts, n - 1) - 1, -1, -1):
        count = int(np.searchsorted(maps.steps, n - 1 - i, side="right"))
        with np.errstate(over="ignore", divide="ignore"):
            found = maps.apply(values[i + maps.steps[:count]], maps.head_t[i], maps.head_r[i], count)
        values[i] = found.min()
    return values[:starts]


def _look_up(values: FloatArray, fill: float, at: IntArray) -> FloatArray:
    inside = (at >= 0) & (at < len(values))
    return np.where(inside, values[np.where(inside, at, 0)], fill)


def _extended(values: FloatArray, fill: float, length: int) -> FloatArray:
    return np.concatenate([values[:length], np.full(max(length - len(values), 0), fill)])


def _capped(values: FloatArray, fewest: int, epsilon: float) -> FloatArray:
    """Return messages in nats, capped by the budgets behind them: those of `fewest` records and one more each."""
    records = fewest + np.arange(len(values), dtype=np.float64)
    return np.minimum(nats(values), up(records * epsilon, 1))


def _per_record(n: int, epsilon: FloatArray, edges: Edges, known: npt.NDArray[np.bool_] | None) -> Profile:
    """Return the leakages when the records have different budgets."""
    amounts, unit = charges(epsilon)
    edges = _few(edges, float(epsilon.mean()), n)
    spans = [_span(edges, j, n, known) for j in range(len(edges.steps)) if edges.steps[j] < n]
    right = messages_from_right(amounts, unit, spans)
    left = messages_from_right(amounts[::-1], unit, [span.reversed() for span in spans])[::-1]
    return Profile.of(np.where((left == 0) & (right == 0), epsilon, up(epsilon + left + right, 2)))


def _span(edges: Edges, position: int, n: int, known: npt.NDArray[np.bool_] | None) -> Span:
    """Return the edges of one length, from each record on, with their gains; nothing passes a known record."""
    step = int(edges.steps[position])
    diameters = edges.of(position, n - step)
    starts = min(len(edges.head), n - step)
    own, later = gain(edges.head[:starts, position]), gain(edges.diameters[position : position + 1])
    t, r = (np.concatenate([x, np.full(n - step - starts, y[0])]) for x, y in zip(own, later, strict=True))
    if known is not None:
        passes = ~(known[:-step] | known[step:])
        diameters, t = np.where(passes, diameters, 0.0), np.where(passes, t, 0.0)
    return Span(step, diameters, t, r)


def _few(edges: Edges, epsilon: float, n: int) -> Edges:
    """Return a selection of edge lengths small enough for sweeps over all records."""
    count = max(SWEPT // (400 * n), 8)
    if len(edges.steps) <= count:
        return edges
    maps = _Steps(epsilon, edges.keep(np.flatnonzero(edges.steps * epsilon < 1000)))
    best = maps.limit()[1]
    first = int(np.flatnonzero(np.isfinite(edges.diameters))[0]) if np.isfinite(edges.diameters).any() else 0
    spread = np.geomspace(first + 1, max(best, first) + 1, count - 1).astype(np.int64) - 1
    return edges.keep(np.unique(np.r_[0, spread, best]))
