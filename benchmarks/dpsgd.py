"""Private gradient descent: accuracies on digits, noise against batch size, and steps per second beside Opacus.

Run with ``python -m benchmarks.dpsgd``; ``python -m benchmarks.dpsgd DIRECTORY`` also draws accuracy and epsilon over
noise and batch size there. Opacus (with PyTorch, ``pip install torch opacus``) is measured where it is installed. Each
contender trains in a process of its own, with one thread; memory is what it grew by meanwhile (on Linux).
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from benchmarks.papers.minibatch_variance import minibatch_variance
from thresholdout.privacy.accounting import SelfComposed, best_epsilon
from thresholdout.privacy.learning import DPSGDClassifier
from thresholdout.privacy.learning.dpsgd.batches import Batches

TRAIN, STEPS, DELTA, SEEDS = 1437, 600, 1e-5, 5
SAMPLINGS: tuple[Any, ...] = ("wor", "wr", "poisson")
NOISES, SIZES = (3.0, 4.5, 6.0, 12.0), (50, 100, 150, 200)
# Widths, records, batch size, steps.
MODELS = [((64, 10), TRAIN, 64, 2000), ((64, 128, 10), TRAIN, 256, 500), ((256, 512, 10), 20_000, 512, 60)]
CONTENDERS = ["wor", "wr", "poisson", "opacus hooks", "opacus ghost"]
ROUNDS = 5

Floats = NDArray[np.float64]


def digits() -> tuple[Floats, NDArray[np.int64]]:
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return X[order], y[order]


def trained(sampling: Any, noise: float, size: int, seed: int, steps: int = STEPS) -> DPSGDClassifier:
    X, y = digits()
    model = DPSGDClassifier(
        sampling=sampling, noise_multiplier=noise, batch_size=size, n_steps=steps, learning_rate=2.0, delta=DELTA,
        feature_bounds=(0, 16), classes=range(10), average=False, random_state=seed,
    )  # fmt: skip
    return model.fit(X[:TRAIN], y[:TRAIN])


def accuracies(sampling: Any, noise: float, size: int) -> Floats:
    X, y = digits()
    return np.array([trained(sampling, noise, size, seed).score(X[TRAIN:], y[TRAIN:]) for seed in range(SEEDS)])


def epsilon(sampling: Any, noise: float, size: int) -> float:
    if not noise:
        return float("inf")
    return best_epsilon(SelfComposed(Batches(sampling, size, TRAIN).event(noise), STEPS), DELTA).epsilon


def accuracy_table() -> None:
    print(
        f"Digits, {TRAIN} for training, B 64, C 1, learning rate 2, {STEPS} steps, {SEEDS} seeds; replace-one epsilon"
    )
    print(f"at delta {DELTA:g}; accuracy, and standard deviation over seeds.\n")
    print("| noise multiplier | " + " | ".join(f"{name}: accuracy | epsilon" for name in SAMPLINGS) + " |")
    print("|---" * 7 + "|")
    for noise in (0.0, 2.0, 4.0):
        cells = []
        for sampling in SAMPLINGS:
            found = accuracies(sampling, noise, 64)
            cells += [f"{found.mean():.3f} ± {found.std(ddof=1):.3f}", f"{epsilon(sampling, noise, 64):.2f}"]
        print(f"| {noise:g} | " + " | ".join(cells) + " |")


def figure10_table(directory: Path | None) -> None:
    print("\nNoise and batch size, without replacement: accuracy (epsilon).\n")
    print("| noise multiplier | " + " | ".join(f"B {size}" for size in SIZES) + " |")
    print("|---" * (len(SIZES) + 1) + "|")
    points = {}
    for noise in NOISES:
        for size in SIZES:
            points[noise, size] = float(accuracies("wor", noise, size).mean()), epsilon("wor", noise, size)
        cells = [f"{points[noise, size][0]:.3f} ({points[noise, size][1]:.2f})" for size in SIZES]
        print(f"| {noise:g} | " + " | ".join(cells) + " |")
    if directory is not None:
        draw(points, directory)


def draw(points: dict[tuple[float, int], tuple[float, float]], directory: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    for ax, over, others, label in (
        (axes[0], NOISES, SIZES, "noise multiplier, of the clipping norm"),
        (axes[1], SIZES, NOISES, "batch size, records"),
    ):
        second = ax.twinx()
        for colour, other in enumerate(others):
            keys: list[Any] = [(x, other) if ax is axes[0] else (other, x) for x in over]
            name = f"B = {other:g}" if ax is axes[0] else f"noise {other:g}"
            ax.plot(over, [points[key][0] for key in keys], "o-", color=f"C{colour}", label=name)
            second.plot(over, [points[key][1] for key in keys], "x--", color=f"C{colour}")
        ax.set(xlabel=label, ylabel="accuracy on held-out digits (solid)")
        second.set(ylabel="epsilon, nats (dashed)", yscale="log")
        ax.legend()
    figure.suptitle(f"Private softmax regression on digits, {STEPS} steps, delta {DELTA:g}, without replacement")
    figure.savefig(directory / "dpsgd_noise_and_batch.png", dpi=120)
    plt.close(figure)


def variance_table() -> None:
    """Print the ratios of section 4.1 of the fixed-size paper, on clipped gradients along a run."""
    X, y = digits()
    rows = np.column_stack([X[:TRAIN] / 16, np.ones(TRAIN)])
    print("\nVariance of a clipped minibatch gradient, over that of Poisson batches (B 64, noise multiplier 2).\n")
    print("| after steps | without replacement | with replacement |\n|---|---|---|")
    for steps in (0, 50, STEPS):
        scores = np.zeros((TRAIN, 10)) if not steps else trained("wor", 2.0, 64, 0, steps).decision_function(X[:TRAIN])
        delta = np.exp(scores - scores.max(axis=1, keepdims=True))
        delta /= delta.sum(axis=1, keepdims=True)
        delta[np.arange(TRAIN), y[:TRAIN]] -= 1
        gradients = np.einsum("ij,ik->ijk", rows, delta).reshape(TRAIN, -1)
        gradients /= np.maximum(1, np.linalg.norm(gradients, axis=1))[:, None]
        found = minibatch_variance(gradients, 64)
        print(f"| {steps} | {found['wor/poisson']:.3f} | {found['wr/poisson']:.3f} |")


def memory(kind: str) -> float:
    """Return "VmRSS", the memory of this process on Linux, or "VmHWM", the most since `forget_peak`, in MiB."""
    found = re.search(rf"{kind}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return float("nan") if found is None else int(found[1]) / 1024


def forget_peak() -> float:
    """Let the peak of memory start anew; return the memory at present, in MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def made(widths: tuple[int, ...], records: int) -> tuple[Floats, NDArray[np.int64]]:
    rng = np.random.default_rng(0)
    return rng.random((records, widths[0])), rng.integers(0, widths[-1], records)


