"""Power loss at any moment: no answer that left is lost or changed, and no charge stands without its answer."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.sizes import corners
from tests.thresholdout.ledger import power_loss
from tests.thresholdout.ledger.mechanism import GUARD, Mechanism, assert_consistent
from tests.thresholdout.ledger.power_loss import LOSSES, Disk
from thresholdout.errors import LedgerUnusable
from thresholdout.ledger import SQLLedger

ROOT = Path(__file__).parents[3]
LEDGER = "guard.db"
QUERIES = 8
PROCESSES = 2


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = power_loss.compiled(tmp_path_factory.mktemp("library")) if sys.platform == "linux" else None
    if found is None:
        pytest.skip("needs Linux and a C compiler called cc, to log what reaches the disk")
    return found


@dataclass
class Story:
    """What processes did to a folder, in a log."""

    library: Path
    folder: Path
    log: Path

    def start(self, command: str, *arguments: object) -> subprocess.Popen[str]:
        words = [sys.executable, "-W", "error", "-m", "tests.thresholdout.ledger.child", command]
        return subprocess.Popen(
            [*words, str(self.folder / LEDGER), *map(str, arguments)],
            cwd=ROOT,
            env=power_loss.environment(self.library, self.folder, self.log),
            stderr=subprocess.PIPE,
            text=True,
        )

    def tell(self) -> None:
        """Ask from several processes at once, and from another one after them."""
        for prefixes in ([f"{number}-" for number in range(PROCESSES)], ["again-"]):
            for process in [self.start("asks_with_marks", prefix, QUERIES, "FULL") for prefix in prefixes]:
                finish(process)


@pytest.fixture
def story(library: Path, tmp_path: Path) -> Story:
    folder = tmp_path / "folder"
    folder.mkdir()
    return Story(library, folder, tmp_path / "log")


def finish(process: subprocess.Popen[str], code: int = 0) -> None:
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == code, errors


def moments(log: Path) -> Iterator[tuple[Disk, dict[str, str], set[str], bool]]:
    """Yield after each event the disk, the answers that have left, the keys that were asked, and whether all is new."""
    disk = Disk()
    answers: dict[str, str] = {}
    asked: set[str] = set()
    created = False
    yield disk, answers, asked, created
    for event in power_loss.read_log(log):
        if event.kind == "A":
            word, *words = event.data.decode().split()
            created = created or word == "created"
            if word == "asks":
                asked.add(words[0])
            elif word == "answer":
                answers[words[0]] = words[1]
        else:
            disk.take(event)
            yield disk, answers, asked, created


def survives(left: dict[str, bytes], answers: dict[str, str], asked: set[str], created: bool, folder: Path) -> bool:
    """Open what is left, check that it is consistent, and tell whether every answer that left is in it."""
    folder.mkdir()
    for name, content in left.items():
        (folder / name).write_bytes(content)
        (folder / name).chmod(0o600)
    if LEDGER not in left:
        return not created
    with SQLLedger(folder / LEDGER, must_exist=True) as ledger:
        if GUARD not in ledger.guards():
            return not created
        assert_consistent(ledger)
        stored = {entry.key: repr(entry.value) for entry in ledger.entries(GUARD)}
        assert stored.keys() <= asked
        ledger.ask(GUARD, "after", 0.5, "accuracy", Mechanism())
        assert_consistent(ledger)
    return answers.items() <= stored.items()


def lost(story: Story, tmp_path: Path) -> Counter[str]:
    """Lose power twice at every moment of a story, and count the losses after which an answer was missing.

    Nothing of what was not synchronised is kept, and some of it in one of the other ways.
    """
    chance = random.Random(0)
    missing: Counter[str] = Counter()
    for number, (disk, answers, asked, created) in enumerate(moments(story.log)):
        for loss in (LOSSES[0], chance.choice(LOSSES[1:])):
            whole = survives(disk.left(loss, chance), answers, asked, created, tmp_path / f"{number} {loss}")
            missing["losses"] += 1
            missing["lost"] += not whole
    return missing


@pytest.mark.slow
def test_the_log_tells_everything(story: Story) -> None:
    finish(story.start("asks_with_marks", "a", QUERIES, "FULL"))
    disk = Disk()
    for event in power_loss.read_log(story.log):
        if event.kind != "A":
            disk.take(event)
    left = disk.left("all", random.Random(0))
    assert left.keys() == {LEDGER}
    assert left == {path.name: path.read_bytes() for path in story.folder.iterdir()}
    assert disk.left("none", random.Random(0))[LEDGER] == left[LEDGER]


@pytest.mark.slow
def test_power_loss_at_every_moment(story: Story, tmp_path: Path) -> None:
    story.tell()
    missing = lost(story, tmp_path)
    fewest_commits = QUERIES * (PROCESSES + 1)  # the two threads of a process share a commit at most
    assert missing["losses"] > 10 * fewest_commits
    assert missing["lost"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("synchronous", corners(["OFF", "NORMAL"], 0))
def test_without_synchronisation_a_power_loss_loses_answers(story: Story, tmp_path: Path, synchronous: str) -> None:
    """These tests can fail: a ledger that synchronises less does."""
    finish(story.start("asks_with_marks", "a", QUERIES, synchronous))
    chance = random.Random(0)
    missing = 0
    for number, (disk, answers, asked, created) in enumerate(moments(story.log)):
        if number % 10 == 0:
            try:
                missing += not survives(disk.left("none", chance), answers, asked, created, tmp_path / f"{number}")
            except LedgerUnusable:  # not even a ledger was left
                missing += 1
    assert missing > 0


@pytest.mark.slow
def test_killed_at_every_step_to_the_disk(story: Story) -> None:
    """Processes die before each of their changes of a file in turn, and the next one continues from there."""
    finish(story.start("asks_until_killed"))
    *_, (_, answers, asked, created) = moments(story.log)
    assert created
    last = [event.data.decode() for event in power_loss.read_log(story.log) if event.kind == "A"][-1]
    assert last.startswith("kills ")
    assert int(last.split()[1]) > 20  # of making the file, of two queries, and of closing it
    with SQLLedger(story.folder / LEDGER, must_exist=True) as ledger:
        assert_consistent(ledger)
        stored = {entry.key: repr(entry.value) for entry in ledger.entries(GUARD)}
    assert answers.items() <= stored.items()
    assert stored.keys() <= asked
