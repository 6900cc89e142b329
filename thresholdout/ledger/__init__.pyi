from .backends import open_ledger as open_ledger
from .cipher import (
    make_key_file as make_key_file,
    new_key as new_key,
)
from .contract import Ledger as Ledger
from .memory import MemoryLedger as MemoryLedger
from .encryption import (
    rotate_key as rotate_key,
    encrypt as encrypt,
)
from .sql import SQLLedger as SQLLedger
from .transfer import (
    export_history as export_history,
    import_history as import_history,
    move as move,
    verify_export as verify_export,
)

__all__: list[str]
