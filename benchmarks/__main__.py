"""Run every measurement: ``python -m benchmarks``, or some: ``python -m benchmarks guard noise``."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.papers import MEASUREMENTS


def main(chosen: list[str]) -> None:
    found = (module for module in pkgutil.iter_modules(benchmarks.__path__) if not module.ispkg)
    names = sorted(module.name for module in found if module.name != "__main__")
    names += [f"papers.{name}" for name in MEASUREMENTS]
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(names)}")
    for name in chosen or names:
        print(f"\n## {name}\n", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    main(sys.argv[1:])
