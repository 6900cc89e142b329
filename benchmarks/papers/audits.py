"""What stochastic gradient Langevin dynamics leaks about a record while it trains, measured on handwritten digits.

A stand-in, for a laptop, of the paper's experiment with LeNet5 on MNIST [HF, Section V]: softmax regression on the
digits of scikit-learn, 1,000 of them for training, all models trained at once as one array. Declared deviations from
the paper: another model and other data; a learning rate of 0.05 instead of 0.001; a start of standard deviation 0.1;
and every record counts 60 times (inverse temperature 60), since with the injected noise of 1,000 records the attack
finds almost nothing. Minibatches sweep through a fresh order in every epoch. The upper bound for clipped gradients is
that of one Gaussian answer per epoch, which holds for any order that does not depend on the records; the paper's, for
records drawn afresh in each step, does not cover sweeps.

Run with ``python -m benchmarks.papers.audits``; ``--picture FILE`` draws it.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from tqdm import tqdm

from thresholdout.privacy.accounting import GaussianAnswer, SelfComposed, best_epsilon
from thresholdout.privacy.auditing import AuditResult, Neighbours, audit_outputs, make_neighbour

Floats = NDArray[np.float32]
Data = tuple[NDArray[np.float64], NDArray[np.int64]]
Watch = Callable[[int, Floats], None]

RECORDS, BATCH, RATE, COPIES, START, PRIOR, CLIP, CLASSES = 1000, 4, 0.05, 60, 0.1, 1.0, 0.2, 10
EPOCHS = 20
DELTA, CONFIDENCE = 1e-5, 0.9
SHOWN = (1, 5, 8, 10, 14, 15, 17, 20)


def step_size(records: int = RECORDS) -> float:
    """Return eta = 2 b lr / n, for a data set in which every record counts COPIES times."""
    return 2 * BATCH * RATE / (COPIES * records)


def digits(seed: int, records: int = RECORDS) -> tuple[Data, Data]:
    """Return records for training and the others: pixels in [0, 1] and a constant, and labels."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng([seed, 1]).permutation(len(labels))
    rows = np.hstack([pixels / 16, np.ones((len(labels), 1))])[order]
    labels = labels[order].astype(np.int64)
    return (rows[:records], labels[:records]), (rows[records:], labels[records:])


def train(
    data: Data, models: int, epochs: int, rng: np.random.Generator, clip: float | None, watch: Watch | None = None
) -> Floats:
    """Train models at once; after each epoch, `watch` sees them all.

    Returns
    -------
    ndarray, shape (models, features, classes)
    """
    rows, targets = data[0].astype(np.float32), np.eye(CLASSES, dtype=np.float32)[data[1]]
    records, features = rows.shape
    eta = step_size(records)
    gain, spread = np.float32(eta / 2 * COPIES * records / BATCH), np.float32(math.sqrt(eta))
    shrink = np.float32(1 - eta / 2 * PRIOR)
    lengths = np.linalg.norm(rows, axis=1)
    weights = rng.standard_normal((models, features, CLASSES), dtype=np.float32) * np.float32(START)
    noise = np.empty_like(weights)
    for epoch in range(1, epochs + 1):
        orders = rng.permuted(np.broadcast_to(np.arange(records), (models, records)), axis=1)
        for start in range(0, records - BATCH + 1, BATCH):
            batch = orders[:, start : start + BATCH]
            x = rows[batch]
            scores = x @ weights
            scores -= scores.max(axis=2, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=2, keepdims=True)
            residuals = targets[batch] - scores
            if clip is not None:  # the gradient of one record is an outer product: its norm is a product of norms
                norms = lengths[batch] * np.linalg.norm(residuals, axis=2)
                residuals *= np.minimum(1.0, clip / np.maximum(norms, 1e-12))[:, :, None]
            rng.standard_normal(out=noise, dtype=np.float32)
            noise *= spread
            weights *= shrink
            weights += gain * (x.transpose(0, 2, 1) @ residuals)
            weights += noise
        if watch is not None:
            watch(epoch, weights)
    return weights


def log_probability(weights: Floats, x: NDArray[np.float64], label: int) -> NDArray[np.float64]:
    """Return the log-probability that each model gives to a label."""
    from scipy.special import log_softmax

    scores = np.einsum("f,mfc->mc", x, weights.astype(np.float64))
    return np.asarray(log_softmax(scores, axis=1)[:, label])


@dataclass(frozen=True)
class Run:
    """One audit: its result, accuracy of the models on other digits by epoch, and seconds."""

    result: AuditResult
    joint: AuditResult
    accuracy: NDArray[np.float64]
    pair: Neighbours
    seconds: float


