"""Evaluation sets of language models and agents: scores of runs, their comparison, and a guard for a year of checks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
