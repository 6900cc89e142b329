"""The best Thresholdout by each route."""

from __future__ import annotations

import math

from thresholdout.certificates.posterior import mean_total_variation, posterior_tolerance, posterior_widths
from thresholdout.certificates.setting import Setting
from thresholdout.certificates.transcript import ANSWER_SHARE, SHARES, Radius, transcript
from thresholdout.planning.use import Alternative, Use

__all__ = ["by_posterior", "by_transcript", "guard_of", "transcript_tolerance"]

_FINEST = 20  # answer grids down to 2**-20
_SMALLEST_SCALE, _LARGEST_SCALE = 1e-11, 1e3
_ROUNDING = 1e-9
_CLOSE = 0.02  # relative step of the noise scale at which the search stops; the tolerance is flat there
_MOST_STEPS = 12


def by_transcript(use: Use, noise_share: float | None = None) -> Alternative:
    """Choose noise scale and answer grid for the transcript route.

    Parameters
    ----------
    use : Use
        What the guard is for.
    noise_share : float, optional
        Share of the tolerance that the noise takes, as declared by default.

    Returns
    -------
    Alternative
        With an infinite tolerance when no useful variance inflation is known.

    Notes
    -----
    The radius does not depend on the noise, and grows as the grid gets finer; the error of an answer from the holdout
    contains half a step. The smallest tolerance without noise, over all grids, is divided by one minus the noise's
    share; then grid and noise scale are those with the most noise within that, the finest grid among equals.
    """
    if not use.concentrates:
        return Alternative("thresholdout", "transcript", math.inf)
    kept = use.target.noise_share if noise_share is None else noise_share
    radii = _radii(use)
    tolerance = _smallest(use, radii) / (1.0 - kept)
    best = -math.inf, 1.0
    for (share, grid), radius in radii.items():
        spared = use.beta * (1.0 - share)
        train = use.quiet + use.law.surprise_quantile(spared * (1.0 - ANSWER_SHARE))
        holdout = use.law.answer_quantile(spared * ANSWER_SHARE)
        scale = min((tolerance - radius - use.margin) / train, (tolerance - radius - grid / 2) / holdout)
        if scale > best[0]:
            best = scale, grid
    return _loudest(use, *best, tolerance)


def transcript_tolerance(use: Use, noise_share: float | None = None) -> float:
    """Return the tolerance of `by_transcript`, without looking for its parameters; never below it.

    Parameters
    ----------
    use, noise_share
        As in `by_transcript`.
    """
    if not use.concentrates:
        return math.inf
    kept = use.target.noise_share if noise_share is None else noise_share
    return _smallest(use, _radii(use)) / (1.0 - kept) * (1.0 + _ROUNDING)


def _radii(use: Use) -> dict[tuple[float, float], float]:
    """Largest radius for each share of beta and each grid."""
    grids = [2.0**-bits for bits in range(_FINEST, 0, -1)]
    return {(share, grid): _radius(use, share, grid) for share in SHARES for grid in grids}


def _smallest(use: Use, radii: dict[tuple[float, float], float]) -> float:
    """Return the smallest tolerance without noise."""
    return min(max(use.margin, grid / 2) + radius for (_, grid), radius in radii.items())


def _radius(use: Use, share: float, grid: float) -> float:
    levels = round(1.0 / grid) + 1
    return Radius(use.n, use.inflation, levels, use.beta * share, use.queries, use.hits).largest()


def _loudest(use: Use, scale: float, grid: float, tolerance: float) -> Alternative:
    """Raise the noise scale as far as the certificate allows; it may be better than the estimate behind the scale."""

    def guard(candidate: float) -> Alternative:
        setting = use.setting(_clipped(candidate), grid)
        return guard_of(setting, "transcript", transcript(setting).tolerance)

    best, low, high = guard(scale), scale, 2.0 * scale
    while high > low * (1.0 + _ROUNDING):
        middle = (low + high) / 2.0
        louder = guard(middle)
        if louder.tolerance <= tolerance:
            best, low = louder, middle
        else:
            high = middle
    return best


def by_posterior(use: Use, expected: float | None = None) -> Alternative:
    """Choose the noise scale for the posterior route.

    Parameters
    ----------
    use : Use
        What the guard is for.
    expected : float, optional
        Near which value the answers are likely to be, in [0, 1]: their intervals are narrow there. Beliefs about means
        near 0 or 1 move little, so less noise is best; the tolerance, which is for answers anywhere, is larger.

    Returns
    -------
    Alternative
        With the tolerance for answers anywhere.

    Notes
    -----
    The second term of the tolerance is nearly a power of the noise scale: the exponent is read off the last two
    evaluations, and the optimum of the sum follows. Every evaluation is a valid tolerance; the smallest counts.
    """
    unit = use.law.superquantile(use.beta, use.quiet)
    scale = _clipped(math.sqrt(9.0 * use.hits / (16.0 * use.n * unit)))
    best = Alternative("thresholdout", "posterior", math.inf)
    exponent, last = 1.0, (math.nan, math.nan)
    for _ in range(_MOST_STEPS):
        setting = use.setting(scale, None)
        variation = mean_total_variation(use.model, setting.epsilon)
        tolerance = posterior_tolerance(setting, variation)
        if tolerance < best.tolerance:
            best = guard_of(setting, "posterior", tolerance)
        here = math.log(scale), math.log(variation)
        if here[0] != last[0] and not math.isnan(last[0]):
            exponent = min(1.5, max(0.25, (last[1] - here[1]) / (here[0] - last[0])))
        last = here
        step = math.log(exponent * variation / (scale * unit)) / (1.0 + exponent)
        if abs(step) < _CLOSE:
            break
        scale = _clipped(scale * math.exp(step))
    return best if expected is None or best.noise_scale is None else _near(use, expected, best.noise_scale)


def _near(use: Use, expected: float, widest: float) -> Alternative:
    """Choose the noise scale at which the interval of an answer with a likely value is narrowest."""
    from scipy.optimize import minimize_scalar

    def width(log_scale: float) -> float:
        return posterior_widths(use.setting(_clipped(math.exp(log_scale)), None)).expected(expected)

    limits = math.log(widest / 64.0), math.log(widest * 2.0)
    found = minimize_scalar(width, bounds=limits, method="bounded", options={"xatol": _CLOSE})
    setting = use.setting(_clipped(math.exp(float(found.x))), None)
    return guard_of(setting, "posterior", posterior_widths(setting).width)


def _clipped(scale: float) -> float:
    return min(max(scale, _SMALLEST_SCALE), _LARGEST_SCALE)


def guard_of(setting: Setting, route: str, tolerance: float, *, offered: bool = True, note: str = "") -> Alternative:
    """Return a guard as an alternative."""
    chosen = setting.parameters
    return Alternative(
        "thresholdout", route, tolerance, chosen.threshold, chosen.noise_scale, chosen.grid, offered, note
    )