def audit(seed: int, *, clip: float | None, models: int = 200, epochs: int = EPOCHS, records: int = RECORDS) -> Run:
    """Train on two neighbouring data sets, `models` on each, and audit every epoch."""
    rng = np.random.default_rng([seed, 2])
    data, others = digits(seed, records)
    few = train(data, 5, 5, rng, None)
    # features and the constant together are the coefficients; there is no other intercept
    pair = make_neighbour(*data, few.transpose(0, 2, 1), np.zeros((5, CLASSES)), probability=0.02)
    found = np.zeros((2, models, epochs, 2))
    accuracy = np.zeros(epochs)
    start = time.perf_counter()
    for side, part in enumerate((pair.first, pair.second)):

        def watch(epoch: int, weights: Floats, side: int = side) -> None:
            for k, x in enumerate((pair.x_star, pair.x0)):
                found[side, :, epoch - 1, k] = log_probability(weights, x, pair.label)
            if side == 0:
                right = (others[0].astype(np.float32) @ weights[:50]).argmax(axis=2) == others[1]
                accuracy[epoch - 1] = right.mean()

        train(part, models, epochs, rng, clip, watch)
    seconds = time.perf_counter() - start
    published, joint = (
        audit_outputs(found[0], found[1], delta=DELTA, confidence=CONFIDENCE, cut=0.0, method="clopper-pearson"),
        audit_outputs(found[0], found[1], delta=DELTA, confidence=CONFIDENCE, cut="best", method="joint"),
    )
    return Run(published, joint, accuracy, pair, seconds)


def upper_bounds(epochs: Iterable[int], clip: float = CLIP) -> list[float]:
    """Return epsilon of clipped training after so many epochs, each of which looks at a record in one step."""
    multiplier = 2 * BATCH / (COPIES * RECORDS * clip * math.sqrt(step_size()))
    return [best_epsilon(SelfComposed(GaussianAnswer(multiplier, 2.0), k), DELTA).epsilon for k in epochs]


def draw(runs: dict[tuple[str, int], Run], file: str) -> None:
    """Draw epsilon and accuracy by epoch, with and without clipping."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = {"plain": "#d95f02", "clipped": "#0b6fa4"}
    for (kind, seed), run in runs.items():
        epochs = np.arange(1, len(run.accuracy) + 1)
        label = f"{kind} gradients, by seed" if seed == 0 else None
        left.plot(epochs, run.result.bounds, "-o", color=colours[kind], markersize=3, linewidth=1, label=label)
        right.plot(epochs, run.accuracy, "-o", color=colours[kind], markersize=3, linewidth=1, label=label)
    some = next(iter(runs.values())).result
    left.axhline(some.largest, color="#8a8a8a", linestyle="--", linewidth=0.9, label="most that 100 + 100 models show")
    left.set_ylim(-0.15, 4.9)
    left.set_ylabel("lower bound on epsilon (nats)")
    left.set_title(f"delta {DELTA:g}, confidence 90 % at each epoch alone", fontsize="small")
    first, last = upper_bounds((1, EPOCHS))
    right.set_title(f"proved upper bound of clipped ones: {first:.0f} to {last:.0f} nats", fontsize="small")
    right.set_ylabel("accuracy on other digits")
    for ax in (left, right):
        ax.set_xlabel("epoch")
        ax.set_xticks(range(0, 21, 5))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
    figure.savefig(file, dpi=120)


def main(seeds: tuple[int, ...] = (0, 1, 2)) -> None:
    """Print the tables, and draw the picture when asked to."""
    runs: dict[tuple[str, int], Run] = {}
    jobs = [(kind, clip, seed) for kind, clip in (("plain", None), ("clipped", CLIP)) for seed in seeds]
    for kind, clip, seed in tqdm(jobs, disable=None, leave=False):
        runs[kind, seed] = audit(seed, clip=clip)
    print(f"200 + 200 models, half of them to fit the attack; delta {DELTA:g}, confidence {CONFIDENCE} at each epoch\n")
    columns = ["gradients", "seed", *map(str, SHOWN), "largest", "joint, last", "rank correlation"]
    columns += ["accuracy, epoch 5", "last", "seconds"]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for (kind, seed), run in runs.items():
        bounds = run.result.bounds
        rank = spearmanr(np.arange(len(bounds)), bounds).statistic if np.ptp(bounds) else math.nan
        cells = [kind, str(seed), *(f"{bounds[epoch - 1]:.2f}" for epoch in SHOWN), f"{bounds.max():.2f}"]
        cells += [f"{run.joint.epsilon:.2f}", f"{rank:.2f}", f"{run.accuracy[4]:.3f}", f"{run.accuracy[-1]:.3f}"]
        print("| " + " | ".join([*cells, f"{run.seconds:.0f}"]) + " |")
    some, upper = next(iter(runs.values())), upper_bounds((1, EPOCHS))
    print(f"\nLargest bound of 100 + 100 models: {some.result.largest:.3f}; jointly {some.joint.largest:.3f}.")
    print(f"Upper bound, clipped at {CLIP}: {upper[0]:.1f} after one epoch, {upper[1]:.1f} after {EPOCHS}.")
    if "--picture" in sys.argv:
        draw(runs, sys.argv[sys.argv.index("--picture") + 1])


if __name__ == "__main__":
    main()
