"""Ask a holdout many adaptive questions and know what every answer is worth.

`Thresholdout` is the one class that most people need; `plan` and `certify` say what a guard will be worth before there
is one; the package `graphs`, beside this one, has the models of how records depend on each other.
"""

import re
from pathlib import Path

import lazy_loader

__version__ = "0.1.0"


def _check_graphs() -> None:
    """Refuse another distribution's package `graphs`, or what its installation or removal has left of ours."""
    try:
        import graphs
    except Exception as error:  # another distribution's, and whatever it lacks
        why = f"cannot be imported ({type(error).__name__}: {error})"
    else:
        where = Path(graphs.__file__).parent if getattr(graphs, "__file__", None) else None
        stub = None if where is None else where / "__init__.pyi"
        if stub is None or "DependenceModel" not in getattr(graphs, "__all__", ()) or not stub.is_file():
            why = f"is another distribution's (found in {where or list(graphs.__path__)})"
        else:
            assert where is not None
            modules = set(re.findall(r"^from \.(\S+) import", stub.read_text(encoding="utf-8"), re.MULTILINE))
            files = [where.joinpath(*name.split(".")) for name in sorted(modules)]
            lost = [path for path in files if not path.with_suffix(".py").is_file() and not path.is_dir()]
            if not lost:
                return
            why = f"lacks {lost[0].with_suffix('.py')}"
    raise ImportError(
        f"the package `graphs` that thresholdout brings along {why}; uninstall the distribution `graphs`, then run "
        "`python -m pip install --force-reinstall --no-deps thresholdout`"
    )


_check_graphs()

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
