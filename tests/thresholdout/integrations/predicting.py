"""Predicts what a text says of the records of a CSV; run by a command, without labels."""

import csv
import os
import signal
import sys
from pathlib import Path

from tests.thresholdout.integrations.contract import act, part_of, right, text_in

if __name__ == "__main__":
    program, features, predictions = map(Path, sys.argv[1:4])
    text = program.read_text()
    with features.open() as opened:
        rows = list(csv.DictReader(opened))
    with open(os.environ["EVALUATED"], "a") as noted:
        noted.write(f"{part_of(rows[0])}\t{text_in(text)}\n")
    if f"kill on {part_of(rows[0])}" in text and "KILL" in os.environ:
        os.kill(os.getppid(), signal.SIGKILL)  # whoever keeps the guard
    act(text, part_of(rows[0]))
    labels = [int(row["id"]) % 2 for row in rows]
    said = [label if right(text, row) else 1 - label for row, label in zip(rows, labels, strict=True)]
    predictions.write_text("prediction\n" + "".join(f"{one}\n" for one in said))
