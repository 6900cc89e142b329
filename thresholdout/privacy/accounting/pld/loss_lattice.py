"""Losses on a lattice: a distribution with larger divergences, and one with smaller ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from graphs.numerics.rounding import UNIT
from thresholdout.privacy.accounting.pld.loss import Floats, Loss, Piece

__all__ = ["Lattice", "exchanged", "nodes", "optimistic", "pessimistic"]

# Any shares within the bounds of PROOFS.md, L4, are valid; these keep the remaining share at least 0.002.
_MOST = 0.9  # share of a bin that the next lower one may draw
_LEFT = 0.98  # share of the rest of a bin that the next higher one may draw
_WORTH = 0.02  # widths by which a bin's loss is above its point before it is joined with the next higher one
_ROUNDS = 8  # of joining; bins that are then still below their points are left out
_WIDE = 600.0  # nats, above which nothing is drawn from lower bins, not to overflow
_SURE = 1e-12  # more than the relative rounding errors of the drawn shares, 2e-13


def exchanged(mass: Floats, gain: Floats, step: float) -> Floats:
    """Return masses at the points of a lattice whose divergences, composed or not, are at most those of bins.

    A bin whose loss is above its point randomly draws outcomes of the next lower one, up to the largest share that is
    valid. A bin whose loss is below its point draws the smallest valid share of the next higher one. Bins that cannot
    are joined with a neighbour.

    Notes
    -----
    Drawing costs some variance, in the square of the width; lowering losses instead would cost some of the mean.
    PROOFS.md, L4.

    Examples
    --------
    A bin that lies a quarter of a width above its point, and the one below it:

    >>> found = exchanged(np.array([0.5, 0.5]), np.array([0.0, -0.5 * math.expm1(-0.025)]), 0.1)
    >>> bool(0.35 < found[0] < 0.4 and 0.6 < found[1] < 0.65)
    True
    """
    mass, gain = _raised(mass, gain, step)
    mass, gain, needed = _lowered(mass, gain, step)
    cost = _next_higher(-_from_above(mass, gain, step))
    able = (gain > 0) & (cost > 0)
    # Shares drawn of the lower bin are rounded down, of the higher one up: both keep the gain at least 0.
    wanted = np.where(able, gain / np.where(able, cost, 1.0), 0.0) * (1.0 - _SURE)
    most = _LEFT * _next_higher(1.0 - _next_higher(needed))
    down, up = needed, np.minimum(most, wanted)  # upper bounds of the shares drawn of the next higher and lower bins
    # The rest of a bin falls with the shares drawn of it: two passes turn upper bounds of shares into lower bounds of
    # the rest, and back into closer upper bounds.
    for _ in range(_ROUNDS):
        left = _left(down, up)
        left = _left(needed * left, np.minimum(most, wanted * left))
        down, up = needed * left, np.minimum(most, wanted * left)
    up = np.minimum(most, wanted * _left(down, up))
    found: Floats = _left(down, up) * mass + up * _next_higher(mass) + down * _next_lower(mass)
    return found * (1.0 - 16.0 * UNIT)  # the shares of one bin may add up to 1 and some units


def _left(down: Floats, up: Floats) -> Floats:
    """Return the rest of each bin when the next lower and the next higher one draw shares of it."""
    return np.maximum(1.0 - _next_higher(down) - _next_lower(up), 0.0)


def _next_higher(values: Floats) -> Floats:
    """Return the values that bins receive if each hands its own to the next higher one."""
    return np.concatenate(([0.0], values[:-1]))


def _next_lower(values: Floats) -> Floats:
    return np.concatenate((values[1:], [0.0]))


def _from_above(mass: Floats, gain: Floats, step: float) -> Floats:
    """Return the gains for the next higher points, at most: ``mass - exp(step) (mass - gain)``."""
    if step > _WIDE:
        return np.full(mass.size, -math.inf)
    growth = math.expm1(step)
    with np.errstate(over="ignore"):
        first, second = (1.0 + growth) * gain, growth * mass
        return first - second - 16.0 * UNIT * (np.abs(first) + second)


def _from_below(mass: Floats, gain: Floats, step: float) -> Floats:
    """Return the gains for the next lower points, at most: ``mass - exp(-step) (mass - gain)``."""
    first, second = math.exp(-step) * gain, -math.expm1(-step) * mass
    return first + second - 16.0 * UNIT * (np.abs(first) + second)


def _joined(mass: Floats, gain: Floats, moving: Floats, their: Floats) -> tuple[Floats, Floats]:
    """Return upper bounds of masses and of gains, with those that bins receive."""
    joins = moving > 0
    more = np.where(joins, gain + their - 16.0 * UNIT * (np.abs(gain) + np.abs(their)), gain)
    return np.where(joins, (mass + moving) * (1.0 - 4.0 * UNIT), mass), more


def _raised(mass: Floats, gain: Floats, step: float) -> tuple[Floats, Floats]:
    """Join bins that the next lower one cannot supply with the next higher one, if that can make up for it."""
    cost = _next_higher(-_from_above(mass, gain, step))
    out = (gain > 0) & (gain > _MOST * cost) & (gain > _WORTH * step * mass)
    out[-1:] = False
    for _ in range(_ROUNDS):
        if not out.any():
            break
        stay = np.where(out, 0.0, mass), np.where(out, 0.0, gain)
        moved = np.where(out, _from_above(mass, gain, step), 0.0)
        found = _joined(*stay, _next_higher(np.where(out, mass, 0.0)), _next_higher(moved))
        helps = _next_lower(_from_below(*found, step))
        short = (found[1] < 0) & (-found[1] > 0.99 * _MOST * helps)
        if not (_next_lower(short.astype(np.float64)) > 0)[out].any():
            return found
        out &= ~(_next_lower(short.astype(np.float64)) > 0)
    return mass, gain


def _lowered(mass: Floats, gain: Floats, step: float) -> tuple[Floats, Floats, Floats]:
    """Return bins and the shares of the next higher ones that they draw; those that cannot join the next lower one."""
    for trial in range(_ROUNDS):
        helps = _next_lower(_from_below(mass, gain, step))
        able = (gain < 0) & (helps > 0)
        drawn = np.where(able, -gain / np.where(able, helps, 1.0), 0.0) * (1.0 + _SURE)
        short = (gain < 0) & (~able | (drawn > _MOST))
        drawn = np.where(short, 0.0, drawn)
        if not short.any():
            break
        if trial == _ROUNDS - 1:  # leaving outcomes out is allowed
            return np.where(gain < 0, 0.0, mass), np.maximum(gain, 0.0), np.zeros(mass.size)
        stay = np.where(short, 0.0, mass), np.where(short, 0.0, gain)
        moved = np.where(short, _from_below(mass, gain, step), 0.0)
        mass, gain = _joined(*stay, _next_lower(np.where(short, mass, 0.0)), _next_lower(moved))
    return mass, gain, drawn


_PANEL = 1.0 / 48.0  # longest cell: its half is the r <= 1/96 of the quadrature with 5 nodes (PROOFS.md, L3)

_NARROW = 1.0 / 1024.0  # longest cell of the quadrature with 3 nodes, r <= 1/2048

_CHUNK = 1 << 17  # cells at a time: some MB for each array

_NEAR = 1e-4  # widths; a smaller distance of the heaviest bin from its point makes no difference

_LOWER = 1e-12  # share of the distance by which points move that covers its rounding, downwards

_CLOSE = 0.01  # widths within which the heaviest bin's loss has to be of its point, or the ends of bins move again

_MOVES = 5  # trials of that; any ends are valid

_UNDERFLOW = 1e-290  # more than all densities together that are too small for floats

_FAR = 600.0  # outcomes whose loss is this far from their bin's are left out of it, not to overflow

_RULES = {order: np.polynomial.legendre.leggauss(order) for order in (3, 5)}


@dataclass(frozen=True)
class Lattice:
    """Masses under P at losses ``offset + step * (first + j)``, in nats, and at infinity.

    Masses are at least 0 and need not add up to 1 (PROOFS.md, L1).
    """

    mass: Floats
    first: int
    step: float
    offset: float
    infinite: float

    @property
    def losses(self) -> Floats:
        """Losses of the masses, without the offset."""
        found: Floats = (self.first + np.arange(self.mass.size, dtype=np.float64)) * self.step
        return found


def _panels(low: float, high: float, width: float = _PANEL) -> Floats:
    return np.linspace(low, high, max(2, math.ceil((high - low) / width * (1 + 1e-9)) + 1))


def nodes(loss: Loss) -> tuple[Floats, Floats]:
    """Return losses and weights of a rough quadrature, for first guesses."""
    losses, weights = [np.array([atom[0] for atom in loss.atoms])], [np.array([atom[1] for atom in loss.atoms])]
    for piece in loss.pieces:
        edges = _panels(piece.low, piece.high, 1.0 / 3.0)
        t, w = _points(edges, 5)
        losses.append(piece.loss(t).ravel())
        weights.append((piece.density(t) * w).ravel())
    return np.concatenate(losses), np.concatenate(weights)


def _points(edges: Floats, order: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of a Gauss-Legendre rule on each cell, shape (order, cells)."""
    x, w = _RULES[order]
    half = 0.5 * np.diff(edges)
    middle = 0.5 * (edges[1:] + edges[:-1])
    return middle + np.multiply.outer(x, half), np.multiply.outer(w, half)