def train_ours(sampling: Any, widths: tuple[int, ...], records: int, size: int, steps: int) -> dict[str, float]:
    X, y = made(widths, records)
    model = DPSGDClassifier(
        widths[1:-1], sampling=sampling, batch_size=size, noise_multiplier=2.0, classes=range(widths[-1])
    )
    DPSGDClassifier(noise_multiplier=1.0, n_steps=1, batch_size=1).fit(X[:2], [0, 1])  # loads what is loaded late
    before = forget_peak()
    model.set_params(n_steps=5).fit(X, y)
    start = time.perf_counter()
    model.set_params(n_steps=steps).fit(X, y)
    return {"steps per second": steps / (time.perf_counter() - start), "memory": memory("VmHWM") - before}


def train_opacus(mode: str, widths: tuple[int, ...], records: int, size: int, steps: int) -> dict[str, float]:
    import warnings

    warnings.simplefilter("ignore")
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    X, y = made(widths, records)
    data = torch.utils.data.TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
    layers: list[Any] = []
    for a, b in pairwise(widths):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model: Any = torch.nn.Sequential(*layers[:-1])
    loss: Any = torch.nn.CrossEntropyLoss()
    common: dict[str, Any] = {
        "module": model,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.5),
        "data_loader": torch.utils.data.DataLoader(data, batch_size=size),
        "noise_multiplier": 2.0,
        "max_grad_norm": 1.0,
    }
    engine = PrivacyEngine(accountant="rdp")
    if mode == "ghost":
        model, optimizer, loss, loader = engine.make_private(**common, criterion=loss, grad_sample_mode="ghost")
    else:
        model, optimizer, loader = engine.make_private(**common)

    def run(number: int) -> None:
        taken = 0
        while taken < number:
            for rows, labels in loader:
                optimizer.zero_grad()
                loss(model(rows), labels).backward()
                optimizer.step()
                taken += 1
                if taken == number:
                    return

    before = forget_peak()
    run(5)
    start = time.perf_counter()
    run(steps)
    return {"steps per second": steps / (time.perf_counter() - start), "memory": memory("VmHWM") - before}


def contend(contender: str, number: int) -> dict[str, float]:
    """Return one contender's numbers, in this process."""
    name, _, mode = contender.partition(" ")
    return train_opacus(mode, *MODELS[number]) if name == "opacus" else train_ours(name, *MODELS[number])


def speed_table() -> None:
    peer = importlib.util.find_spec("opacus") is not None and importlib.util.find_spec("torch") is not None
    contenders = [name for name in CONTENDERS if peer or not name.startswith("opacus")]
    print("\nSteps per second, and memory that a process grew by while it trained (one thread; the best of")
    print(f"{ROUNDS} interleaved runs); Opacus draws Poisson batches." + ("" if peer else " Opacus is not installed."))
    print("\n| model, batch | " + " | ".join(contenders) + (" | ours / Opacus |" if peer else " |"))
    print("|---" * (len(contenders) + 1 + peer) + "|")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    for number, (widths, records, size, _) in enumerate(MODELS):
        best: dict[str, dict[str, float]] = {}
        for _ in range(ROUNDS):
            for name in contenders:
                command = [sys.executable, "-m", "benchmarks.dpsgd", "--contender", name, str(number)]
                shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                found = json.loads(shown.splitlines()[-1])
                if name not in best or found["steps per second"] > best[name]["steps per second"]:
                    best[name] = found
        cells = [f"{best[name]['steps per second']:,.0f}/s, {best[name]['memory']:.1f} MiB" for name in contenders]
        if peer:
            theirs = max(best[name]["steps per second"] for name in contenders if name.startswith("opacus"))
            cells.append(f"{best['poisson']['steps per second'] / theirs:.1f}")
        print(f"| {'-'.join(map(str, widths))}, B {size} of {records:,} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the tables."""
    directory = Path(sys.argv[1]) if len(sys.argv) == 2 and Path(sys.argv[1]).is_dir() else None
    accuracy_table()
    figure10_table(directory)
    variance_table()
    speed_table()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--contender"]:
        print(json.dumps(contend(sys.argv[2], int(sys.argv[3]))))
    else:
        main()
