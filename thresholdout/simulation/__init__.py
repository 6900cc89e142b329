"""Analysts who reuse a holdout, and what becomes of it with and without a guard.

An `Analyst` asks, something `Answering` answers, and a `Session` (see `interview`) knows the truth; `DependentRecords`
draws data whose records depend on each other as a model says; `run_experiment` runs a grid of settings by seeds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
