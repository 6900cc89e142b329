"""Record the cases that are not recorded yet: ``python -m tests.recorded.record``.

A recorded answer is never written again. A case whose answer is meant to change is taken out of ``answers.json`` by
hand, in the commit that changes it, which says why.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

from tests.recorded.cases import CASES
from tests.recorded.values import fingerprint, plain

ANSWERS: Final = Path(__file__).with_name("answers.json")


def read() -> dict[str, Any]:
    """Return the platform that recorded, and the recorded answers by name."""
    found: dict[str, Any] = json.loads(ANSWERS.read_text())
    return found


def written(platform: dict[str, Any], answers: dict[str, Any]) -> str:
    """Return the file's text: one line for each answer."""
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(answers[name])}" for name in answers)
    return f'{{"platform": {json.dumps(platform)},\n"answers": {{\n{lines}\n}}}}\n'


def main() -> None:
    """Add new cases to the file."""
    here = fingerprint()
    kept = read() if ANSWERS.exists() else {"platform": here, "answers": {}}
    if kept["platform"] != here:
        raise SystemExit("another platform recorded the answers that are there; one file is of one platform")
    answers = kept["answers"]
    for name in CASES:
        if name not in answers:
            start = time.process_time()
            answers[name] = plain(CASES[name]())
            print(f"{time.process_time() - start:6.2f} s  {name}")
    ANSWERS.write_text(written(here, answers))


if __name__ == "__main__":
    main()
