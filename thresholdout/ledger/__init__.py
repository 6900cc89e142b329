"""Where guards keep their state, so that no budget is spent twice and no answer is lost.

`Ledger` is the contract; `MemoryLedger` and `SQLLedger` keep it. `open_ledger` chooses between them. Histories leave a
ledger by `export_history`, guards move to another one by `move`, and `encrypt` encrypts the secrets of one.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
