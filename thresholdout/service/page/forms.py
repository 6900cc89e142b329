"""Forms as browsers send them: a few fields, and one file."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import FormData, UploadFile

from thresholdout.service.refusals import ServiceRefused

__all__ = ["FORM_BYTES", "MOST_FIELDS", "Sent", "sent_in"]

# Bytes of a form beside its file.
FORM_BYTES: Final = 64 * 1024

MOST_FIELDS: Final = 8

_PARQUET: Final = b"PAR1"


@dataclass(frozen=True, slots=True)
class Sent:
    """A form: texts by name, and the file if there is one."""

    fields: dict[str, str]
    content: bytes | None = None

    def text(self, name: str) -> str:
        """Return a field without surrounding blanks; empty where it is missing."""
        return self.fields.get(name, "").strip()

    def number(self, name: str) -> float | None:
        """Return a field as a finite number; ``None`` where it is empty.

        Examples
        --------
        >>> Sent({"expected": " 0.87 "}).number("expected")
        0.87
        """
        text = self.text(name)
        if not text:
            return None
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise ServiceRefused("bad_request", field=name, expected="a number, such as 0.87")
        return number

    @property
    def table(self) -> tuple[bytes, str]:
        """The file and its kind by its first bytes, since browsers' names and types are unreliable."""
        if not self.content:
            raise ServiceRefused("bad_table", seen="no file", expected="CSV or Parquet")
        parquet = self.content.startswith(_PARQUET)
        return self.content, "application/vnd.apache.parquet" if parquet else "text/csv"

    def idempotency_key(self) -> str:
        """Return a key of the whole content, so that sending it again is the same request."""
        told = hashlib.sha256()
        for name in ("kind", "title", "expected"):
            told.update(f"{len(self.text(name))}:".encode() + self.text(name).encode("utf-8", "surrogatepass"))
        told.update(self.content or b"")
        return f"page-{told.hexdigest()}"


async def sent_in(form: FormData) -> Sent:
    """Return the fields and the file of a form, and close it."""
    fields: dict[str, str] = {}
    content = None
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            content = await value.read()
        else:
            fields[name] = value
    await form.close()
    return Sent(fields, content)
