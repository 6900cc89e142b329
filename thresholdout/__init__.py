"""Ask a holdout many adaptive questions and know what every answer is worth.

`Thresholdout` is the one class that most people need; `plan` and `certify` say what a guard will be worth before there
is one; the package `graphs`, beside this one, has the models of how records depend on each other.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
