"""Expectation propagation, stochastic and private: how fast it is, and what of its paper comes out.

Run with ``python -m benchmarks.papers.propagation_learning``, or some of it: ``python -m
benchmarks.papers.propagation_learning speed agreement mixture linear probit``; ``linear=FILE.png`` also draws. About
fifteen minutes in all on one core. [VP] is M. Vinaroz and M. Park, "Differentially private stochastic expectation
propagation".
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes

from benchmarks.papers.simulated_mixtures import (
    MixtureData,
    aligned_f_norm,
    conditional_mog_posterior,
    make_mog_data,
)
from thresholdout.privacy.accounting import GaussianAnswer, calibrate
from thresholdout.privacy.learning import EPClassifier, EPLinearRegression
from thresholdout.privacy.learning.propagation.ep_privacy import sep_noise_std
from thresholdout.privacy.learning.propagation.ep_runs import run_ep, run_sep
from thresholdout.privacy.learning.propagation.ep_update import dp_sep_step
from thresholdout.privacy.learning.propagation.gaussian_models import LinearModel, LinearPredictor, MixtureOfGaussians
from thresholdout.privacy.learning.propagation.natural_parameters import GaussianNatural

DELTA = 1e-5
SEEDS = range(10)
NOISE = {50: (0.449, 0.632), 5: (0.972, 3.475), 1: (4.13, 8131.0)}
"""The noise multipliers of eta and Lam in the paper's scripts, for an epsilon that they do not have."""

Floats = Any


def quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def speed() -> None:
    print("One pass over 100,000 records of 10 dimensions, private, one core:")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 10))
    y = X @ np.ones(10) + rng.normal(size=len(X))
    prior = GaussianNatural(np.zeros(10), np.eye(10))
    for name, model, targets in (
        ("linear", LinearModel(prior, 1.0), y),
        ("probit", LinearPredictor(prior), np.sign(y)),
        ("logit", LinearPredictor(prior, "logit"), np.sign(y)),
    ):
        start = time.perf_counter()
        run_sep(model, list(zip(X, targets.tolist(), strict=True)), n_epochs=1, gamma="auto", C=6.0, sigma=1.5)
        print(f"  {name:8s} {time.perf_counter() - start:6.1f} s")


def agreement() -> None:
    print("Stochastic against plain expectation propagation (claim: 0.1 posterior sd, 0.02 log-likelihood)")
    print("  data, step                        passes  largest gap/sd  log-likelihoods")
    cancer, diabetes = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
    settings: list[tuple[str, Any, Any]] = [
        ("breast_cancer, probit", cancer, EPClassifier(standardize=True)),
        ("diabetes, linear", diabetes, EPLinearRegression(standardize=True, noise_var=54.0**2)),
    ]
    for name, (X, y), plain in settings:
        plain.fit(X, y)
        sd = np.sqrt(np.diag(plain.posterior()["cov"]))
        for gamma, T in ((1.0, 50), (0.1, 50), (0.02, 250)):
            other = type(plain)(**plain.get_params())
            other.set_params(algorithm="sep", gamma=gamma * len(X), n_epochs=T, sampling="shuffle", random_state=0)
            other.fit(X, y)
            gap = np.abs(other.posterior()["mean"] - plain.posterior()["mean"]) / sd
            scores = f"{plain.log_likelihood(X, y):.4f} {other.log_likelihood(X, y):.4f}"
            print(f"  {name:22s} gamma = {gamma:4g} N {T:6d} {gap.max():14.3f}    {scores}")


def mixture_of(data: MixtureData) -> tuple[MixtureOfGaussians, GaussianNatural]:
    J, d = data.means.shape
    prior = GaussianNatural(0.1 * data.prior_means, np.broadcast_to(0.1 * np.eye(d), (J, d, d)))
    return MixtureOfGaussians(prior, np.full(J, 1 / J), 0.25), conditional_mog_posterior(
        data.X, data.labels, prior, 0.25
    )


