"""Epsilons of Poisson minibatches at random settings, beside dp-accounting's and autodp's: which is smaller, and times.

Run with ``python -m benchmarks.accounting_sweep``: prints a table of the settings that are done. With a number of
settings (``python -m benchmarks.accounting_sweep 1000``) the missing ones are done first; each is written to
``accounting_sweep.jsonl`` when it is done, so that a run that was stopped goes on from there. Setting i is the same in
every run. Each accountant may take 8 GiB. Times are processor seconds. Where dp-accounting's epsilon is smaller by
more than 1e-5, both bounds are found here at an accuracy of 1e-7. Its cells are wide beside a small epsilon: the time
that it takes here to be as close to the truth as dp-accounting was is measured, too.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from thresholdout.privacy.accounting.pld.distribution import PrivacyLossDistribution, guaranteed_epsilon, worst_epsilon
from thresholdout.privacy.accounting.pld.loss_estimates import Search, smallest
from thresholdout.privacy.accounting.pld.minibatch_steps import poisson_pairs

SEED = 19
DONE = Path(__file__).with_name("accounting_sweep.jsonl")
CELLS = 1e-4  # nats, dp-accounting's default
CLOSE = 1e-5  # relative; what upper bounds here are asked for
MEMORY = 8 << 30  # bytes of address space

Row = dict[str, Any]


def setting(i: int) -> tuple[float, float, int, float]:
    """Return noise, rate, steps and delta, each uniform in its logarithm."""
    u = np.random.default_rng((SEED, i)).uniform(size=4)
    low = np.log([0.3, 1e-5, 1.0, 1e-12])
    high = np.log([20.0, 0.5, 1e6, 1e-2])
    sigma, q, steps, delta = np.exp(low + (high - low) * u).tolist()
    return sigma, q, max(1, round(steps)), delta


def seconds(call: Callable[[], float]) -> tuple[float | None, float]:
    """Return what a call gives, None if it fails, and its processor time."""
    start = time.process_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = float(call())
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return None, time.process_time() - start
    return (found if math.isfinite(found) else None), time.process_time() - start


def same_cells(sigma: float, q: float, steps: int, delta: float) -> float:
    """Return the upper bound here from cells as wide as dp-accounting's."""
    found = 0.0
    for pair in poisson_pairs(sigma, q):
        search = Search({pair: steps}, 1e-7 * delta / steps, CLOSE)
        slope = search.rough.tilt_of_delta(delta)
        guess = search.rough.moments(slope)[1]
        tilt, best = search.tilt(slope, guess, delta), math.inf
        for _ in range(8):  # wide cells make the sum wider, and tilts that bounds are good with smaller
            composed, before = search.upper(CELLS, tilt), best
            best = min(best, smallest(composed, delta, max(guess, 0.0)))
            again = search.again(composed, best, tilt, delta) if best < math.inf else None
            if again is None and before < math.inf and best > before * (1 - 1e-7):
                break
            tilt = again[1] if again is not None else tilt / 4.0
        found = max(found, best)
    return found


def dp_accounting(sigma: float, q: float, steps: int, delta: float) -> float:
    """Return dp-accounting's epsilon by privacy-loss distributions, with its defaults."""
    from dp_accounting.pld import privacy_loss_distribution as distributions

    one = distributions.from_gaussian_mechanism(sigma, sampling_prob=q, use_connect_dots=True)
    return float(one.self_compose(steps).get_epsilon_for_delta(delta))


def autodp(sigma: float, q: float, steps: int, delta: float) -> float:
    """Return autodp's epsilon, by Renyi divergences of integer orders up to 256."""
    from autodp.mechanism_zoo import GaussianMechanism
    from autodp.transformer_zoo import AmplificationBySampling, Composition

    step = AmplificationBySampling(PoissonSampling=True)(GaussianMechanism(sigma, name="step"), q)
    return float(Composition()([step], [steps]).get_approxDP(delta))


def measured(i: int) -> Row:
    """Return everything about one setting."""
    sigma, q, steps, delta = setting(i)
    row: Row = {"i": i, "sigma": sigma, "q": q, "steps": steps, "delta": delta}
    distributions = [PrivacyLossDistribution({pair: steps}) for pair in poisson_pairs(sigma, q)]
    row["here"], row["here_s"] = seconds(lambda: guaranteed_epsilon(distributions, delta))
    row["cells"], row["cells_s"] = seconds(lambda: same_cells(sigma, q, steps, delta))
    row["peer"], row["peer_s"] = seconds(lambda: dp_accounting(sigma, q, steps, delta))
    row["autodp"], row["autodp_s"] = seconds(lambda: autodp(sigma, q, steps, delta))
    row["equal"], row["equal_s"] = seconds(lambda: as_close(distributions, row))
    if row["here"] is not None and row["peer"] is not None and row["here"] > row["peer"] * (1 + CLOSE):
        found = worst_epsilon(distributions, delta, 1e-7)
        row["lower"], row["fine"] = found.lower, min(found.upper, row["here"])
    return row


