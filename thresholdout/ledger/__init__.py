"""Storage of guards' states, so that no budget is spent twice and no answer is lost.

`open_ledger` returns one of the implementations of `Ledger`: `MemoryLedger` or `SQLLedger`. `export_history` writes a
history to a file, `move` brings a guard to another ledger, and `encrypt` encrypts a ledger's secrets.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
