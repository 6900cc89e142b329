"""Members of a class that ask an object of another process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import cached_property, wraps
from typing import Any

from thresholdout.ledger.entry_checks import SpareKey, fresh_key

__all__ = ["forwarding"]


def forwarding(kind: type, name: str) -> Any:
    """Return a member that asks for the member of this name where the object lives.

    A method or property has the signature and the docstring of the one that it asks for, and is computed there each
    time. What the class does not define are attributes that an object gets when it is made; they are fetched once.

    A keyword ``key`` is chosen here if the caller chose none, and so is one of ``keys`` for each item of the first
    argument: a query that has to be sent twice is then charged once, also where it cannot be known by its content.

    Parameters
    ----------
    kind : type
        The class of the object.
    name : str
        What is asked for.

    Returns
    -------
    function, property or cached_property
        For a class whose objects have a `Reference` in ``_reference``.
    """
    found = inspect.getattr_static(kind, name, None)
    if inspect.isfunction(found):
        return _method(name, found)
    if isinstance(found, property):
        return property(_reader(name), doc=found.__doc__)
    return cached_property(_reader(name))


def _reader(name: str) -> Callable[[Any], Any]:
    def read(self: Any) -> Any:
        return self._reference.call(name)

    return read


def _method(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(original).parameters.values()
    keywords = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    positional = [parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD]

    @wraps(original)
    def method(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        if "key" in keywords and kwargs.get("key") is None:
            kwargs["key"] = SpareKey(fresh_key())
        if "keys" in keywords and kwargs.get("keys") is None:
            items = args[0] if args else kwargs.get(positional[1], ())
            if isinstance(items, Collection):  # what is none is refused there
                kwargs["keys"] = [SpareKey(fresh_key()) for _ in items]
        return self._reference.call(name, *args, **kwargs)

    return method
