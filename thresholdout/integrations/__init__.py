"""Guards in loops that improve prompts, programs and pipelines, and in trackers; each library is loaded when used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
