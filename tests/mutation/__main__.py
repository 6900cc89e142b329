"""Mutation testing from the command line: see ``python -m tests.mutation --help``."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

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
from tests.mutation.selection import judges_of, wider_judges_of
from tests.mutation.trial import prepare, run

SEED = 20261122
SIZE = 300


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
@click.option("--longest", default=math.inf, help="Leave out tests that take more seconds.")
def run_mutants(which: str, minutes: float, only: str, survivors: bool, longest: float) -> None:
    """Try the mutants that have no verdict yet; verdicts go to a log at once, so this may be stopped."""
    until = time.monotonic() + 60.0 * minutes
    log = read_log()
    wanted = SURVIVED if survivors else NOT_RUN
    prepare()
    for module, chosen in _by_module(which, only):
        left = [each for each in chosen if log.get(each, Verdict()).outcome == wanted]
        tests = wider_judges_of(module) if survivors else judges_of(module)
        left_minutes = (until - time.monotonic()) / 60.0
        trials = run(left, tests, slow=survivors, longest=longest, minutes=left_minutes)
        for mutant, verdict in tqdm(trials, module, len(left), mininterval=10.0):
            add_to_log(mutant, verdict)


@main.command("tables")
def write_tables() -> None:
    """Write the tables from the log of the runs."""
    log, chosen, critical = read_log(), read_sample(), _set("critical")
    write_sample(chosen, log, origin_of_sample())
    write_critical(critical, log, f"all mutants of the definitions of critical.py, of commit {commit()}")
    write_survivors([*chosen, *critical], log, "survivors of both tables, and why they may")
    for name, each in (("sample", chosen), ("critical", critical)):
        click.echo(f"{name}: {len(each)} mutants, {dict(Counter(log.get(one, Verdict()).outcome for one in each))}")


def _by_module(which: str, only: str = "") -> Iterator[tuple[str, list[Mutant]]]:
    """Yield modules, and their mutants in the sample or in the critical definitions."""
    if which == "sample":
        for module, each in groupby(read_sample(), lambda mutant: mutant.module):
            if module.startswith(only):
                yield module, list(each)
        return
    for name, definitions in CRITICAL.items():
        if path_of(name).startswith(only):
            yield path_of(name), mutants(path_of(name), definitions)


def _set(which: str) -> list[Mutant]:
    """Return the mutants of the sample, or those of the critical definitions."""
    return [mutant for _, chosen in _by_module(which) for mutant in chosen]


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
