"""What came of the mutants: a log that runs add to, and the tables of this folder that are made of it."""

from __future__ import annotations

import csv
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Final

from tests.mutation.mutants import ROOT, Mutant

FOLDER: Final = Path(__file__).parent
LOG: Final = ROOT / "build" / "mutation.tsv"
NOT_RUN: Final = "not run"
SURVIVED: Final = "survived"
KILLED: Final = ("killed", "too long")


@dataclass(frozen=True)
class Verdict:
    """What came of a mutant, and the first test that failed."""

    outcome: str = NOT_RUN
    by: str = ""


_MUTANT: Final = [field.name for field in fields(Mutant)]
_VERDICT: Final = [field.name for field in fields(Verdict)]
_COUNTS: Final = ["module", "definition", "mutants", *KILLED, SURVIVED, "explained", NOT_RUN]


def read_log() -> dict[Mutant, Verdict]:
    """Return the last verdict of each mutant."""
    return {_mutant(row): Verdict(row["outcome"], row["by"]) for row in _rows(LOG)}


def add_to_log(mutant: Mutant, verdict: Verdict) -> None:
    """Append a verdict."""
    LOG.parent.mkdir(exist_ok=True)
    fresh = not LOG.exists()
    with LOG.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, dialect="excel-tab", lineterminator="\n")
        if fresh:
            writer.writerow([*_MUTANT, *_VERDICT])
        writer.writerow([*astuple(mutant), *astuple(verdict)])


def read_sample() -> list[Mutant]:
    """Return the sample of the committed table."""
    return [_mutant(row) for row in _rows(FOLDER / "sample.tsv")]


def origin_of_sample() -> str:
    """Return what the committed table says about where the sample is from."""
    return (FOLDER / "sample.tsv").read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def write_sample(sample: Sequence[Mutant], log: dict[Mutant, Verdict], origin: str) -> None:
    """Write the table of the sample, one line for each mutant."""
    rows = [[*astuple(each), *astuple(log.get(each, Verdict()))] for each in sample]
    _write("sample.tsv", origin, [*_MUTANT, *_VERDICT], rows)


def write_critical(mutants: Sequence[Mutant], log: dict[Mutant, Verdict], origin: str) -> None:
    """Write the table of the critical definitions, one line for each."""
    explained = reasons()
    counts: dict[tuple[str, str], Counter[str]] = {}
    for each in mutants:
        found = counts.setdefault((each.module, each.definition), Counter())
        outcome = log.get(each, Verdict()).outcome
        found.update(["mutants", "explained" if outcome == SURVIVED and explained.get(each) else outcome])
    rows = [[*names, *(found[column] for column in _COUNTS[2:])] for names, found in counts.items()]
    total = sum(counts.values(), Counter())
    _write("critical.tsv", origin, _COUNTS, [*rows, ["all", "", *(total[column] for column in _COUNTS[2:])]])


def write_survivors(mutants: Iterable[Mutant], log: dict[Mutant, Verdict], origin: str) -> None:
    """Write the table of survivors; the reasons that it has are kept."""
    explained = reasons()
    left = [each for each in dict.fromkeys(mutants) if log.get(each, Verdict()).outcome == SURVIVED]
    rows = [[*astuple(each), explained.get(each, "")] for each in left]
    _write("survivors.tsv", origin, [*_MUTANT, "reason"], rows)


def reasons() -> dict[Mutant, str]:
    """Return why survivors are allowed to survive."""
    return {_mutant(row): row["reason"] for row in _rows(FOLDER / "survivors.tsv")}


def commit() -> str:
    """Return the commit that is checked out."""
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def _mutant(row: dict[str, str]) -> Mutant:
    names = row["module"], row["definition"], row["operator"]
    return Mutant(*names, int(row["occurrence"]), row["before"], row["after"], int(row["line"]))


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader((line for line in file if not line.startswith("# ")), dialect="excel-tab"))


def _write(name: str, origin: str, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with (FOLDER / name).open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {origin}\n")
        writer = csv.writer(file, dialect="excel-tab", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
