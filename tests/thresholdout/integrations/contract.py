"""What every hook promises, run through the library's own loop with a script in place of a language model.

A candidate is a text; an example is right if the text has enough letters. What a text says besides is done: "raise on
holdout" raises where the holdout is evaluated, and so on. Notes of the holdout's examples, and errors about them, carry
a word that nothing may show to a model.
"""

import contextlib
import io
import logging
import os
import signal
import subprocess
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE
from thresholdout.errors import GuardExhaustedWarning
from thresholdout.integrations import GuardedCandidates, guard_of_examples
from thresholdout.integrations.candidates import Part

CANARY = "xylophone"
ROOT = Path(__file__).parents[3]
MANY = {"train": 60, "holdout": 600}
TRAIN: list[dict[str, Any]] = [{"id": k, "note": "a training example"} for k in range(MANY["train"])]
HOLDOUT: list[dict[str, Any]] = [{"id": 1000 + k, "note": f"{CANARY} {k}"} for k in range(MANY["holdout"])]


def right(text: str, example: Any) -> bool:
    """Return 1 for a tenth of the examples with each letter "a"."""
    return int(example["id"]) % 10 < text.count("a")


def act(text: str, part: Part) -> None:
    """Do what a text says."""
    if f"raise on {part}" in text:
        raise RuntimeError(f"the first label of the {part} part is 1: {CANARY if part == 'holdout' else ''}")
    if f"kill on {part}" in text and "KILL" in os.environ:
        os._exit(9)


def part_of(example: Any) -> Part:
    """Return which part an example is of."""
    return "holdout" if int(example["id"]) >= 1000 else "train"


def text_in(program: str) -> str:
    """Return the text of a program, without the marks of a library around it."""
    lines = [line for line in program.strip().splitlines() if "EVOLVE-BLOCK" not in line]
    return lines[0].removeprefix("# ")


@dataclass
class Told:
    """What came of a run.

    Attributes
    ----------
    candidates : GuardedCandidates
        Of the hook.
    best : str
        What the library says is the best candidate.
    shown : str
        All that a model was shown, and all that the library keeps of the run.
    evaluated : list of (str, str)
        Each evaluation of a candidate on a whole part.
    """

    candidates: GuardedCandidates
    best: str
    shown: str
    evaluated: list[tuple[str, Part]] = field(default_factory=list)


class HookContract(ABC):
    """Tests that each hook inherits."""

    failing_on_training: Sequence[str] = ()
    """What the history says of a candidate that fails on the training part: nothing, or that it was skipped."""

    failing_on_holdout: Sequence[str] = ("failed",)
    """What it says of one that fails on the holdout, as a whole or on each example."""

    @abstractmethod
    def run(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        """Run the library's loop: the first text is the seed, the model proposes the others in turn."""

    def told(self, texts: Sequence[str], folder: Path, **declared: Any) -> Told:
        """Run it, and collect what it prints and logs as well."""
        printed = io.StringIO()
        handler = logging.StreamHandler(printed)
        logging.getLogger().addHandler(handler)
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                found = self.run(texts, folder, sampling="iid", **declared)
        finally:
            logging.getLogger().removeHandler(handler)
        files = "".join(
            file.read_bytes().decode("utf-8", "replace")
            for file in sorted(folder.rglob("*"))
            if file.is_file() and not file.name.startswith("guard.db")
        )
        found.shown += printed.getvalue() + files
        return found

    def direct(self, texts: Sequence[str], **declared: Any) -> GuardedCandidates:
        """Return a climb over the same texts without any library."""

        def evaluate(text: str, part: Part) -> list[bool]:
            act(text, part)
            return [right(text, example) for example in (TRAIN if part == "train" else HOLDOUT)]

        climb = GuardedCandidates(guard_of_examples(TRAIN, HOLDOUT, sampling="iid", **declared), evaluate)
        for text in texts:
            climb.propose(text)
        return climb

    def test_the_best_is_the_champion_and_nothing_of_the_holdout_is_shown(self, tmp_path: Path) -> None:
        texts = ["aa", "aaaa", "aaa", "aaaaaaa", "aaaaa"]
        found = self.told(texts, tmp_path)
        assert found.best == "aaaaaaa"
        assert CANARY not in found.shown
        assert [text for text, part in found.evaluated if part == "holdout"].count("aaaaaaa") == 1
        expected, history = self.direct(texts).guard.history, found.candidates.guard.history
        assert list(history["source"]) == list(expected["source"])
        assert list(history["value"]) == pytest.approx(list(expected["value"]))

    def test_duplicates_are_judged_once(self, tmp_path: Path) -> None:
        found = self.told(["aa", "aaaa", "aaaa", "aa", "aaaa"], tmp_path)
        assert list(found.candidates.guard.history["source"]) == ["keep"]
        assert len([text for text, part in found.evaluated if part == "holdout"]) == 2  # it, and the first one

    def test_a_candidate_that_fails_on_the_training_part_costs_nothing(self, tmp_path: Path) -> None:
        found = self.told(["aa", "aaaaaa raise on train", "aaaa"], tmp_path)
        assert list(found.candidates.guard.history["source"]) == [*self.failing_on_training, "keep"]
        assert found.best == "aaaa"

    def test_a_candidate_that_fails_on_the_holdout_is_charged_once_and_shows_nothing(self, tmp_path: Path) -> None:
        bad = "aaaaaa raise on holdout"
        found = self.told(["aa", bad, bad, "aaaa"], tmp_path)
        assert list(found.candidates.guard.history["source"]) == [*self.failing_on_holdout, "keep"]
        assert [text for text, part in found.evaluated if part == "holdout"].count(bad) == 1
        assert CANARY not in found.shown
        assert found.best == "aaaa"

    def test_an_exhausted_guard_ends_it_or_is_not_asked_any_more(self, tmp_path: Path) -> None:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = self.told(["aa", "aaaa", "aaaaaa", "aaaaaaa"], tmp_path, queries=1)
        assert found.best == "aaaa"
        assert len(found.candidates.guard.history) == 1
        assert {text for text, part in found.evaluated if part == "holdout"} == {"aa", "aaaa"}
        assert sum(issubclass(one.category, GuardExhaustedWarning) for one in said) <= 1

    def test_a_kill_on_the_holdout_loses_and_doubles_nothing(self, tmp_path: Path) -> None:
        texts = ["aa", "aaaa", "aaaaaaa kill on holdout"]
        code = (
            f"import sys; from pathlib import Path; from {type(self).__module__} import {type(self).__name__} as It\n"
            "at = Path(sys.argv[1])\n"
            f"It().run({texts!r}, at, ledger=at / 'guard.db', sampling='iid')"
        )
        with (tmp_path / "errors").open("wb") as errors:
            killed = subprocess.Popen(
                [sys.executable, "-c", code, str(tmp_path)],
                cwd=ROOT,
                env={**os.environ, "KILL": "1", "PYTHONPATH": str(ROOT)},
                start_new_session=True,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        try:
            assert killed.wait(PATIENCE) in (9, -signal.SIGKILL), (tmp_path / "errors").read_text()[-2000:]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(killed.pid, signal.SIGKILL)
        found = self.told(texts, tmp_path, ledger=tmp_path / "guard.db")
        assert list(found.candidates.guard.history["source"]) == ["keep", "keep"]
        assert found.best == texts[-1]
        assert found.candidates.guard.status.error_budget_left == self.direct(texts).guard.status.error_budget_left


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Let a library warn about itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
