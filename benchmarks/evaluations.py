"""Evaluation sets: how many prompts a verdict takes, beside Student's t, and what a year of adaptive changes ends in.

Run with ``python -m benchmarks.evaluations``. Each prompt is answered once by either model. Its difficulty is
Beta(.75, .25); a drop makes a share of right answers wrong, or for discordances it is stated as such. Prompts needed
are found by bisection on simulated power .8; Student's t is the paired one, in closed form. The years are those of
``tests/statistical/test_evaluation_years.py``, which has their authors.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, ndtri_exp
from scipy.stats import t as student

from thresholdout.evaluations.account import Account
from thresholdout.limits.binomial import log_one_law_tail
from thresholdout.limits.group_bets import log_difference_wealth
from thresholdout.limits.sign_flips import log_flip_tail
from thresholdout.limits.trinomial import difference_refuted

POWER = 0.8
RUNS = 600
DISCORDANT = 0.1875
"""Of two draws for each prompt: 2 E p (1 - p) of Beta(.75, .25)."""

Counts = tuple[int, int]
Passes = Callable[[int, int, int], bool]


def needed_by_t(drop: float, discordant: float, level: float) -> float:
    return (discordant - drop**2) * ((float(ndtri(1 - level)) + float(ndtri(POWER))) / drop) ** 2


def prompts_needed(passes: Passes, win: float, loss: float, start: float, runs: int = RUNS) -> int:
    """Bisect the number of prompts at which a share POWER of simulated runs passes."""
    low, high = 0.5 * start, 6.0 * start
    for _ in range(9):
        middle = math.sqrt(low * high)
        rng = np.random.default_rng(7)
        n = round(middle)
        draws = rng.multinomial(n, [win, loss, 1.0 - win - loss], size=runs)
        seen = np.mean([passes(int(w), int(lost), n) for w, lost, _ in draws])
        low, high = (low, middle) if seen >= POWER else (middle, high)
    return round(math.sqrt(low * high))


def signs(log_level: float) -> Passes:
    return lambda wins, losses, n: log_one_law_tail(losses, wins + losses, 0.5) <= log_level


def bets(log_level: float, margin: float = 0.0) -> Passes:
    def passes(wins: int, losses: int, n: int) -> bool:
        up, down = (losses, wins) if margin == 0.0 else (wins, losses)
        return _wealth(up, down, n, margin) >= -log_level

    return passes


def _wealth(up: int, down: int, n: int, margin: float) -> float:
    totals = np.repeat([1.0, -1.0, 0.0], [up, down, n - up - down])
    return log_difference_wealth(totals, np.ones(n), margin)


def trinomial_needed(discordant: float, margin: float, log_level: float, start: float) -> int:
    """Bisect the number of prompts; what passes is a score limit of at least a critical one, found by bisection too."""
    low, high = 0.5 * start, 3.0 * start
    for _ in range(8):
        n = round(math.sqrt(low * high))
        differing = round(n * discordant)
        fails, passes = -differing, differing
        while passes - fails > 2:
            middle = (passes + fails) // 4 * 2 + differing % 2
            middle = min(max(middle, fails + 2), passes - 2) if passes - fails > 4 else fails + 2
            won = (differing + middle) // 2
            if difference_refuted(won, differing - won, n, -margin, log_level):
                passes = middle
            else:
                fails = middle
        won = (differing + passes) // 2
        draws = np.random.default_rng(7).multinomial(n, [discordant / 2, discordant / 2, 1 - discordant], size=20_000)
        limits = score_limits(draws[:, 0], draws[:, 1], n, log_level)
        critical = score_limits(np.array([won]), np.array([differing - won]), n, log_level)[0]
        low, high = (low, float(n)) if np.mean(limits >= critical) >= POWER else (float(n), high)
    return round(math.sqrt(low * high))


def score_limits(wins: np.ndarray, losses: np.ndarray, n: int, log_level: float) -> np.ndarray:
    """Return the order of outcomes of the trinomial test, n times their score limit."""
    gain, z = (wins - losses).astype(float), -float(ndtri_exp(log_level))
    limits: np.ndarray = gain - z * np.sqrt(wins + losses - gain * gain / n + z * z)
    return limits


def drops() -> None:
    drop, discordant = 0.02, DISCORDANT + 0.02**2
    win, loss = 0.5 * (discordant - drop), 0.5 * (discordant + drop)
    base = needed_by_t(drop, discordant, 0.05)
    print(f"prompts to see a drop of 2 points as worse, power .8; paired t: {base:.0f}")
    for name, passes in (("sign test", signs(math.log(0.05))), ("bets, any laws", bets(math.log(0.05)))):
        found = prompts_needed(passes, win, loss, base, RUNS if name == "sign test" else 200)
        print(f"  {name}: {found} ({found / base:.2f})")


def margins() -> None:
    print("prompts to prove not worse by 2 points where nothing changed, power .8")
    for discordant in (0.05, 0.1, 0.2):
        base = needed_by_t(0.02, discordant + 0.02**2, 0.05)
        level = math.log(0.05)
        for name, found in (
            ("trinomial", trinomial_needed(discordant, 0.02, level, base)),
            ("bets, any laws", prompts_needed(bets(level, 0.02), discordant / 2, discordant / 2, base, 200)),
        ):
            print(f"  discordance {discordant}: paired t {base:.0f}; {name}: {found} ({found / base:.2f})")


def last_check() -> None:
    drop, discordant = 0.02, DISCORDANT + 0.02**2
    win, loss = 0.5 * (discordant - drop), 0.5 * (discordant + drop)
    base = needed_by_t(drop, discordant, 0.05 / 300)
    print(f"prompts of the 300th of 300 checks, two baselines; Bonferroni's t: {base:.0f}")
    for alarms in (0, 1, 3):
        account = Account(300, 9, False, "year", math.log(0.05))
        at = {round(300 * (k + 1) / (alarms + 1)) for k in range(alarms)}
        for number in range(1, 300):
            account = account.after(number in at)
        found = prompts_needed(signs(account.log_level - math.log(2.0)), win, loss, base)
        print(f"  after {alarms} alarms: {found} ({found / base:.2f})")


def clusters() -> None:
    """Answers of a passage share its difficulty: the drop is one of the candidate's chance of each answer."""
    rng = np.random.default_rng(11)
    print("seen as worse: sign flips, clustered t, bets")
    for passages, size, drop in ((20, 5, 0.2), (200, 5, 0.1)):
        seen = np.zeros(3)
        runs = 400
        for _ in range(runs):
            share = np.repeat(rng.beta(0.75, 0.25, size=passages), size)
            base = rng.random(share.size) < share
            fallen = rng.random(share.size) < drop / 0.75
            candidate = (rng.random(share.size) < share) & ~fallen
            totals = (candidate.astype(float) - base).reshape(passages, size).sum(axis=1)
            deviation = float(totals.std(ddof=1)) / math.sqrt(passages)
            seen += (
                log_flip_tail(-totals) <= math.log(0.05),
                float(totals.mean()) <= -deviation * float(student.ppf(0.95, passages - 1)),
                log_difference_wealth(-totals, np.full(passages, float(size))) >= -math.log(0.05),
            )
        print(
            f"  {passages} passages of {size}, {100 * drop:.0f} points: " + ", ".join(f"{x:.2f}" for x in seen / runs)
        )


