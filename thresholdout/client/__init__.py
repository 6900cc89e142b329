"""A service of holdouts, asked from elsewhere: typed calls whose retries cannot charge twice."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
