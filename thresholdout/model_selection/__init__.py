"""Guards in model selection: scikit-learn, Optuna, LightGBM, XGBoost, Keras, Lightning, and your own loops."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