def resampled(items: int = 1000, runs: int = 2000) -> None:
    rng = np.random.default_rng(13)
    shares: NDArray[np.float64] = rng.beta(0.75, 0.25, size=items)
    worse = 0
    for _ in range(runs):
        base, candidate = rng.random(items) < shares, rng.random(items) < shares
        losses, wins = int(np.sum(base & ~candidate)), int(np.sum(candidate & ~base))
        worse += log_one_law_tail(losses, wins + losses, 0.5) <= math.log(0.05)
    print(f"A/A, resampled runs of one model: worse in {worse / runs:.3f} (promised .05)")


def policies(years: int = 200, items: int = 1000, checks: int = 300) -> None:
    """Who merges what: true effects of -.6 with a deviation of 1.2 points, each change once, normal noise of a run."""
    noise = math.sqrt(0.5 * DISCORDANT / items)
    deviation = math.sqrt(2.0) * noise
    z = float(ndtri(0.95))
    print(f"{checks} changes of -.6 (1.2) points, {items} prompts: merged, and points that main gained in truth")
    for name in ("green unless worse than main", "or than the release", "proved not worse by 2", "the promise"):
        merged, gained = [], []
        for year in range(years):
            rng = np.random.default_rng([17, year])
            account = Account(checks, 5, False, "year", math.log(0.05))
            truth, count = 0.0, 0
            release = main_run = rng.normal(0.0, noise)
            for effect in rng.normal(-0.006, 0.012, size=checks):
                run = truth + effect + rng.normal(0.0, noise)
                to_main, to_release = (run - main_run) / deviation, (run - release) / deviation
                if name == "the promise":
                    if account.exhausted:
                        break
                    level = account.log_level - math.log(2.0)
                    alarm = min(to_main, to_release) < float(ndtri_exp(level))
                    account = account.after(alarm)
                    merge = not alarm
                elif name == "proved not worse by 2":
                    merge = to_main + 0.02 / deviation > z
                elif name == "or than the release":
                    merge = min(to_main, to_release) > -z
                else:
                    merge = to_main > -z
                if merge:
                    truth, count, main_run = truth + effect, count + 1, run
            merged.append(count)
            gained.append(100.0 * truth)
        error = float(np.std(gained)) / math.sqrt(years)
        print(f"  {name}: {np.mean(merged):.0f} merged, {np.mean(gained):+.1f} ({error:.1f}) points")