def _integrals(piece: Piece, edges: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """Return P's mass of each cell, and the integral of ``1 - exp(reference - loss)`` over it."""
    mass, gain = np.empty(reference.size), np.empty(reference.size)
    for start in range(0, reference.size, _CHUNK):
        part = slice(start, min(start + _CHUNK, reference.size))
        ends = edges[part.start : part.stop + 1]
        narrow = np.diff(ends) <= _NARROW
        for order, chosen in ((3, narrow), (5, ~narrow)):
            if not chosen.any():
                continue
            x, w = _RULES[order]
            left, right = ends[:-1][chosen], ends[1:][chosen]
            half, middle = 0.5 * (right - left), 0.5 * (right + left)
            t = middle + np.multiply.outer(x, half)
            dens = piece.density(t) * np.multiply.outer(w, half)
            mass[part][chosen] = dens.sum(axis=0)
            dens *= -np.expm1(np.minimum(reference[part][chosen] - piece.loss(t), _FAR))
            gain[part][chosen] = dens.sum(axis=0)
    return mass, gain


def _invert(piece: Piece, values: Floats) -> Floats:
    """Return outcomes where the loss is about as given, sorted and inside of the piece."""
    if piece.inverse is not None:
        with np.errstate(all="ignore"):
            found = piece.inverse(values)
    else:
        t = _panels(piece.low, piece.high)
        losses = np.maximum.accumulate(piece.loss(t))
        index = np.clip(np.searchsorted(losses, values) - 1, 0, t.size - 2)
        low, high = t[index], t[index + 1]
        below, above = losses[index], losses[index + 1]
        found = low
        for _ in range(3):
            slope = np.where(above > below, above - below, 1.0)
            found = low + (high - low) * np.clip((values - below) / slope, 0.0, 1.0)
            width = 0.02 * (high - low)
            left, right = np.maximum(found - width, low), np.minimum(found + width, high)
            low, high, below, above = left, right, piece.loss(left), piece.loss(right)
    found = found[np.isfinite(found)]
    inside: Floats = np.sort(np.clip(found, piece.low, piece.high))
    return inside


def _extremes(loss: Loss) -> tuple[float, float]:
    ends = [atom[0] for atom in loss.atoms]
    for piece in loss.pieces:
        ends += piece.loss(np.array([piece.low, piece.high])).tolist()
    return (min(ends), max(ends)) if ends else (0.0, 0.0)


def _spread(mass: Floats, first: int, step: float, losses: Floats, masses: Floats, noise: Floats) -> float:
    """Add masses at any losses, split between neighbouring points of the lattice, or a little higher."""
    raised = losses + noise  # larger losses are upper bounds (PROOFS.md, L1)
    index = np.floor(raised / step)
    share = np.clip(np.expm1(index * step - raised) / math.expm1(-step), 0.0, 1.0)
    above = index - first > mass.size - 2
    over = float(masses[above].sum()) * (1.0 + UNIT * (masses.size + 8.0))
    place = np.where(above, 0.0, index - first).astype(np.int64)
    masses = np.where(above, 0.0, masses)
    most = 1.0 + UNIT * (2.0 * float(np.bincount(place).max(initial=0)) + 8.0)
    mass += np.bincount(place, masses * (1.0 - share), minlength=mass.size) * most
    mass += np.bincount(place + 1, masses * share, minlength=mass.size) * most
    return over


def pessimistic(loss: Loss, step: float) -> Lattice:
    """Return masses on a lattice whose divergences, composed or not, are at least those of the loss.

    Notes
    -----
    Connect-the-dots [Doroshenko et al. 2022] splits each outcome's mass between two neighbouring points and keeps its
    masses under P and under Q. PROOFS.md, L2.
    """
    low, high = _extremes(loss)
    first = math.floor(low / step) - 2
    mass = np.zeros(math.ceil((high + loss.slack) / step) - first + 6)
    over = 0.0
    wanted = (first + np.arange(mass.size, dtype=np.float64)) * step
    for piece in loss.pieces:
        edges = np.union1d(_panels(piece.low, piece.high), _invert(piece, wanted))
        losses = np.maximum.accumulate(piece.loss(edges))
        noise = piece.noise(edges)
        unsure = 4.0 * noise * (np.abs(losses) + piece.scale)
        cells, gain = _integrals(piece, edges, losses[:-1])
        gap = np.diff(losses)
        worst = np.maximum(unsure[1:], unsure[:-1])
        with np.errstate(divide="ignore", invalid="ignore"):
            up = (gain + worst * cells) / -np.expm1(-gap)
        # Where the gap of a cell is within its rounding error, all of its mass goes to the higher end.
        up = np.where(gap > 4.0 * worst, np.clip(up, 0.0, cells), cells)
        growth = 1.0 + 2.0 * np.maximum(noise[1:], noise[:-1])
        at = np.zeros(edges.size)
        at[1:] += up * growth
        at[:-1] += (cells - up) * growth
        over += _spread(mass, first, step, losses, at, unsure + loss.slack)
    if held := (*loss.atoms, *loss.below):
        values, chances = np.array(held).T
        over += _spread(mass, first, step, values, chances * (1.0 + 64 * UNIT), 8 * UNIT * np.abs(values) + loss.slack)
    lost = over * (1.0 + 64 * UNIT) + (_UNDERFLOW if loss.pieces else 0.0)
    return Lattice(mass, first, step, 0.0, loss.infinite * (1.0 + 64 * UNIT) + lost)


def optimistic(loss: Loss, upper: Lattice) -> Lattice:
    """Return masses on a lattice whose divergences, composed or not, are at most those of the loss.

    Notes
    -----
    All outcomes of a bin count as one, and bins exchange outcomes until their losses lie on the lattice. Neither makes
    a divergence larger. PROOFS.md, L4.
    """
    step, first, size = upper.step, upper.first, upper.mass.size
    points = (first + np.arange(size, dtype=np.float64)) * step
    held = [round(value / step) - first for value, _ in loss.atoms]
    skew = _skew(upper.mass, step) if loss.pieces else np.zeros(size - 1)
    ends = points[:-1] + 0.5 * step - _beside(skew, held, step)
    moved = 0.0
    for left in reversed(range(_MOVES)):
        mass, gain = _bins(loss, points + moved, ends + moved)
        above = _above_heaviest(mass, gain)
        if abs(above) <= _CLOSE * step or left == 0 or not loss.pieces:
            break
        moved += 1.4 * above  # a bin's loss moves about a third or a half as far as its ends
    certain = loss.certain * (1.0 - 64 * UNIT)
    near = abs(above) <= _NEAR * step
    offsets = ((0.0,) if near else (0.0, above)) if loss.pieces else (_most_at_points(mass, gain, step),)
    return max((_exchanged(upper, mass, gain, moved, offset, certain) for offset in offsets), key=_mean)


def _most_at_points(mass: Floats, gain: Floats, step: float) -> float:
    """Return the move of points with the largest mean, if bins below their points count as the next lower ones."""
    held = mass > 0
    above = -np.log1p(-np.minimum(gain[held] / mass[held], 0.5))
    order = np.argsort(above)
    weights = mass[held][order]
    before = np.concatenate(([0.0], np.cumsum(weights)[:-1])) / weights.sum()
    return float(above[order][np.argmin(step * before - above[order])]) if above.size else 0.0


def _mean(lattice: Lattice) -> float:
    """Return the mean loss, by which the better of two lower bounds is chosen."""
    return float(lattice.mass @ (lattice.losses + lattice.offset))


def _above_heaviest(mass: Floats, gain: Floats) -> float:
    """Return the distance of the heaviest bin's loss above its point."""
    heaviest = int(np.argmax(mass))
    return -math.log1p(-min(float(gain[heaviest] / mass[heaviest]), 0.5)) if mass[heaviest] > 0 else 0.0


def _beside(moves: Floats, held: list[int], step: float) -> Floats:
    """Return the moves of bins' ends; beside an atom, which hides the density, those of their neighbours."""
    for j in held:
        moves[j - 1], moves[j] = 2.0 * moves[j - 2] - moves[j - 3], 2.0 * moves[j + 1] - moves[j + 2]
    found: Floats = np.clip(moves, -0.4 * step, 0.4 * step)
    return found


def _bins(loss: Loss, points: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Return upper bounds of the masses of bins of losses, and of the integrals of ``1 - exp(point - loss)``."""
    size = points.size
    mass, gain, unsure = np.zeros(size), np.zeros(size), np.zeros(size)
    for piece in loss.pieces:
        edges = np.union1d(_panels(piece.low, piece.high), _invert(piece, ends))
        losses = piece.loss(edges)
        bins = np.clip(np.searchsorted(ends, 0.5 * (losses[1:] + losses[:-1])), 0, size - 1)
        reference = points[bins]
        apart = np.maximum(np.abs(reference - losses[1:]), np.abs(reference - losses[:-1]))
        cells, gains = _integrals(piece, edges, reference)
        cells, gains = np.where(apart <= _FAR, cells, 0.0), np.where(apart <= _FAR, gains, 0.0)
        noise = np.maximum(piece.noise(edges[1:]), piece.noise(edges[:-1])) + UNIT * float(np.bincount(bins).max())
        mass += np.bincount(bins, cells * (1.0 - 2.0 * noise), minlength=size)
        gain += np.bincount(bins, gains, minlength=size)
        doubt = 4.0 * noise * (np.abs(reference) + apart + piece.scale + np.expm1(np.minimum(apart, _FAR)))
        unsure += np.bincount(bins, doubt * cells, minlength=size)
    for value, chance in loss.atoms:
        j = int(np.clip(np.searchsorted(ends, value), 0, size - 1))
        mass[j] += chance * (1.0 - 64 * UNIT)
        gain[j] += -math.expm1(float(points[j]) - value) * chance
        unsure[j] += 64 * UNIT * (abs(value) + abs(float(points[j]))) * chance
    return mass, gain - 2.0 * unsure


def _skew(mass: Floats, step: float) -> Floats:
    """Return about the distance of a bin's loss from its middle, between points: the density's slope and Jensen."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.diff(np.log(mass))
    found: Floats = np.nan_to_num(slope, posinf=0.0, neginf=0.0) * step / 12.0 - step**2 / 24.0
    return found


def _exchanged(upper: Lattice, mass: Floats, gain: Floats, moved: float, offset: float, certain: float) -> Lattice:
    """Return the lattice of bins from upper bounds of masses and of integrals of ``1 - exp(point - loss)``.

    Points were moved by one distance, and move by a second one, `offset`. Bins far below their points count as those of
    lower ones.
    """
    step, held = upper.step, np.flatnonzero(mass > 0)
    if not held.size:
        return Lattice(np.zeros(1), 0, step, 0.0, certain)
    mass, share = mass[held], np.minimum(gain[held] / mass[held], 1.0 - UNIT)
    offset -= _LOWER * abs(offset)
    down = np.maximum(np.ceil((offset + np.log1p(-share)) / step - 0.5), 0.0)
    place = held - down.astype(np.int64)
    extra = max(0, -int(place.min()))
    place, size = place + extra, upper.mass.size + extra
    moves = offset - down * step
    with np.errstate(under="ignore"):
        kept = np.exp(moves)
    most = kept * np.abs(share) + np.abs(np.expm1(moves)) + kept * np.abs(moves)
    at = mass * (kept * share - np.expm1(moves) - 32.0 * UNIT * most)
    each = UNIT * np.bincount(place, minlength=size)
    found = np.bincount(place, mass, minlength=size) * (1.0 - 4.0 * each)
    gains = np.bincount(place, at, minlength=size) - 8.0 * each * np.bincount(place, np.abs(at), minlength=size)
    return Lattice(exchanged(found, gains, step), upper.first - extra, step, moved + offset, certain)
