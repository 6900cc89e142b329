"""Natural parameters: products of densities add them, powers scale them, privacy clips their norm."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.numerics.rounding import ULP
from thresholdout.errors import InputError
from thresholdout.privacy.accounting.bound_arguments import chosen, number

__all__ = ["CLIP_MODES", "ClipMode", "Floats", "Natural", "NaturalArrays", "clip_norm_of"]

Floats: TypeAlias = NDArray[np.float64]
ClipMode: TypeAlias = Literal["joint", "separate"]
CLIP_MODES: tuple[ClipMode, ...] = ("joint", "separate")
# Between these, squares neither overflow nor vanish beside the square of the norm; the proof of the clipping needs it.
SMALLEST_NORM, LARGEST_NORM = 1e-100, 1e100


def clip_norm_of(value: object, name: str = "clip_norm") -> float:
    """Return a norm to clip to, in [1e-100, 1e100].

    Raises
    ------
    InputError
        When it is out of range, where rounding could make a clipped norm larger than it.
    """
    expected = f"a number in [{SMALLEST_NORM:g}, {LARGEST_NORM:g}]"
    found = number(value, name, expected)
    if not SMALLEST_NORM <= found <= LARGEST_NORM:
        raise InputError(name, repr(found), expected)
    return found


class Natural(ABC):
    """Natural parameters of a member of an exponential family, in one flat vector.

    Attributes
    ----------
    values : ndarray, shape (size,)
        All parameters; treat them as read-only.
    """

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
        """Return valid parameters, the object itself when it is valid: what is not positive becomes rho."""

    @abstractmethod
    def is_pd(self) -> bool:
        """Whether the parameters are those of a proper density."""

    @abstractmethod
    def _blocks(self) -> tuple[slice, ...]:
        """Return the parts of `values` that are clipped separately in the separate mode."""

    def mirror(self, values: Floats) -> Floats:
        """Return values, of shape (..., size), with entries that must be equal set equal: here, as they are."""
        return values

    def repair(self, default: Self) -> Self:
        """Return the parameters with each entry that is not finite replaced by the default's."""
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
        """Return the parameters scaled down to norms of at most C, exactly, whatever the rounding.

        Parameters
        ----------
        C : float
            In [1e-100, 1e100].
        mode : {"joint", "separate"}
            Scale all together, or each part by itself; "separate" moves the mean of a Gaussian.

        Raises
        ------
        InputError
            When a value is not finite, or an argument is out of range.
        """
        if not SMALLEST_NORM <= C <= LARGEST_NORM:
            clip_norm_of(C, "C")
        clipped = None
        for block in self.blocks(mode):
            values = self.values[block]
            # The proof is in PROOFS.md: a computed norm of at most this means a norm of at most C.
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
    with np.errstate(over="ignore"):  # clipping knows what to do when squares overflow
        return math.sqrt(np.dot(values, values))


class NaturalArrays(Natural):
    """Natural parameters in named arrays, for exponential families other than Gaussian ones and for networks.

    Parameters
    ----------
    arrays : mapping of str to array_like
        All finite.
    project : callable, optional
        ``project(arrays, rho)`` returns valid arrays; by default, all are valid.
    blocks : sequence of sequence of str, optional
        Which arrays are clipped together in the separate mode; by default, each by itself.

    Examples
    --------
    >>> theta = NaturalArrays({"shape": 3.0, "rate": [-4.0]})
    >>> theta.norm(), theta.norms("separate"), theta.clip(1.0)["rate"]
    (5.0, (3.0, 4.0), array([-0.8]))
    """

    __slots__ = ("_groups", "_layout", "_project")

    def __init__(
        self,
        arrays: Mapping[str, ArrayLike],
        project: Callable[[dict[str, Floats], float], Mapping[str, ArrayLike]] | None = None,
        blocks: Sequence[Sequence[str]] | None = None,
    ) -> None:
        parts = {name: np.asarray(value, dtype=np.float64) for name, value in arrays.items()}
        if not parts:
            raise InputError("arrays", "none", "at least one array")
        groups = [[name] for name in parts] if blocks is None else [list(group) for group in blocks]
        ordered = [name for group in groups for name in group]
        if sorted(ordered) != sorted(parts) or not all(groups):
            raise InputError("blocks", f"{groups}", "groups of the names of all arrays, each in one of them")
        layout: dict[str, tuple[slice, tuple[int, ...]]] = {}
        start = 0
        for name in ordered:
            if not np.isfinite(parts[name]).all():
                raise InputError(name, "an entry that is not finite", "finite natural parameters")
            layout[name] = slice(start, start + parts[name].size), parts[name].shape
            start += parts[name].size
        self.values = np.concatenate([parts[name].ravel() for name in ordered])
        self._layout = layout
        self._groups = tuple(slice(layout[group[0]][0].start, layout[group[-1]][0].stop) for group in groups)
        self._project = project

    def with_values(self, values: Floats) -> Self:
        """Return parameters of the same shapes with other values, unchecked."""
        made = object.__new__(type(self))
        made.values, made._layout, made._groups, made._project = values, self._layout, self._groups, self._project
        return made

    def __getitem__(self, name: str) -> Floats:
        part, shape = self._layout[name]
        return self.values[part].reshape(shape)

    def arrays(self) -> dict[str, Floats]:
        """Return the parameters as named arrays, which are views."""
        return {name: self[name] for name in self._layout}

    def replace(self, arrays: Mapping[str, ArrayLike]) -> Self:
        """Return parameters of the same shapes with other arrays; entries that are not finite mark failures."""
        values = np.empty_like(self.values)
        for name, (part, shape) in self._layout.items():
            values[part] = np.broadcast_to(np.asarray(arrays[name], dtype=np.float64), shape).ravel()
        return self.with_values(values)

    def project(self, rho: float = 1e-4) -> Self:
        """Return valid parameters, the object itself when it is valid."""
        if self._project is None:
            return self
        found = self.replace(self._project(self.arrays(), rho))
        return self if np.array_equal(found.values, self.values) else found

    def is_pd(self) -> bool:
        """Whether a projection changes nothing."""
        return self.project() is self

    def _blocks(self) -> tuple[slice, ...]:
        return self._groups
