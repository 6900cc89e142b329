"""Mutation testing from the command line: see ``python -m tests.mutation --help``."""

from __future__ import annotations

import os
import random
import time
from collections import Counter

import click
from tqdm import tqdm

from tests.mutation.critical import CRITICAL
from tests.mutation.mutants import Mutant, mutants, path_of, sample
from tests.mutation.results import (
    NOT_RUN,
    SURVIVED,
    Verdict,
    add_to_log,
    commit,
    origin_of_sample,
    read_log,
    read_sample,
    write_critical,
    write_sample,
    write_survivors,
)
from tests.mutation.selection import judges_of
from tests.mutation.trial import Result, prepare, run

SEED = 20261122
SIZE = 300
#: Seconds of the processor's time that a file of tests has for a mutant.
LONGEST = 100.0
#: How many times longer than with the code as it is tests have to take to be noticed.
SLOWER = 3.0
SPARE = 5.0

_USUAL: dict[tuple[str, bool], Result] = {}  # what comes of files of tests, with slow ones or without, as the code is


@click.group()
def main() -> None:
    """Change the code a little, and see whether a test notices."""


@main.command("list")
@click.option("--size", default=SIZE, show_default=True)
@click.option("--seed", default=SEED, show_default=True)
def list_sample(size: int, seed: int) -> None:
    """Draw the sample from the code as it is, and write its table without results."""
    chosen = sample(size, seed)
    write_sample(chosen, {}, f"{size} mutants of commit {commit()}, drawn with seed {seed}")


@main.command("run")
@click.argument("which", type=click.Choice(["sample", "critical"]))
@click.option("--minutes", default=600.0, show_default=True, help="Start no mutant after this time.")
@click.option("--only", default="", help="Modules whose paths begin like this.")
@click.option(
    "--survivors", is_flag=True, help="Try survivors again, against slow tests and the nearest of other modules."
)
def run_mutants(which: str, minutes: float, only: str, survivors: bool) -> None:
    """Try the mutants that have no verdict yet; verdicts go to a log at once, so this may be stopped."""
    until = time.monotonic() + 60.0 * minutes
    log = read_log()
    wanted = SURVIVED if survivors else NOT_RUN
    chosen = [each for each in _set(which, only) if log.get(each, Verdict()).outcome == wanted]
    if which == "sample":
        random.Random(SEED).shuffle(chosen)  # so that what a stopped run has seen is a sample too
    prepare()
    for mutant in tqdm(chosen, mininterval=10.0):
        if time.monotonic() > until:
            break
        add_to_log(mutant, _verdict(mutant, survivors))


@main.command("tables")
def write_tables() -> None:
    """Write the tables from the log of the runs."""
    log, chosen, critical = read_log(), read_sample(), _set("critical")
    write_sample(chosen, log, origin_of_sample())
    write_critical(critical, log, f"all mutants of the definitions of critical.py, of commit {commit()}")
    write_survivors([*chosen, *critical], log, "survivors of both tables, and why they may")
    for name, each in (("sample", chosen), ("critical", critical)):
        click.echo(f"{name}: {len(each)} mutants, {dict(Counter(log.get(one, Verdict()).outcome for one in each))}")


def _set(which: str, only: str = "") -> list[Mutant]:
    """Return the mutants of the sample, or those of the critical definitions."""
    if which == "sample":
        return [each for each in read_sample() if each.module.startswith(only)]
    wanted = {path_of(name): definitions for name, definitions in CRITICAL.items()}
    return [each for module in wanted if module.startswith(only) for each in mutants(module, wanted[module])]


def _verdict(mutant: Mutant, widely: bool) -> Verdict:
    """Try a mutant against one file of tests after another, until one notices it."""
    try:
        source = mutant.source()
    except LookupError:
        return Verdict(by="what it mutates has changed: list the mutants again")
    own, others = judges_of(mutant.module)
    tried = 0
    for file in (*own, *(others if widely else ())):
        result = run([file], mutant.module, source, _limit(file, widely), widely)
        tried += 1
        if result.outcome != "passed" and _noticed(file, result, widely):
            return Verdict("killed" if result.outcome == "failed" else result.outcome, result.first or file, tried)
    return Verdict(SURVIVED, "", tried)


def _noticed(file: str, result: Result, slow: bool) -> bool:
    """Whether it is the mutant that fails a file's tests, or takes too long: they pass with the code as it is, in time.

    Tests that need a good part of the time by themselves say nothing when they run out of it.
    """
    usual = _USUAL[file, slow] = _USUAL.get((file, slow)) or run([file], slow=slow)
    if usual.outcome != "passed":
        raise click.ClickException(f"{file}: {usual.first or usual.outcome} with the code as it is")
    return result.outcome == "failed" or SLOWER * usual.seconds < LONGEST


def _limit(file: str, slow: bool) -> float:
    """Return the seconds that a file's tests have: fewer where it is known how many they need."""
    return min(LONGEST, SPARE + SLOWER * _USUAL[file, slow].seconds) if (file, slow) in _USUAL else LONGEST


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
