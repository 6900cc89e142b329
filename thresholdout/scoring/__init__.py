"""Scores that a guard can answer: metrics, and statistics that are no means."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
