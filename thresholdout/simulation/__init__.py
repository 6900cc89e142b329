"""Simulations of analysts who reuse a holdout, with and without a guard.

An `Analyst` queries, an `Answering` mechanism answers, and a `Session` (see `interview`) knows the true values.
`DependentRecords` draws records with a dependence model; `run_experiment` runs a grid of settings by seeds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
