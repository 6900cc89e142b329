"""What a process finds out about a checkout: the files that a call runs through, and what packages export."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# Run in a process of its own, so that a trace sees the checkout that is measured and no imports of this module.
TRACED = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
root = os.getcwd()
names = ("graphs", "thresholdout")
tops = tuple(os.path.join(root, name) + os.sep for name in names)

class Trace:
    def __init__(self):
        self.files, self.classes, self.back = set(), set(), 0

    def __call__(self, frame, event, argument):
        path = frame.f_code.co_filename
        if event != "call" or not path.startswith(tops) or frame.f_code.co_name == "<module>":
            return
        inside = os.path.relpath(path, root)
        self.files.add(inside)
        owner = frame.f_code.co_qualname.split(".<locals>")[0].rpartition(".")[0]
        if owner:
            self.classes.add(owner)
        above = frame.f_back
        while above is not None and not above.f_code.co_filename.startswith(tops):
            above = above.f_back
        if above is not None:
            caller = os.path.relpath(above.f_code.co_filename, root).split(os.sep)
            if "planning" in caller[:2] and "certificates" in inside.split(os.sep)[:2]:
                self.back += 1

def traced(call):
    trace = Trace()
    sys.setprofile(trace)
    try:
        call()
    finally:
        sys.setprofile(None)
    return {"files": sorted(trace.files), "classes": sorted(trace.classes), "planning_to_certificates": trace.back}

import numpy as np
from thresholdout import Thresholdout, plan

rng = np.random.default_rng(0)
train, holdout = (rng.random((n, 3)) for n in (3000, 2000))
labels = [rng.integers(0, 2, len(part)) for part in (train, holdout)]
guard = Thresholdout((holdout, labels[1]), train=(train, labels[0]))
right = [[(rng.random(len(part)) < 0.9).astype(float) for part in (train, holdout)] for _ in range(3)]
guard.ask(*right[0])
guard.ask(*right[1])
asked = traced(lambda: guard.ask(*right[2]))
planned = traced(lambda: plan(2000, queries=100, anticipated_score=0.95))
budgeted = traced(lambda: plan(2000, queries=100, budget=10))
print(json.dumps({"ask": asked, "plan": planned, "plan with a budget": budgeted}))
"""

EXPORTED = """
import importlib, json, sys
found = {}
for name in sys.argv[1:]:
    package = importlib.import_module(name)
    found[name] = {public: getattr(getattr(package, public), "__module__", None) for public in package.__all__}
print(json.dumps(found))
"""


def run(source: str, root: Path, *arguments: str) -> Any:
    """Return what a program prints as JSON, run with the packages of a checkout."""
    environment = os.environ | {"PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", source, *arguments],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{root}: the program ended with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout)
