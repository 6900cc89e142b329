"""Pedigrees: genotypes that are passed on from parents to children."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from graphs.errors import ArgumentError
from graphs.models.bayesian_network import BayesianNetwork
from graphs.numerics.arguments import FloatArray, real_array

__all__ = ["pedigree"]


def pedigree(
    trios: Mapping[Any, tuple[Hashable | None, Hashable | None]],
    frequency: float,
    *,
    mutation: float = 0.0,
    latent: Iterable[Hashable] = (),
) -> BayesianNetwork:
    """Return the law of the genotypes of related people at one locus with two alleles.

    Parameters
    ----------
    trios : mapping of person to (father, mother)
        Each child's parents. A parent who is no child in the mapping is a founder. A parent given as None is an
        unrelated person outside the data: a different one each time, summed out exactly. A person with
        ``(None, None)`` is a founder.
    frequency : float
        Frequency of the counted allele in the population, between 0 and 1; founders carry two independent alleles
        (Hardy-Weinberg proportions).
    mutation : float
        Probability that an allele turns into the other one when it is passed on, at most 1/2.
    latent : iterable of persons
        Members of the pedigree of whom there is no data.

    Returns
    -------
    BayesianNetwork
        Three states per person, the number of copies 0, 1 or 2; records in the order in which people first appear,
        a child before its parents.

    Raises
    ------
    ArgumentError
        For nobody at all, somebody who is an ancestor of himself, the same person as father and mother, or
        probabilities out of range.

    Notes
    -----
    A parent with g copies passes one on with probability t = g/2, with mutation u with probability
    t (1 - u) + (1 - t) u; the child has the sum of two such independent alleles (Mendel's first law). Without mutation
    the laws have zeros, so that a child can say for certain what its parent has not, and messages from close relatives
    are not contracted.

    Examples
    --------
    >>> family = pedigree({"child": ("father", "mother")}, 0.1)
    >>> family.records
    ('child', 'father', 'mother')
    >>> family.marginal(["mother"], given={"child": 2, "father": 1}).round(6)
    array([0. , 0.9, 0.1])
    """
    frequency = _probability("frequency", frequency, 1.0)
    if frequency == 0 or frequency == 1:
        raise ArgumentError("frequency", repr(frequency), "a frequency strictly between 0 and 1")
    mutation = _probability("mutation", mutation, 0.5)
    if not isinstance(trios, Mapping) or not trios:
        raise ArgumentError("trios", repr(trios), "a mapping of each child to its father and its mother")
    known: dict[Hashable, tuple[Hashable | None, Hashable | None]] = {}
    for child, couple in trios.items():
        if not isinstance(couple, tuple | list) or len(couple) != 2:
            raise ArgumentError(
                "trios", f"{couple!r} as parents of {child!r}", "a pair (father, mother), None if unknown"
            )
        if couple[0] == couple[1] and couple[0] is not None:
            raise ArgumentError("trios", f"{couple[0]!r} as father and mother of {child!r}", "two different people")
        known[child] = (couple[0], couple[1])
        for parent in couple:
            if parent is not None:
                known.setdefault(parent, trios.get(parent, (None, None)))
    stranger = np.array([_passed_on(frequency, mutation)])
    heir = np.array([_passed_on(copies / 2, mutation) for copies in range(3)])
    tables, parents = {}, {}
    for person, couple in known.items():
        alleles = [stranger if parent is None else heir for parent in couple]
        if couple == (None, None):
            alleles = [np.array([frequency])] * 2
        parents[person] = tuple(parent for parent in couple if parent is not None)
        shape = tuple(len(probability) for probability in alleles if len(probability) > 1)
        tables[person] = _child(*alleles).reshape(*shape, 3)
    return BayesianNetwork._from(parents, tables, latent)


def _passed_on(share: float, mutation: float) -> float:
    """Return the probability of passing the allele on, when a share of one's alleles is of that kind."""
    return share * (1 - mutation) + (1 - share) * mutation


def _child(father: FloatArray, mother: FloatArray) -> FloatArray:
    """Return the law of a child's number of copies for each chance of getting one from father and from mother."""
    one, other = father[:, None], mother[None, :]
    law: FloatArray = np.stack([(1 - one) * (1 - other), one * (1 - other) + (1 - one) * other, one * other], axis=-1)
    return law


def _probability(argument: str, value: Any, most: float) -> float:
    expected = f"one number from 0 to {most:g}"
    array = real_array(argument, value, expected)
    if array.ndim or not 0 <= float(array) <= most:
        raise ArgumentError(argument, repr(value), expected)
    return float(array)
