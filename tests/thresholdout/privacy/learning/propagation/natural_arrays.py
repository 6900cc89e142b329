"""Natural parameters in named arrays, for tests with exponential families other than Gaussian ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from thresholdout.errors import InputError
from thresholdout.privacy.learning.propagation.natural_parameters import Floats, Natural


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