def as_the_scripts_do(model: MixtureOfGaussians, X: Floats, C: float, sigmas: tuple[float, ...], seed: int) -> Any:
    """Run 100 passes of the published variant: fixed order, separate clips, silent skips, an unclipped state.

    It is no private run: an update is skipped, noise and all, where the posterior would not be proper.
    """
    rng, N = np.random.default_rng(seed), len(X)
    theta = model.prior.scale(0.0)
    scales = np.zeros(theta.values.size)
    for block, sigma in zip(theta.blocks("separate"), sigmas, strict=False):
        scales[block] = sep_noise_std(sigma, N, C, 1.0)
    for _ in range(100):
        noises = theta.mirror(rng.standard_normal((N, scales.size))) * scales
        for x, row in zip(X, noises, strict=True):
            noise = theta.with_values(row) if sigmas else None

            def site(cavity: GaussianNatural, x: Floats = x) -> GaussianNatural:
                try:
                    return model.site(x, cavity)
                except ValueError:
                    return cavity.scale(np.nan)

            after, trace = dp_sep_step(
                theta, model.prior, site, N=N, gamma=1.0, C=C, noise=noise, clip_mode="separate", state="posterior"
            )
            if not trace.projected:
                theta = after
    return model.prior + theta.scale(N)


def mixture() -> None:
    print(
        "Mixture of Gaussians (table 1): squared errors of means and covariances against the exact posterior, medians"
    )
    print("  method                                    N   seeds       mean        cov")

    def row(name: str, n: int, seeds: Any, run: Callable[[MixtureOfGaussians, Floats, int], Any]) -> None:
        errors = []
        for seed in seeds:
            data = make_mog_data(60 + seed, n)
            model, exact = mixture_of(data)
            theta = quietly(lambda m=model, d=data, s=seed: run(m, d.X, s))  # type: ignore[misc]
            errors.append(aligned_f_norm(theta, exact, data.means))
        mean, cov = np.median(errors, axis=0)
        print(f"  {name:36s} {n:6d} {len(errors):7d} {mean:10.3g} {cov:10.3g}", flush=True)

    def sep(gamma: Any, T: int, **more: Any) -> Callable[[MixtureOfGaussians, Floats, int], Any]:
        return lambda model, X, seed: run_sep(model, list(X), n_epochs=T, gamma=gamma, random_state=seed, **more).theta

    few = SEEDS[:3]
    row("EP", 1000, SEEDS, lambda model, X, seed: run_ep(model, list(X), max_iter=20, tol=1e-4).theta)
    row("SEP, gamma N, T 10", 1000, SEEDS, sep("sep", 10, sampling="shuffle"))
    row("SEP, gamma 1, T 100", 1000, few, sep(1, 100, sampling="cyclic"))
    for C in (20.0, 10.0, 1.0):
        row(f"script, C {C:g}", 1000, few, lambda model, X, seed, C=C: as_the_scripts_do(model, X, C, (), seed))  # type: ignore[misc]
    for epsilon, noise in NOISE.items():
        row(
            f"script, claimed epsilon {epsilon}",
            1000,
            few,
            lambda model, X, seed, noise=noise: as_the_scripts_do(model, X, 1.0, noise, seed),  # type: ignore[misc]
        )
    from thresholdout.privacy.learning import EPGaussianMixture

    def private(epsilon: float) -> Callable[[MixtureOfGaussians, Floats, int], Any]:
        def run(model: MixtureOfGaussians, X: Floats, seed: int) -> Any:
            found = EPGaussianMixture(
                len(model.weights),
                prior_mean=model.prior.mean(),
                algorithm="dp-sep",
                n_epochs=20,
                clip_norm=1.0,
                epsilon=epsilon,
                random_state=seed,
            )
            return found.fit(X).posterior_

        return run

    for n in (1000, 4000):
        for epsilon in (50, 5, 1):
            row(f"ours, C 1, T 20, epsilon {epsilon}", n, SEEDS, private(epsilon))


def linear_data(N: int, seed: int, d: int = 5) -> tuple[Floats, Floats, Floats, Floats]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N + 5000, d))
    y = X @ rng.normal(size=d) + 0.5 * rng.normal(size=len(X))
    return X[:N], y[:N], X[N:], y[N:]


def rmse(weights: Floats, X: Floats, y: Floats) -> float:
    return float(np.sqrt(np.mean((X @ weights - y) ** 2)))