def accuracy(row: Row) -> float:
    """Return how far dp-accounting's epsilon is above the one here, relatively: the accuracy to compare times at."""
    above = (row["peer"] - row["here"]) / row["here"] if row["peer"] is not None and row["here"] else 0.0
    return float(min(max(above, CLOSE), 0.5))


def as_close(distributions: list[PrivacyLossDistribution], row: Row) -> float:
    """Return an epsilon as close to the truth as dp-accounting's: predicted accuracies are not always attained."""
    wanted = accuracy(row)
    found = guaranteed_epsilon(distributions, row["delta"], wanted)
    while row["peer"] is not None and found > row["peer"] * (1 + CLOSE) and wanted > CLOSE:
        wanted = max(0.25 * wanted, CLOSE)
        found = min(found, guaranteed_epsilon(distributions, row["delta"], wanted))
    return found


def rows() -> list[Row]:
    """Return the settings that are done, by number."""
    found = [json.loads(line) for line in DONE.read_text().splitlines()] if DONE.exists() else []
    return sorted(found, key=lambda row: int(row["i"]))


def counts(found: list[Row]) -> dict[str, int]:
    """Return how often epsilon is smaller here, the same, or larger, and what is known of the latter."""
    kinds = dict.fromkeys(("smaller", "same", "too small", "finer", "larger"), 0)
    for row in found:
        if row["peer"] is not None:
            kinds[_kind(row)] += 1
    return kinds


def _kind(row: Row) -> str:
    here, peer = row["here"], row["peer"]
    if here < peer * (1 - CLOSE):
        return "smaller"
    if peer < row.get("lower", 0.0):
        return "too small"
    if here <= peer * (1 + CLOSE):
        return "same"
    return "finer" if row["fine"] <= peer * (1 + CLOSE) else "larger"


def table(found: list[Row]) -> str:
    """Return the settings that are done as a table."""
    kinds = counts(found)
    compared = [row for row in found if row["peer"] is not None]
    ratio = np.array([row["here"] / row["peer"] if row["peer"] > 0 else 1.0 for row in compared])
    cells = np.array([row["cells"] / row["peer"] if row["peer"] > 0 else 1.0 for row in compared if row["cells"]])
    theirs = [row for row in found if row["autodp"] is not None and row["autodp"] > 0]
    renyi = np.array([row["here"] / row["autodp"] for row in theirs])
    small = [row for row in compared if row["peer_s"] < 0.05]
    equal = np.array([row["equal"] / row["peer"] if row["peer"] > 0 else 1.0 for row in compared])
    late = [row for row in compared if row["equal_s"] > row["peer_s"]]

    def time_of(rows: list[Row], name: str) -> str:
        values = np.array([row[f"{name}_s"] for row in rows])
        return f"{np.median(values):.3f} / {values.mean():.3f} / {values.max():.2f}"

    lines = [
        f"| {len(found)} random settings | |",
        "|---|---|",
        f"| dp-accounting fails, or wants more than 8 GiB | {len(found) - len(compared)} |",
        f"| smaller than dp-accounting's by more than 1e-5 | {kinds['smaller']} |",
        f"| within 1e-5 | {kinds['same']} |",
        f"| dp-accounting's is below a lower bound that is proved here | {kinds['too small']} |",
        f"| larger, but not when an accuracy of 1e-7 is asked for | {kinds['finer']} |",
        f"| larger | {kinds['larger']} |",
        f"| epsilon here / dp-accounting's: least, median, largest | {_three(ratio)} |",
        f"| the same with cells of 1e-4 here, too | {_three(cells)} |",
        f"| epsilon here / autodp's, {len(theirs)} settings | {_three(renyi)} |",
        f"| seconds here: median / mean / largest | {time_of(found, 'here')} |",
        f"| with cells of 1e-4 | {time_of(found, 'cells')} |",
        f"| dp-accounting | {time_of(found, 'peer')} |",
        f"| autodp | {time_of(found, 'autodp')} |",
        f"| here, where dp-accounting takes less than 0.05 ({len(small)}) | {time_of(small, 'here')} |",
        f"| dp-accounting, there | {time_of(small, 'peer')} |",
        f"| no faster here than dp-accounting | {sum(row['here_s'] > row['peer_s'] for row in compared)} |",
        f"| here, as close to the truth as dp-accounting is | {time_of(compared, 'equal')} |",
        f"| its epsilon / dp-accounting's: least, median, largest | {_three(equal)} |",
        f"| no faster here then than dp-accounting | {len(late)} |",
    ]
    return "\n".join(lines)


def _three(values: np.ndarray[Any, Any]) -> str:
    return f"{values.min():.4f}, {np.median(values):.6f}, {values.max():.6f}"


def main(words: list[str] | None = None) -> None:
    """Do the missing settings, and print the table."""
    done = {row["i"] for row in rows()}
    wanted = int(words[0]) if words else 0
    for i in tqdm([i for i in range(wanted) if i not in done], disable=wanted == 0):
        row = measured(i)
        with DONE.open("a") as file:
            file.write(json.dumps(row) + "\n")
    if found := rows():
        print(table(found))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    main(sys.argv[1:])