def packages(items: int = 3100, runs: int = 40) -> None:
    """Count runs that are called worse, without a drop and with one of 2 points; packages resample 1,000 times."""
    judges = {
        name: judge
        for name, judge in (
            ("evalci", _by_evalci),
            ("evalsig", _by_evalsig),
            ("deltagate", _by_deltagate),
            ("statgate", _by_statgate),
        )
        if importlib.util.find_spec(name) is not None
    }
    if not judges:
        print("no other package is installed: pip install evalci evalsig deltagate statgate")
    print(f"called worse of {runs} pairs of runs of {items} prompts: no drop, 2 points")
    for name, judge in {"sign test": _by_signs, "paired t": _by_t, **judges}.items():
        called, started = [0, 0], time.process_time()
        for k, drop in enumerate((0.0, 0.02)):
            rng = np.random.default_rng(19)
            for _ in range(runs):
                share = rng.beta(0.75, 0.25, size=items)
                base = (rng.random(items) < share).astype(float)
                candidate = ((rng.random(items) < share) & (rng.random(items) >= drop / 0.75)).astype(float)
                called[k] += judge(base, candidate)
        seconds = (time.process_time() - started) / (2 * runs)
        print(f"  {name}: {called[0]}, {called[1]} ({1000 * seconds:.0f} ms)")


def _by_signs(base: NDArray[np.float64], candidate: NDArray[np.float64]) -> bool:
    losses, wins = int(np.sum(base > candidate)), int(np.sum(candidate > base))
    return log_one_law_tail(losses, wins + losses, 0.5) <= math.log(0.05)


def _by_t(base: NDArray[np.float64], candidate: NDArray[np.float64]) -> bool:
    difference = candidate - base
    limit = -float(student.ppf(0.95, difference.size - 1)) * float(difference.std(ddof=1)) / math.sqrt(difference.size)
    return bool(difference.mean() <= limit)


def _by_evalci(base: NDArray[np.float64], candidate: NDArray[np.float64]) -> bool:
    """Its McNemar test; two-sided, so that half its p-value is one-sided."""
    found = importlib.import_module("evalci").compare(candidate, base, method="mcnemar")
    return bool(candidate.mean() < base.mean() and found.p_value <= 0.1)


def _by_evalsig(base: NDArray[np.float64], candidate: NDArray[np.float64]) -> bool:
    """Its one-sided comparison with the runs exchanged; its gate asks for a proved gain, and blocks 40 of 40."""
    evalsig = importlib.import_module("evalsig")
    frames = [
        evalsig.RunFrame(
            name, "model", "task", "score", [evalsig.ItemResult(str(i), float(s)) for i, s in enumerate(scores)]
        )
        for name, scores in (("base", base), ("candidate", candidate))
    ]
    return bool(evalsig.compare(frames[1], frames[0], one_sided=True, n_resamples=1000).significant)


def _by_deltagate(base: NDArray[np.float64], candidate: NDArray[np.float64]) -> bool:
    found = importlib.import_module("deltagate").mcnemar_from_scores(base.tolist(), candidate.tolist())
    return bool(candidate.mean() < base.mean() and found.p_value <= 0.1)


def _by_statgate(base: NDArray[np.float64], candidate: NDArray[np.float64]) -> bool:
    """Its gate with no margin; BLOCK is worse."""
    statgate = importlib.import_module("statgate")
    runs = [
        [statgate.EvalRecord(case_id=str(i), score=float(score)) for i, score in enumerate(scores)]
        for scores in (base, candidate)
    ]
    report = statgate.evaluate_gate(*runs, statgate.GateSettings(margin=0.0, resamples=1000, permutations=1000, seed=1))
    return str(report.verdict.name) == "BLOCK"


def main() -> None:
    for part in (policies, drops, margins, last_check, clusters, resampled, packages):
        started = time.perf_counter()
        part()
        print(f"  ({time.perf_counter() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
