"""Run with ``python -m benchmarks.private_learners`` and ``compare``, ``tables``, ``audited``, ``defaults`` or another.

``compare`` measures all learners of this library that the results do not have, ``tables`` writes the tables of
``docs/learners.md`` anew, and `benchmarks.private_learners.peers` measures diffprivlib, in an environment of its own.
"""

from __future__ import annotations

import math
import sys
import warnings
from importlib.metadata import version

from benchmarks.private_learners.audited import audited
from benchmarks.private_learners.defaults import defaults, worth
from benchmarks.private_learners.learners import NO_PRIVACY, ONLY, PRIVATE
from benchmarks.private_learners.measuring import FOLDER, measure
from benchmarks.private_learners.planted import planted
from benchmarks.private_learners.posteriors import posteriors
from benchmarks.private_learners.swings import swings
from benchmarks.private_learners.tables import PAGES, filled
from benchmarks.private_learners.tasks import TASKS


def compare(*kinds: str) -> None:
    """Measure all learners here, and without privacy; half an hour, and what is there already is kept.

    Parameters
    ----------
    *kinds : {"classes", "number", "clusters"}
        Kinds of tasks; all of them by default.
    """
    chosen = kinds or tuple(PRIVATE)
    sklearn = f"scikit-learn {version('scikit-learn')}"
    measure({kind: NO_PRIVACY[kind] for kind in chosen}, FOLDER / "no_privacy.csv", sklearn, epsilons=(math.inf,))
    measure(
        {kind: PRIVATE[kind] for kind in chosen},
        FOLDER / "thresholdout.csv",
        "thresholdout",
        serves=lambda learner, task: learner not in ONLY or task in (TASKS[name] for name in ONLY[learner]),
    )


def tables() -> None:
    """Write the tables of all pages anew."""
    for page in PAGES:
        page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        commands = {
            "compare": compare,
            "tables": tables,
            "audited": audited,
            "planted": planted,
            "defaults": defaults,
            "worth": worth,
            "swings": swings,
            "posteriors": posteriors,
        }
        commands[sys.argv[1]](*sys.argv[2:])
