"""Evaluation of predictions on a holdout whose labels stay in the service."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
