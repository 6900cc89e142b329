"""Plots of dependence. Every function takes ``ax=None`` and returns the axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphs.errors import ArgumentError, RouteUnavailable
from graphs.model import Adversary, DependenceModel
from graphs.numerics.arguments import FloatArray, real_array
from graphs.numerics.rounding import shown_above
from graphs.routes import ROUTES
from graphs.structure.labelled_values import by_label

if TYPE_CHECKING:
    import networkx as nx

    from graphs.estimation.permutation import PermutationTest

__all__ = ["plot_diagnosis", "plot_graph", "plot_leakage"]

BLUE, ORANGE, GREY = "#0b6fa4", "#d95f02", "#8a8a8a"

#: Colour and width of the lines of sound routes: thinner ones are on top, so that equal routes stay visible.
SOUND = [
    ("#0b6fa4", 3.8),
    ("#d95f02", 3.4),
    ("#1b9e77", 3.0),
    ("#7b3294", 2.6),
    ("#e6ab02", 1.4),
    ("#e7298a", 1.0),
]

#: Most nodes of a drawn graph: the layout is quadratic in them.
MOST_NODES = 5000


def plot_graph(graph: nx.Graph[Any], leakage: Any, ax: Any = None, *, seed: int = 0) -> Any:
    """Draw a graph with its records coloured by leakage."""
    import networkx as nx

    expected = "one number for each node"
    values = real_array("leakage", by_label("leakage", leakage, list(graph.nodes), expected), expected)
    if len(values) > MOST_NODES:
        expected = f"a graph of at most {MOST_NODES} nodes"
        raise ArgumentError("graph", f"{len(values)} nodes", expected, "Draw graph.subgraph(nodes).")
    ax = _axes(ax, (7.0, 5.0))
    places = nx.spring_layout(graph, seed=seed)
    at = np.array([places[node] for node in graph.nodes])
    number = {node: k for k, node in enumerate(graph.nodes)}
    for u, v in graph.edges:
        ends = at[[number[u], number[v]]]
        ax.plot(ends[:, 0], ends[:, 1], color=GREY, alpha=0.45, linewidth=0.8, zorder=1)
    size = float(np.clip(6000 / len(values), 12, 220))
    shown = ax.scatter(at[:, 0], at[:, 1], c=values, cmap="viridis", s=size, edgecolors="white", zorder=2)
    ax.figure.colorbar(shown, ax=ax, label="leakage (nats)", shrink=0.85)
    ax.set_title("leakage about each record")
    ax.set_axis_off()
    return ax


def plot_leakage(
    model: DependenceModel,
    epsilon: Sequence[float] | FloatArray | None = None,
    ax: Any = None,
    *,
    adversary: Adversary = "informed",
) -> Any:
    """Draw the largest leakage against the privacy budget, one line for each route that applies.

    Routes as printed in the literature are dashed and grey. ``method="best"`` is the smallest of the sound routes. The
    dotted line is the leakage of independent records, the budget itself.
    """
    budgets = np.geomspace(1e-3, 1, 25) if epsilon is None else real_array("epsilon", epsilon, "positive numbers")
    if budgets.ndim != 1 or not len(budgets) or not (budgets > 0).all():
        raise ArgumentError("epsilon", repr(epsilon), "a sequence of positive numbers")
    ax = _axes(ax, (7.5, 4.8))
    styles = {True: iter([(5, 2), (1, 1.5), (7, 2, 1, 2)] * 2), False: iter(SOUND * 2)}
    for name in model.methods:
        published = ROUTES[name].published
        try:
            values = np.array([float(model.leakage(float(e), name, adversary).max()) for e in budgets])
        except RouteUnavailable:
            continue
        if published:
            ax.plot(budgets, values, color=GREY, linewidth=1.2, dashes=next(styles[True]), label=name)
        else:
            colour, width = next(styles[False])
            ax.plot(budgets, values, color=colour, linewidth=width, label=name)
    ax.plot(budgets, budgets, ":", color="black", linewidth=1.0, label="independent records")
    ax.set(xscale="log", yscale="log", xlabel="privacy budget eps' (nats)", ylabel="largest leakage (nats)")
    ax.spines[["top", "right"]].set_visible(False)
    lines = sorted(ax.get_lines(), key=lambda line: -float(line.get_ydata()[-1]))
    ax.legend(handles=lines, frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def plot_diagnosis(
    tests: Sequence[PermutationTest], adjusted: FloatArray, half_widths: Any, recommended: Any, ax: Any = None
) -> Any:
    """Draw the effect of each permutation test, and beside them the half-width that each fitted model implies."""
    rows = max(len(tests), len(half_widths))
    left, right = _figure((10.0, 1.8 + 0.45 * rows)).subplots(1, 2) if ax is None else ax
    _draw_tests(left, tests, adjusted)
    colours = [ORANGE if chosen else GREY for chosen in recommended]
    right.barh(range(len(half_widths)), half_widths, color=colours, height=0.6)
    for row, width in enumerate(half_widths):
        right.annotate(
            f"±{shown_above(width, 3, 'f')}", (width, row), xytext=(4, 0), textcoords="offset points", va="center"
        )
    right.set_yticks(range(len(half_widths)), list(half_widths.index))
    right.set_ylim(len(half_widths) - 0.4, -0.6)
    right.set_xlim(0, 1.25 * max(half_widths))
    right.set_xlabel("half-width of one query")
    right.spines[["top", "right"]].set_visible(False)
    return left, right


def _draw_tests(ax: Any, tests: Sequence[PermutationTest], adjusted: FloatArray) -> None:
    for row, (test, p) in enumerate(zip(tests, adjusted.tolist(), strict=True)):
        low, high = np.quantile(test.null, [0.025, 0.975])
        label = "middle 95% of permuted records" if row == 0 else None
        ax.plot([low, high], [row, row], color=GREY, linewidth=8, alpha=0.5, solid_capstyle="butt", label=label)
        ax.plot(test.effect, row, "D", color=ORANGE, markersize=8, label="seen" if row == 0 else None)
        ax.annotate(f"p = {p:.2g}", (test.effect, row), xytext=(0, 10), textcoords="offset points", ha="center")
    ax.axvline(0, color="black", linewidth=0.8)
    ax.set_yticks(range(len(tests)), [test.name.replace(": ", "\n") for test in tests])
    ax.set_ylim(len(tests) - 0.4, -0.7)
    effects = [test.effect for test in tests]
    ax.set_xlim(min(-0.3, *effects, *(0.0,)) - 0.1, max(0.6, *effects, *(0.0,)) + 0.15)
    ax.set_xlabel("effect size (scale of a correlation)")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)


def _axes(ax: Any, size: tuple[float, float]) -> Any:
    """Return `ax`, or the axes of a new figure."""
    return _figure(size).add_subplot() if ax is None else ax


def _figure(size: tuple[float, float]) -> Any:
    """Return a new figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        advice = "Run pip install 'thresholdout[plot]'."
        raise ArgumentError("ax", "no matplotlib", "axes of an installed matplotlib", advice) from None
    return Figure(figsize=size, dpi=150, layout="constrained")
