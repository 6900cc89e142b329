"""Natural parameters of exponential families, and of Gaussians with their moments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.lapack import dpotrf

from graphs.numerics.rounding import ULP
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, number

__all__ = ["CLIP_MODES", "ClipMode", "Floats", "GaussianNatural", "Natural", "clip_norm_of"]

Floats: TypeAlias = NDArray[np.float64]

ClipMode: TypeAlias = Literal["joint", "separate"]

CLIP_MODES: tuple[ClipMode, ...] = ("joint", "separate")

# Between these, squares neither overflow nor vanish beside the square of the norm; the proof of the clipping needs it.
SMALLEST_NORM, LARGEST_NORM = 1e-100, 1e100


def clip_norm_of(value: object, name: str = "clip_norm") -> float:
    """Return a norm to clip to, in [1e-100, 1e100]."""
    expected = f"a number in [{SMALLEST_NORM:g}, {LARGEST_NORM:g}]"
    found = number(value, name, expected)
    if not SMALLEST_NORM <= found <= LARGEST_NORM:
        raise InputError(name, repr(found), expected)
    return found


class Natural(ABC):
    """Natural parameters of a member of an exponential family, in one flat, read-only vector `values`."""

    __slots__ = ("values",)

    values: Floats

    @abstractmethod
    def with_values(self, values: Floats) -> Self:
        """Return parameters of the same shapes with other values, unchecked."""

    @abstractmethod
    def arrays(self) -> dict[str, Floats]:
        """Return the parameters as named arrays, which are views."""

    @abstractmethod
    def project(self, rho: float = 1e-4) -> Self:
        """Return valid parameters, the object itself when it is valid; numbers that must be positive become rho."""

    @abstractmethod
    def is_pd(self) -> bool:
        """Whether the parameters are those of a proper density."""

    @abstractmethod
    def _blocks(self) -> tuple[slice, ...]:
        """Return the parts of `values` that are clipped separately in the separate mode."""

    def mirror(self, values: Floats) -> Floats:
        """Return values, of shape (..., size), in which entries that must be equal are equal."""
        return values

    def repair(self, default: Self) -> Self:
        """Return the parameters with the default's in place of entries that are not finite."""
        return self.with_values(np.where(np.isfinite(self.values), self.values, default.values))

    def __add__(self, other: Self) -> Self:
        return self.with_values(self.values + other.values)

    def __sub__(self, other: Self) -> Self:
        return self.with_values(self.values - other.values)

    def scale(self, t: float) -> Self:
        """Return the parameters of the density to the power of t."""
        return self.with_values(t * self.values)

    def blocks(self, mode: ClipMode = "joint") -> tuple[slice, ...]:
        """Return the parts of `values` that are clipped, each of which is a query of its own."""
        if mode == "joint":
            return (slice(0, self.values.size),)
        chosen(mode, "clip_mode", CLIP_MODES)
        return self._blocks()

    def norms(self, mode: ClipMode = "joint") -> tuple[float, ...]:
        """Return the Euclidean norm of each part of `blocks`, matrices counting with all entries."""
        return tuple(_length(self.values[block]) for block in self.blocks(mode))

    def norm(self, mode: ClipMode = "joint") -> float:
        """Return the largest of the norms of `norms`: the parameters are within C when it is at most C."""
        return max(self.norms(mode))

    def clip(self, C: float, mode: ClipMode = "joint") -> Self:
        """Return the parameters scaled down to exact norms of at most C, together or block by block (PROOFS.md, E5)."""
        if not SMALLEST_NORM <= C <= LARGEST_NORM:
            clip_norm_of(C, "C")
        clipped = None
        for block in self.blocks(mode):
            values = self.values[block]
            # A computed norm of at most this is an exact norm of at most C (E5).
            limit = C * (1 - (values.size + 16) * ULP)
            length = _length(values)
            if length <= limit:
                continue
            if not math.isfinite(length):
                largest = float(np.abs(values).max())
                if not math.isfinite(largest):
                    raise InputError("values", "an entry that is not finite", "finite natural parameters")
                values = values / largest
                length = _length(values)
            clipped = self.values.copy() if clipped is None else clipped
            clipped[block] = values * (limit / length)
        return self if clipped is None else self.with_values(clipped)


