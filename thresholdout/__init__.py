"""Ask a holdout many adaptive queries, each with a guaranteed interval.

`Thresholdout` is the main class. `plan` and `certify` compute a guard's guarantees before it is made. The package
`graphs` has the models of dependence between records.
"""

import re
from importlib.util import find_spec
from pathlib import Path

import lazy_loader

__version__ = "0.1.0"


def _check_graphs() -> None:
    """Refuse another distribution's package `graphs`, or an incomplete one.

    The package is read and not imported: the one of this name on PyPI compiles itself, and prints hundreds of lines.
    """
    spec = find_spec("graphs")
    first = None if spec is None or spec.origin is None else Path(spec.origin)
    stub = None if first is None else first.with_suffix(".pyi")
    if spec is None:
        why = "is missing"
    elif first is None or stub is None or not stub.is_file() or "attach_stub" not in first.read_text(encoding="utf-8"):
        why = f"is another distribution's (found in {first or list(spec.submodule_search_locations or [])})"
    else:
        modules = set(re.findall(r"^from \.(\S+) import", stub.read_text(encoding="utf-8"), re.MULTILINE))
        files = [first.parent.joinpath(*name.split(".")) for name in sorted(modules)]
        lost = [path for path in files if not path.with_suffix(".py").is_file() and not path.is_dir()]
        if not lost:
            return
        why = f"lacks {lost[0].with_suffix('.py')}"
    raise ImportError(
        f"The package `graphs` of thresholdout {why}. Uninstall the distribution `graphs`, then run "
        "`python -m pip install --force-reinstall --no-deps thresholdout`."
    )


_check_graphs()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