def released_once(X: Floats, y: Floats, C: float, seed: int) -> Floats:
    """Return the mean by the sum of all clipped sites with noise, released once at the same privacy."""
    model = LinearModel(GaussianNatural(np.zeros(X.shape[1]), np.eye(X.shape[1])), 0.25)
    total = model.prior
    for record in zip(X, y.tolist(), strict=True):
        total = total + model.site(record, model.prior).clip(C)
    sigma = calibrate(GaussianAnswer, 1.0, DELTA).value
    noise = total.mirror(np.random.default_rng(seed).standard_normal(total.values.size)) * (2 * C * sigma)
    return total.with_values(total.values + noise).project().mean()


def linear(picture: str | None = None) -> None:
    print("Linear model, d = 5, epsilon 1, C 6: test error over that of the exact posterior, medians and extremes")
    found: dict[str, list[tuple[int, float]]] = {}
    for N in (2000, 20_000):
        ratios: dict[str, list[float]] = {}
        for seed in SEEDS:
            X, y, Xt, yt = linear_data(N, seed)
            exact = EPLinearRegression(noise_var=0.25, fit_intercept=False, n_epochs=1).fit(X, y).coef_
            best = rmse(exact, Xt, yt)
            ratios.setdefault("sum of sites, released once", []).append(
                rmse(released_once(X, y, 6.0, seed), Xt, yt) / best
            )
            for T in (5, 20):
                private = EPLinearRegression(
                    noise_var=0.25,
                    fit_intercept=False,
                    algorithm="dp-sep",
                    n_epochs=T,
                    clip_norm=6.0,
                    epsilon=1.0,
                    random_state=seed,
                )
                quietly(lambda e=private, a=X, b=y: e.fit(a, b))  # type: ignore[misc]
                ratios.setdefault(f"DP-SEP, {T} passes", []).append(rmse(private.coef_, Xt, yt) / best)
        for name, values in ratios.items():
            found.setdefault(name, []).append((N, float(np.median(values))))
            print(
                f"  N {N:6d}  {name:28s} {np.median(values):7.3f}   {min(values):.3f} to {max(values):.3f}", flush=True
            )
    if picture:
        draw(found, picture)


def draw(found: dict[str, list[tuple[int, float]]], path: str) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    for name, points in found.items():
        ax.plot(*zip(*points, strict=True), marker="o", label=name)
    ax.axhline(1.1, linestyle=":", color="gray", label="10 % above exact")
    ax.set(xscale="log", xlabel="records", ylabel="test RMSE / exact posterior's", title="Linear model, epsilon = 1")
    ax.legend()
    figure.savefig(path, dpi=120)


def probit() -> None:
    print("Probit model, d = 5, epsilon 1, C 1, 20 passes: mean test log-likelihood and accuracy, medians")
    for N in (2000, 20_000):
        rows = []
        for seed in SEEDS[:5]:
            X, y, Xt, yt = linear_data(N, seed)
            labels, truth = (y > 0).astype(int), (yt > 0).astype(int)
            plain = EPClassifier(fit_intercept=False, n_epochs=10, tol=1e-3).fit(X, labels)
            private = EPClassifier(
                fit_intercept=False,
                classes=[0, 1],
                algorithm="dp-sep",
                n_epochs=20,
                clip_norm=1.0,
                epsilon=1.0,
                random_state=seed,
            )
            quietly(lambda e=private, a=X, b=labels: e.fit(a, b))  # type: ignore[misc]
            scores = [(each.log_likelihood(Xt, truth), each.score(Xt, truth)) for each in (plain, private)]
            rows.append([*scores[0], *scores[1]])
        values = np.median(rows, axis=0)
        print("  N {:6d}  EP {:.3f} {:.3f}   DP-SEP {:.3f} {:.3f}".format(N, *values), flush=True)


def main() -> None:
    parts: dict[str, Callable[..., None]] = {
        "speed": speed,
        "agreement": agreement,
        "mixture": mixture,
        "linear": linear,
        "probit": probit,
    }
    chosen = [word for word in sys.argv[1:] if word.split("=")[0] in parts] or list(parts)
    for word in chosen:
        name, _, path = word.partition("=")
        parts[name](*([path] if path else []))
        print()


if __name__ == "__main__":
    main()