def _length(values: Floats) -> float:
    with np.errstate(over="ignore"):  # `clip` divides by the largest entry when squares overflow
        return math.sqrt(np.dot(values, values))


class GaussianNatural(Natural):
    """A Gaussian, or a block-diagonal one of several components: log-density eta.w - w.Lam.w/2, up to a constant.

    `eta` (precision times mean) has shape (..., d); clipping takes the leading axes, components, together. `Lam` is the
    symmetric precision, shape (..., d, d), or its diagonal. It need not be positive: sites of expectation propagation
    may have negative precisions. No factor -1/2 is in ``Lam``, which matters for the clipping norm.
    """

    __slots__ = ("_shape", "diagonal")

    diagonal: bool

    def __init__(self, eta: ArrayLike, Lam: ArrayLike) -> None:
        first, second = np.asarray(eta, dtype=np.float64), np.asarray(Lam, dtype=np.float64)
        if first.ndim < 1 or not first.size:
            raise InputError("eta", f"an array of shape {first.shape}", "an array of shape (..., d)")
        diagonal = second.ndim == first.ndim
        if second.shape != (first.shape if diagonal else (*first.shape, first.shape[-1])):
            expected = f"an array of shape {(*first.shape, first.shape[-1])}, or {first.shape} for a diagonal"
            raise InputError("Lam", f"an array of shape {second.shape}", expected)
        for name, values in (("eta", first), ("Lam", second)):
            if not np.isfinite(values).all():
                raise InputError(name, "an entry that is not finite", "finite natural parameters")
        if not diagonal:
            transposed = second.swapaxes(-1, -2)
            # More than the rounding of a symmetric matrix; less is averaged away.
            if np.abs(second - transposed).max() > 1e-8 * np.abs(second).max():
                raise InputError("Lam", "a matrix that is not symmetric", "symmetric matrices")
            second = (second + transposed) / 2
        self.values = np.concatenate([first.ravel(), second.ravel()])
        self._shape, self.diagonal = first.shape, diagonal

    @classmethod
    def from_moments(cls, mean: ArrayLike, cov: ArrayLike) -> Self:
        """Return the Gaussian of a mean, shape (..., d), and a covariance, shape (..., d, d) or (..., d)."""
        moments = cls(mean, cov)
        precision = moments._inverse("cov")
        return moments._of(_times(precision, moments.eta, diagonal=moments.diagonal), precision)

    def with_values(self, values: Floats) -> Self:
        """Return parameters of the same shapes with other values, unchecked."""
        made = object.__new__(type(self))
        made.values, made._shape, made.diagonal = values, self._shape, self.diagonal
        return made

    def _of(self, eta: Floats, Lam: Floats) -> Self:
        return self.with_values(np.concatenate([eta.ravel(), Lam.ravel()]))

    def replace(self, eta: Floats, Lam: Floats) -> Self:
        """Return parameters of the same shapes, unchecked but made symmetric; NaN marks a failure."""
        return self._of(eta, Lam if self.diagonal else (Lam + Lam.swapaxes(-1, -2)) / 2)

    @property
    def eta(self) -> Floats:
        """Precision times mean, shape (..., d)."""
        return self.values[: math.prod(self._shape)].reshape(self._shape)

    @property
    def Lam(self) -> Floats:  # noqa: N802
        """Precision, shape (..., d, d), or its diagonal, shape (..., d)."""
        shape = self._shape if self.diagonal else (*self._shape, self._shape[-1])
        return self.values[math.prod(self._shape) :].reshape(shape)

    def arrays(self) -> dict[str, Floats]:
        """Return eta and Lam, which are views."""
        return {"eta": self.eta, "Lam": self.Lam}

    def __repr__(self) -> str:
        return f"GaussianNatural(eta={self.eta.tolist()}, Lam={self.Lam.tolist()})"

    def mean(self) -> Floats:
        """Return the mean, shape (..., d); refuse a precision that is not positive definite."""
        if not self.is_pd():
            raise InputError("Lam", "a matrix that is not positive definite", "the precision of a proper density")
        if self.diagonal:
            return np.asarray(self.eta / self.Lam)
        return np.asarray(np.linalg.solve(self.Lam, self.eta[..., None])[..., 0])

    def cov(self) -> Floats:
        """Return the covariance, shape (..., d, d), or its diagonal; refuse one that is not positive definite."""
        return self._inverse("Lam")

    def _inverse(self, name: str) -> Floats:
        if not self.is_pd():
            raise InputError(name, "a matrix that is not positive definite", "positive definite matrices")
        if self.diagonal:
            return np.asarray(1 / self.Lam)
        inverse = np.linalg.inv(self.Lam)
        return np.asarray((inverse + inverse.swapaxes(-1, -2)) / 2)

    def is_pd(self) -> bool:
        """Whether all precisions are positive definite."""
        if self.diagonal:
            return bool((self.Lam > 0).all())
        Lam = self.Lam
        return all(_has_root(matrix) for matrix in Lam.reshape(-1, *Lam.shape[-2:]))

    def project(self, rho: float = 1e-4) -> Self:
        """Return a proper density, itself if it is one: eigenvalues of the precision of at most 0 become rho."""
        if self.is_pd():
            return self
        if self.diagonal:
            return self._of(self.eta, np.where(self.Lam > 0, self.Lam, rho))
        roots, vectors = np.linalg.eigh(self.Lam)
        kept = np.where(roots > 0, roots, rho)
        return self.replace(self.eta, (vectors * kept[..., None, :]) @ vectors.swapaxes(-1, -2))

    def repair(self, default: Self) -> Self:
        """Return the parameters with the default's in place of those that are not finite.

        Components with a full precision are replaced as a whole; of a diagonal one, a coordinate's mean and precision.
        """
        fine, finite = np.asarray(np.isfinite(self.eta)), np.asarray(np.isfinite(self.Lam))
        if self.diagonal:
            both = fine & finite
            return self._of(np.where(both, self.eta, default.eta), np.where(both, self.Lam, default.Lam))
        whole = np.asarray((fine & finite.all(-1)).all(-1, keepdims=True))
        eta, Lam = np.where(whole, self.eta, default.eta), np.where(whole[..., None], self.Lam, default.Lam)
        return self._of(eta, Lam)

    def mirror(self, values: Floats) -> Floats:
        """Return values, of shape (..., size), with the upper triangles of the precisions mirrored."""
        return values if self.diagonal else values[..., _upper(self._shape)]

    def _blocks(self) -> tuple[slice, ...]:
        middle = math.prod(self._shape)
        return slice(0, middle), slice(middle, self.values.size)

    def kl(self, other: Self) -> float:
        """Return the Kullback-Leibler divergence from this density to another, in nats; both must be proper."""
        shift = self.mean() - other.mean()
        if self.diagonal:
            ratio = other.Lam / self.Lam
            return _not_negative((ratio - 1 - np.log(ratio) + other.Lam * shift * shift).sum() / 2)
        trace = np.einsum("...ij,...ji->...", other.Lam, self.cov())
        logs = np.linalg.slogdet(self.Lam)[1] - np.linalg.slogdet(other.Lam)[1]
        distance = np.einsum("...i,...ij,...j->...", shift, other.Lam, shift)
        return _not_negative((trace - self._shape[-1] + logs + distance).sum() / 2)


def _not_negative(divergence: Any) -> float:
    """Return a divergence without a sign that is rounding only; NaN stays."""
    return float(np.maximum(divergence, 0.0))


def _times(matrix: Floats, vector: Floats, *, diagonal: bool) -> Floats:
    return np.asarray(matrix * vector if diagonal else np.einsum("...ij,...j->...i", matrix, vector))


def _has_root(matrix: Floats) -> bool:
    return int(dpotrf(matrix, clean=0)[1]) == 0


@lru_cache(maxsize=64)
def _upper(shape: tuple[int, ...]) -> Any:
    """Return, for each entry of the flat vector, the equal one on or above the diagonal."""
    d, size = shape[-1], math.prod(shape)
    entries = np.arange(size * d).reshape(-1, d, d)
    rows, columns = np.triu_indices(d)
    entries[:, columns, rows] = entries[:, rows, columns]
    return np.concatenate([np.arange(size), size + entries.ravel()])
