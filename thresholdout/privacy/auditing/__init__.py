"""Lower bounds on what a mechanism or learner leaks, measured instead of believed.

Modules are loaded when they are first used, so that importing the package stays fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
