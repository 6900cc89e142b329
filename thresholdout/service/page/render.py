"""Templates, and the headers that restrict a browser to this service's own style."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from thresholdout.service.page import wording
from thresholdout.service.page.views import written_high, written_low

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["HEADERS", "STATIC", "render", "static"]

# Headers of every page, beside those of all responses: no script, no foreign address, no frame around it.
HEADERS: Final[dict[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
}

# Static files and their media types; pages load no others.
STATIC: Final[dict[str, str]] = {"page.css": "text/css; charset=utf-8", "mark.svg": "image/svg+xml"}


@cache
def static(name: str) -> bytes:
    """Return a file of `STATIC`."""
    return files("thresholdout.service.page").joinpath("static", name).read_bytes()


def render(template: str, **values: Any) -> str:
    """Return a page; all values are escaped."""
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    found = Environment(
        loader=PackageLoader("thresholdout.service.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {
        "low": written_low,
        "high": written_high,
        "count": "{:,}".format,
        "machine": lambda time: datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "moment": _moment,
    }
    found.globals |= {
        "words": wording,
        "versions": {name: hashlib.sha256(static(name)).hexdigest()[:12] for name in STATIC},
    }
    return found


def _moment(time: float) -> str:
    at = datetime.fromtimestamp(time, UTC)
    return f"{at.day} {at:%b %Y, %H:%M} UTC"
