"""A ledger's file has one name only; two would spend the budget twice."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from tests.patience import PATIENCE
from tests.thresholdout.ledger.mechanism import FIRST, GUARD, Mechanism
from thresholdout.errors import LedgerPlaceWarning, LedgerUnusable
from thresholdout.ledger import SQLLedger
from thresholdout.ledger import file_location as place


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "guard.db"
    with SQLLedger(file) as ledger:
        ledger.create(GUARD, {}, FIRST)
    return file


def mounted(monkeypatch: pytest.MonkeyPatch, folder: Path, *mounts: tuple[str, str]) -> None:
    """Say that these places are mounted, with these kinds of file system, as Linux writes it."""
    lines = [
        f"{30 + number} 1 8:{number} / {where} rw,relatime shared:1 - {kind} /dev/sd{number} rw"
        for number, (where, kind) in enumerate([("/", "ext4"), *mounts])
    ]
    table = folder / "mountinfo"
    table.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(place, "MOUNTS", str(table))


def test_a_second_name_is_refused_under_both(file: Path) -> None:
    second = file.with_name("second.db")
    os.link(file, second)
    for name in (file, second):
        with pytest.raises(LedgerUnusable, match=r"The file has 2 names \(hard links\).*find / -xdev -samefile .*\.db"):
            SQLLedger(name)
    found = subprocess.run(
        ["find", file.parent, "-xdev", "-samefile", file], capture_output=True, text=True, check=True
    ).stdout.split()
    assert sorted(found) == sorted([str(file), str(second)])  # what the message says to do
    second.unlink()
    second.symlink_to(file)
    with SQLLedger(file) as one, SQLLedger(second) as two:
        one.ask(GUARD, None, 0.5, "accuracy", Mechanism(budget=2))
        assert two.ask(GUARD, None, 0.5, "accuracy", Mechanism(budget=2))[0].remaining == 0


def test_a_second_name_that_comes_later_is_refused_at_the_next_query(file: Path) -> None:
    with SQLLedger(file) as ledger:
        ledger.ask(GUARD, "a", 0.5, "accuracy", Mechanism())
        os.link(file, file.with_name("second.db"))
        with pytest.raises(LedgerUnusable, match="The file has 2 names"):
            ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())
        file.with_name("second.db").unlink()
        assert ledger.ask(GUARD, "b", 0.5, "accuracy", Mechanism())[0].query == 2


def test_the_name_under_which_a_file_was_made_is_taken_away(file: Path) -> None:
    """As after a crash between its two names."""
    draft, other = (file.with_name(f".guard.db.{end}") for end in ("0123456789abcdef", "fedcba9876543210"))
    os.link(file, draft)
    other.touch()
    SQLLedger(file).close()
    assert not draft.exists()
    assert other.exists()  # another file


@pytest.mark.slow
def test_processes_that_make_a_file_at_once_all_open_it(tmp_path: Path) -> None:
    code = "import sys; from thresholdout.ledger import SQLLedger\nsys.stdin.readline()\nSQLLedger(sys.argv[1]).close()"
    words = [sys.executable, "-W", "error", "-c", code, str(tmp_path / "guard.db")]
    root = Path(__file__).parents[3]
    processes = [
        subprocess.Popen(words, cwd=root, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=PATIENCE)[1] for process in processes] == [""] * 4
    assert os.stat(tmp_path / "guard.db").st_nlink == 1


def test_a_file_that_is_mounted_is_refused(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounted(monkeypatch, file.parent, (str(file), "ext4"))
    link = file.with_name("link.db")
    link.symlink_to(file)
    for name in (file, link):
        with pytest.raises(LedgerUnusable, match=r"mounted as a single file.*Mount its folder instead"):
            SQLLedger(name)
    mounted(monkeypatch, file.parent, (str(file.parent), "ext4"))
    SQLLedger(file).close()


def test_spaces_in_the_names_of_mounts_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my data"
    folder.mkdir()
    SQLLedger(folder / "guard.db").close()
    mounted(monkeypatch, tmp_path, (str(folder / "guard.db").replace(" ", "\\040"), "xfs"))
    with pytest.raises(LedgerUnusable, match="mounted as a single file"):
        SQLLedger(folder / "guard.db")


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_warned_of(file: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    mounted(monkeypatch, file.parent, (str(file.parent.parent), "tmpfs"), (str(file.parent), kind))
    with pytest.warns(LedgerPlaceWarning, match=rf"network file system \({kind}\).*postgresql://user@host/database"):
        SQLLedger(file).close()
    mounted(monkeypatch, file.parent, (str(file.parent.parent), kind), (str(file.parent), "ext4"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SQLLedger(file).close()


def test_a_system_that_says_nothing_about_mounts_is_taken_as_it_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "MOUNTS", str(file.with_name("nothing")))
    SQLLedger(file).close()
    file.with_name("nothing").write_text("a line\nof another form - \n")
    SQLLedger(file).close()


@pytest.mark.slow
def test_a_file_that_was_renamed_without_its_log_is_refused(tmp_path: Path) -> None:
    """A process that dies leaves its last answers in the log; without it the budget would be whole again."""
    program = (
        "import os, sys\nimport numpy as np\nfrom thresholdout import Claims, Thresholdout\n"
        "guard = Thresholdout(np.arange(100.0), mechanism=Claims(holdout_answers=3), ledger=sys.argv[1])\n"
        "guard.ask(0.9, np.arange(100) < 20)\nos._exit(0)\n"
    )
    old, new = tmp_path / "guard.db", tmp_path / "new.db"
    subprocess.run([sys.executable, "-c", program, str(old)], check=True)
    log = tmp_path / "guard.db-wal"
    assert log.stat().st_size > 0
    old.rename(new)
    with pytest.raises(LedgerUnusable, match=r"guard\.db-wal lies beside it without its own file") as caught:
        SQLLedger(str(new))
    assert f"mv {log} {new}-wal" in str(caught.value)
    log.rename(f"{new}-wal")
    with SQLLedger(str(new)) as ledger:
        (guard,) = ledger.guards()
        assert ledger.count(guard) == 1
