"""Records whose law is a product of tables, each over a few of them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable, TooWide
from graphs.known_records import Network
from graphs.leakage.network_messages import Propagation
from graphs.leakage.network_quilts import MOST_NODES, BallQuilts, NetworkQuilts
from graphs.leakage.profile import Profile
from graphs.markov_structure import quilt_table
from graphs.model import Adversary
from graphs.models.network_model import NetworkModel
from graphs.numerics.arguments import FloatArray, IntArray, check_count, real_array
from graphs.numerics.rounding import up
from graphs.structure.elimination import LARGEST, Table, eliminate, elimination_order, multiply, run_order
from graphs.structure.potentials import Potentials
from graphs.structure.separators import Effort

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["SWEEPS", "Factor", "FactorGraph", "Sampler"]

#: Burn-in of a Gibbs sampler, in sweeps over all nodes.
SWEEPS = 1000

#: Most entries of an intermediate table for exact sampling (8 MB).
EXACT = 2**20


class Sampler:
    """Draws from the law of a network.

    Exact draws go backwards through a variable elimination: given the variables eliminated later, each variable has the
    law proportional to the product of the tables that contained it when it was eliminated. Wide networks use a Gibbs
    sampler of `SWEEPS` sweeps from a uniform start, unless they have zeros, with which it may get stuck.
    """

    def __init__(self, potentials: Potentials) -> None:
        self._potentials = potentials
        tables, sizes = list(potentials.tables), potentials.sizes
        order, largest = elimination_order([table.members for table in tables], sizes)
        self.exact = largest <= EXACT
        self._steps: list[tuple[int, list[tuple[FloatArray, tuple[Any, ...]]]]] = []
        if self.exact:
            run_order(tables, order, sizes, self._remember)
            self._steps.reverse()
            return
        if any(not table.values.all() for table in tables):
            seen = f"factors with zeros, in a network that needs a table of {largest} entries for exact draws"
            expected = f"tables without zeros, or a network whose tables have at most {EXACT} entries"
            raise ArgumentError("factors", seen, expected)
        for v, held in enumerate(potentials.factors_of):
            self._remember(v, [tables[f] for f in held])

    def _remember(self, v: int, bucket: list[Table]) -> None:
        if len(bucket) > 4 and len({u for table in bucket for u in table.members}) <= 8:
            bucket = [multiply(bucket, sorted({u for table in bucket for u in table.members}))]
        step: list[tuple[FloatArray, tuple[Any, ...]]] = []
        for table in bucket:
            axis = table.members.index(v)
            others = tuple(u for u in table.members if u != v)
            step.append((np.moveaxis(table.values, axis, -1), others))
        self._steps.append((v, step))

    def draw(self, rng: np.random.Generator) -> IntArray:
        """Return one draw of all nodes, as positions among their possible states, shape (m,)."""
        sizes = np.array(self._potentials.sizes)
        state = (rng.random(len(sizes)) * sizes).astype(np.int64).tolist()
        for _ in range(1 if self.exact else SWEEPS):
            draws = rng.random(len(self._steps)).tolist()
            for (v, step), uniform in zip(self._steps, draws, strict=True):
                weights = 1.0
                for values, others in step:
                    weights = weights * values[tuple([state[u] for u in others])]
                sums = np.cumsum(weights)
                state[v] = int(np.searchsorted(sums[:-1], uniform * sums[-1], side="right"))
        return np.array(state, dtype=np.int64)


#: Members and table of one factor.
Factor: TypeAlias = tuple[Sequence[Hashable], Any]

#: Largest table of joint probabilities.
MOST_STATES = 1_000_000

#: Networks with more nodes have no quilt routes: the search would take minutes.
MOST_QUILTED = 200_000

#: Quilts of a single record are searched with the effort for a network of so many nodes.
LOCAL = 60


class FactorGraph(NetworkModel):
    """Model records whose joint distribution is proportional to a product of tables (factors).

    Use it for a distribution with interactions of several records at once. `MarkovField` is the case of pairs,
    `BayesianNetwork` that of conditional tables. It computes exact marginals (`marginal`) in addition to leakages and
    variance inflations.

    A record is one row of the data. `variance_inflation` is the design effect, the number of dependent records that are
    worth one independent record for a mean. `leakage` is the privacy loss about one record, which also arises through
    the records that depend on it.

    Parameters
    ----------
    cardinalities : mapping of hashable to int, or sequence of int
        Number of states of each node, by name. The order is that of the records. With a sequence the names are 0, 1, 2,
        ...
    factors : iterable of (sequence of names, array_like)
        For each factor the names of its nodes, each once, and a table with one axis per node in that order and one
        entry per state. Entries are finite and not negative, zeros are allowed.
    latent : iterable of names, default ()
        Nodes that are not records. They are never observed, do not contribute to means, and have no privacy budget. `n`
        counts the other nodes.

    Raises
    ------
    ArgumentError
        If there are no records, a name is unknown or repeated, a table has the wrong shape or negative, missing or
        infinite entries, or the tables leave no joint state of positive weight.

    Notes
    -----
    Each table may be multiplied by a positive number without changing the distribution. Zeros that contradict each
    other, so that no joint state has positive weight, are detected if they rule out all states of a node one after
    another, and otherwise by summing over the whole network if that is feasible (`graphs.structure.elimination`).

    *Leakage.* The methods of proof (routes) that `leakage` and `budget` accept as ``method=`` are:

    - ``"group"``: the sum of the privacy budgets of the connected component.
    - ``"messages"``: message passing. The message from factor f to record i is phi(Delta_f^i, sum of the messages from
      the other members to f), with Delta_f^i the largest range over the others' states z of ln f(u, z) / f(v, z), u and
      v states of i (`graphs.leakage.network_messages`).
    - ``"self-avoiding"``: the same with messages that do not return to a node that they left a few steps before
      (`graphs.leakage.self_avoiding`).
    - ``"quilt"`` and ``"quilt-contracted"``: bounds by sets of nodes that separate a record from the others
      (`graphs.leakage.network_quilts`).

    Examples
    --------
    Three coins whose parity is even with probability 0.9:

    >>> even = np.array([[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    >>> model = FactorGraph({"a": 2, "b": 2, "c": 2}, [(("a", "b", "c"), even)])
    >>> model.leakage(0.1).round(6)
    array([0.259952, 0.259952, 0.259952])
    >>> model.marginal(["a"], given={"b": 1, "c": 0})
    array([0.1, 0.9])
    """

    methods: ClassVar[tuple[str, ...]] = (
        "group",
        "quilt",
        "quilt-contracted",
        "messages",
        "self-avoiding",
        "blanket-published",
        "quilt-published",
    )
    #: Whether the tables multiply to a law by construction, so that the total mass needs no check.
    _is_law: ClassVar[bool] = False

    def __init__(
        self,
        cardinalities: Mapping[Any, int] | Sequence[int],
        factors: Iterable[Factor],
        *,
        latent: Iterable[Hashable] = (),
    ) -> None:
        sizes = _sizes(cardinalities)
        self._nodes = tuple(sizes)
        self._place = {name: node for node, name in enumerate(self._nodes)}
        hidden = _known_names("latent", latent, self._place)
        self._records = np.array([k for k, name in enumerate(self._nodes) if name not in hidden], dtype=np.int64)
        if not len(self._records):
            seen = f"{len(self._nodes)} nodes, {len(hidden)} of them latent"
            raise ArgumentError("cardinalities", seen, "the states of at least one node that is a record")
        super().__init__(len(self._records))
        self._sizes = tuple(sizes.values())
        self._set([_table(k, factor, self._place, self._sizes) for k, factor in enumerate(factors)])

    @classmethod
    def _of_tables(cls, sizes: dict[Hashable, int], n: int, tables: list[Table]) -> Self:
        """Return the model of checked tables, whose first `n` nodes are its records."""
        made = cls.__new__(cls)
        NetworkModel.__init__(made, n)
        made._nodes, made._sizes = tuple(sizes), tuple(sizes.values())
        made._place = {name: node for node, name in enumerate(made._nodes)}
        made._records = np.arange(n, dtype=np.int64)
        made._set(tables)
        return made

    def _set(self, tables: list[Table]) -> None:
        self._factors = tables
        self._potentials = Potentials.of(self._sizes, tables, self._records)
        if not self._is_law:
            _check_mass(self._potentials)

    @property
    def nodes(self) -> tuple[Hashable, ...]:
        """Names of all nodes, latent ones included."""
        return self._nodes

    @property
    def records(self) -> tuple[Hashable, ...]:
        """Names of the records, in the order of all arrays about them."""
        return tuple(self._nodes[k] for k in self._records.tolist())

    @property
    def cardinalities(self) -> dict[Hashable, int]:
        """Number of states of each node, by name."""
        return dict(zip(self._nodes, self._sizes, strict=True))

    # The law -----------------------------------------------------------------------------------------------

    def marginal(
        self, nodes: Sequence[Hashable], given: Mapping[Any, int] | None = None, limit: int = LARGEST
    ) -> FloatArray:
        """Compute the exact joint distribution of a few nodes, conditional on the states of others.

        Parameters
        ----------
        nodes : sequence of names
            Nodes whose joint distribution is computed. Latent nodes are allowed.
        given : mapping of names to states, default None
            Nodes to condition on, with the numbers of their states. If None, the distribution is unconditional.
        limit : int, default 2**22
            Maximum number of entries of any intermediate table.

        Returns
        -------
        ndarray
            Probabilities: one axis per node in the order of `nodes`, one entry per state.

        Raises
        ------
        TooWide
            If a table with more than `limit` entries would be needed. It is an `ArgumentError` with the number of
            entries.
        ArgumentError
            If a node is unknown, repeated or also in `given`, or the states in `given` have probability zero.

        Notes
        -----
        Variable elimination in min-fill order. No table of all nodes is ever built.

        Examples
        --------
        >>> step = [[0.9, 0.1], [0.2, 0.8]]
        >>> FactorGraph([2, 2, 2], [((0, 1), step), ((1, 2), step)]).marginal([2], given={0: 1}).round(6)
        array([0.34, 0.66])
        """
        chosen = [self._node("nodes", name) for name in nodes]
        known = {self._node("given", name): state for name, state in (given or {}).items()}
        if len(set(chosen)) < len(chosen) or known.keys() & set(chosen):
            seen = f"{list(nodes)!r} given {dict(given or {})!r}"
            raise ArgumentError("nodes", seen, "different nodes, none of them known")
        p = self._potentials
        slots: dict[int, int] = {}
        for v, state in known.items():
            check_count("given", state, 0)
            found = np.flatnonzero(p.states[v] == state)
            if not len(found):
                seen = f"{self._nodes[v]!r} in state {state!r}"
                raise ArgumentError("given", seen, f"possible states, here below {self._sizes[v]}")
            slots[v] = int(found[0])
        tables = [_slice(table, slots) for table in p.tables]
        values = eliminate(tables, chosen, p.sizes, limit).values
        total = float(values.sum())
        if total == 0:
            raise ArgumentError("given", f"{dict(given or {})!r}, which has none", "states of positive probability")
        law = np.zeros([self._sizes[v] for v in chosen])
        law[np.ix_(*(p.states[v] for v in chosen))] = values / total
        return law

    def joint(self) -> FloatArray:
        """Compute the table of joint probabilities of all records, for small networks.

        Returns
        -------
        ndarray
            Probability of each data set: one axis per record, one entry per state.

        Raises
        ------
        ArgumentError
            If there are more than a million joint states.

        Examples
        --------
        >>> FactorGraph([2, 2], [((0, 1), [[1, 0], [0, 3]])]).joint()
        array([[0.25, 0.  ],
               [0.  , 0.75]])
        """
        states = math.prod(self._sizes[v] for v in self._records.tolist())
        if states > MOST_STATES:
            raise ArgumentError("model", f"one with {states}", f"a model with at most {MOST_STATES} joint states")
        return self.marginal(self.records)

    def sample(self, rng: np.random.Generator) -> IntArray:
        """Draw one synthetic data set of n records.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness. Pass a seeded generator for reproducible draws.

        Returns
        -------
        ndarray of shape (n,)
            Index of each record's state.

        Raises
        ------
        ArgumentError
            If the network is too wide for exact draws and its tables have zeros.

        Notes
        -----
        Draws are exact, backwards through a variable elimination, if that needs tables of at most 2^20 entries.
        Otherwise they come from a Gibbs sampler with a burn-in of 1,000 sweeps from a uniform start, which is close to
        the distribution if the sampler mixes in fewer sweeps.

        Examples
        --------
        >>> FactorGraph([2, 2], [((0, 1), [[1, 0], [0, 0]])]).sample(np.random.default_rng(0))
        array([0, 0])
        """
        drawn = self._sampler.draw(rng)
        states = self._potentials.states
        return np.array([states[v][drawn[v]] for v in self._records.tolist()], dtype=np.int64)

    def _record_labels(self) -> tuple[Hashable, ...]:
        return self.records

    def describe(self) -> str:
        """Describe the model in one line of text."""
        hidden = len(self._nodes) - self.n
        more = f" and {hidden} latent nodes" if hidden else ""
        return f"factor graph of {self.n} records{more} with {len(self._factors)} factors"

    # Leakage -----------------------------------------------------------------------------------------------

    def quilts(self, record: Hashable) -> pd.DataFrame:
        """List Markov quilts of a record, with its influence on each.

        A quilt is a set of nodes that separates a record and the records near it from all others. The routes "quilt" to
        `leakage` use quilts.

        Parameters
        ----------
        record : hashable
            Name of the record.

        Returns
        -------
        pandas.DataFrame
            One row per quilt, the Markov blanket first, with the columns `quilt` and `nearby` (names of the separating
            and of the separated nodes, latent nodes included), `influence` (ln max P(x_Q | x_i, x_L) / P(x_Q | x_i',
            x_L) over known nearby records L, or a bound by messages in components of more than 200 nodes) and `spread`
            (the range of these logarithms over x_Q). Small components list every quilt with the smallest nearby set,
            larger ones a selection (`graphs.structure.separators`) and spheres.

        Raises
        ------
        ArgumentError
            If there is no such record.

        Examples
        --------
        >>> step = [[3, 1], [1, 3]]
        >>> path = FactorGraph({"a": 2, "b": 2, "c": 2}, [("ab", step), ("bc", step)])
        >>> path.quilts("a").round(3)
          quilt nearby  influence  spread
        0  (b,)     ()      1.099   2.197
        1  (c,)   (b,)      0.511   1.022
        """
        node = self._node("record", record)
        p = self._potentials
        if not p.is_record[node]:
            raise ArgumentError("record", f"the latent node {record!r}", "a record")
        found = NetworkQuilts(p, Effort.of_size(LOCAL), [int(np.searchsorted(self._records, node))])
        return quilt_table(
            [
                (tuple(self._nodes[v] for v in edge), tuple(self._nodes[v] for v in near), influence, spread)
                for edge, near, influence, spread in found.listed(node)
            ]
        )

    def markov_blanket(self, record: Hashable) -> tuple[Hashable, ...]:
        """Return the Markov blanket of a record: given its blanket, a record is independent of all other nodes.

        Returns
        -------
        tuple
            Names of the nodes that share a factor with the record, latent nodes included.
        """
        neighbours = self._potentials.neighbours[self._node("record", record)]
        return tuple(self._nodes[v] for v in neighbours)

    def _names_of_nodes(self, network: Network) -> Sequence[Hashable]:
        return self._nodes

    def _table_of(self, places: list[int]) -> tuple[FloatArray, float]:
        p = self._potentials
        table = eliminate(p.tables, [int(self._records[k]) for k in places], p.sizes)
        return table.values, table.roundings

    def _profile(self, method: str, epsilon: float | FloatArray, adversary: Adversary) -> Profile:
        p = self._potentials
        budgets = p.spread(epsilon)
        if method == "group":
            return Profile.of(p.component_sums(budgets)[p.records])
        if method in ("messages", "self-avoiding"):
            propagation = self._propagation if method == "messages" else self._remembering
            return Profile.of(propagation.leakages(budgets)[p.records])
        quilts = self._quilts(method)
        informed = adversary == "informed"
        if method == "quilt":
            found = quilts.leakages(budgets, self._penalties(quilts, informed))
            return Profile.of(np.minimum(found, self._balls.leakages(budgets)[p.records]))
        if method == "quilt-contracted":
            if not p.positive_components[p.component[p.records]].any():
                reason = "zeros in the factors: the possible values of a quilt need not be a product set"
                raise RouteUnavailable(method, reason, ("best", "messages", "quilt"))
            ends = self._propagation.leakages(budgets)
            ends[p.records] = np.minimum(ends[p.records], quilts.leakages(budgets, quilts.ranges("any")))
            return Profile.of(quilts.leakages(budgets, quilts.contracted("any" if informed else "none", ends)))
        if not all(quilts.has_influences(v) for v in p.records.tolist()):
            reason = f"a component of more than {MOST_NODES} nodes, for which influences are not computed"
            raise RouteUnavailable(method, reason, ("best", "messages", "quilt"))
        if method == "quilt-published":
            return Profile.of(quilts.leakages(budgets, 4 * quilts.influences("any")))
        return Profile.of(up(budgets[p.records] + 4 * quilts.blankets(), 2))

    @cached_property
    def _balls(self) -> BallQuilts:
        return BallQuilts(self._potentials.incidence)

    @cached_property
    def _propagation(self) -> Propagation:
        return Propagation(self._potentials.incidence)

    @cached_property
    def _remembering(self) -> Propagation:
        return Propagation(self._potentials.incidence, memory=True)

    def _network(self) -> Network:
        p = self._potentials
        edges, diameters = p.pairs
        possible = p.positive_components[p.component[edges[:, 0]]]
        return Network(p.incidence, edges, np.where(possible, diameters, np.inf), p.records)

    def _penalties(self, quilts: NetworkQuilts, informed: bool) -> FloatArray:
        """Return the penalty of every quilt: the range of its log-ratios, or the influence where that is enough."""
        if informed:
            return quilts.ranges("any")
        if any(quilts.has_influences(v) for v in self._potentials.records.tolist()):
            return np.minimum(quilts.ranges("none"), quilts.influences("none"))
        return quilts.ranges("none")

    def _quilts(self, method: str) -> NetworkQuilts:
        if len(self._nodes) > MOST_QUILTED:
            reason = f"more than {MOST_QUILTED} nodes, for which quilts are not searched"
            raise RouteUnavailable(method, reason, ("best", "messages", "group"))
        return self._found_quilts

    @cached_property
    def _found_quilts(self) -> NetworkQuilts:
        return NetworkQuilts(self._potentials)

    @cached_property
    def _sampler(self) -> Sampler:
        return Sampler(self._potentials)

    # Variance inflation ------------------------------------------------------------------------------------

    @cached_property
    def _group_sizes(self) -> IntArray:
        counts = np.bincount(self._potentials.component[self._records]).astype(np.int64)
        return counts[counts > 0]

    # Implementation ----------------------------------------------------------------------------------------

    def _content(self) -> Mapping[str, Any]:
        members = [v for table in self._factors for v in table.members]
        lengths = [len(table.members) for table in self._factors]
        values = [table.values.ravel() for table in self._factors]
        return {
            "sizes": np.array(self._sizes),
            "records": self._records,
            "members": np.array(members, dtype=np.int64),
            "lengths": np.array(lengths, dtype=np.int64),
            "values": np.concatenate([np.zeros(0), *values]),
        }

    def _node(self, argument: str, name: Hashable) -> int:
        try:
            return self._place[name]
        except (KeyError, TypeError):
            raise ArgumentError(argument, repr(name), "the name of a node") from None


def _sizes(cardinalities: Mapping[Any, int] | Sequence[int]) -> dict[Hashable, int]:
    expected = "a mapping of names to numbers of states, or a sequence of numbers"
    if isinstance(cardinalities, Mapping):
        items = list(cardinalities.items())
    elif isinstance(cardinalities, str | bytes) or not isinstance(cardinalities, Sequence | np.ndarray):
        raise ArgumentError("cardinalities", repr(cardinalities), expected)
    else:
        items = list(enumerate(cardinalities))
    if not items:
        raise ArgumentError("cardinalities", "nothing", expected)
    return {name: check_count("cardinalities", size) for name, size in items}


def _known_names(argument: str, names: Iterable[Hashable], place: Mapping[Hashable, int]) -> set[Hashable]:
    if isinstance(names, str | bytes):
        raise ArgumentError(argument, f"the text {names!r}", "a list of names")
    found = set()
    for name in names:
        if name not in place:
            raise ArgumentError(argument, repr(name), "names of nodes")
        found.add(name)
    return found


def _table(position: int, factor: Factor, place: Mapping[Hashable, int], sizes: Sequence[int]) -> Table:
    """Return one factor in integers."""
    where = f"factor {position}"
    try:
        names, values = factor
        members = tuple(place[name] for name in names)
    except KeyError as error:
        raise ArgumentError(
            "factors", f"the member {error.args[0]!r} of {where}", "names of nodes and tables"
        ) from None
    except (TypeError, ValueError):
        raise ArgumentError("factors", f"{factor!r:.60} as {where}", "pairs of members and a table") from None
    if len(set(members)) < len(members) or not members:
        raise ArgumentError("factors", f"the members {list(names)!r} of {where}", "over one or more names, none twice")
    shape = tuple(sizes[v] for v in members)
    array = real_array("factors", values, f"a table of shape {shape} in {where}")
    if array.shape != shape:
        raise ArgumentError(
            "factors", f"a table of shape {array.shape} in {where}", f"of shape {shape} for {list(names)!r}"
        )
    if not np.isfinite(array).all() or (array < 0).any():
        raise ArgumentError(
            "factors", f"a negative, missing or infinite entry in {where}", "tables of finite weights >= 0"
        )
    if not array.any():
        raise ArgumentError("factors", f"{where}, which is zero throughout", "tables with a possible state")
    return Table.of(members, array)


def _slice(table: Table, slots: Mapping[int, int]) -> Table:
    """Return a table with some of its members fixed."""
    if not any(v in slots for v in table.members):
        return table
    values = table.values[tuple(slots.get(v, slice(None)) for v in table.members)]
    return Table.of([v for v in table.members if v not in slots], np.asarray(values), table.roundings)


def _check_mass(potentials: Potentials) -> None:
    """Refuse contradictory zeros, where summing up the network is feasible."""
    if potentials.positive_components.all():
        return
    try:
        total = eliminate(potentials.tables, (), potentials.sizes)
    except TooWide:
        return
    if not total.values > 0:
        raise ArgumentError("factors", "no joint state of positive weight", "tables that do not contradict each other")
