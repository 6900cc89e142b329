"""Private fits that are worth nothing say so, by public numbers or by what was released."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

__all__ = ["LowSignalWarning", "noise_share", "warn_of_noise"]


class LowSignalWarning(UserWarning):
    """The noise is so large beside what can be learned that the fit is likely to be worth nothing.

    Examples
    --------
    As an error, so that such a fit is not taken for a good one:

    >>> import warnings
    >>> warnings.filterwarnings("error", category=LowSignalWarning)
    """


def noise_share(noise: NDArray[np.float64], rates: NDArray[np.float64], batch_size: int, parameters: int) -> float:
    """Return how far noise alone moves the parameters of noisy descent, relative to the longest way of its gradients.

    Parameters
    ----------
    noise, rates : ndarray, shape (steps,)
        Each step's noise on the sum of clipped gradients, over the clipping norm, and learning rate.
    batch_size : int
    parameters : int
        How many there are.

    Returns
    -------
    float
        The root of the expected square of the noise, over the way that gradients take when all of them are as long as
        the clipping norm and have one direction in all steps: ``sqrt(d sum (rate noise)^2) / (B sum rate)``. It is made
        of public numbers, so nothing is leaked by looking at it.

    Examples
    --------
    >>> round(noise_share(np.full(60, 57.8), np.full(60, 2.0), 1000, 650), 2)
    0.19
    """
    moved = float(np.sqrt(parameters * np.square(rates * noise).sum()))
    return moved / (batch_size * float(rates.sum()))


def warn_of_noise(share: float, most: float, advice: str, *, stacklevel: int) -> None:
    """Warn when the noise is more than a share of the most that can be learned.

    Parameters
    ----------
    share : float
        What `noise_share` says.
    most : float
        Above it fits were found to be worth nothing (``python -m benchmarks.private_learners worth``).
    advice : str
        What makes it smaller, in proportion.
    stacklevel : int
        Counted from here.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True) as found:
    ...     warnings.simplefilter("always")
    ...     warn_of_noise(0.9, 0.3, "as many records, or as large an epsilon,", stacklevel=1)
    >>> print(found[0].message)
    the noise moves the parameters 0.9 times as far as gradients could that all agree, and above 0.3 fits are worth \
nothing: about 3 times as many records, or as large an epsilon, or fewer parameters, are needed
    """
    if share > most:
        message = (
            f"the noise moves the parameters {share:.2g} times as far as gradients could that all agree, and above "
            f"{most:g} fits are worth nothing: about {share / most:.2g} times {advice} or fewer parameters, are needed"
        )
        warnings.warn(message, LowSignalWarning, stacklevel=stacklevel + 1)
