"""Models of dependence between records, and the privacy budgets and design effects that follow from them.

Each model is imported on first use, so that importing the package stays fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
