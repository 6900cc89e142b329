"""What a table of predictions says, once it is read: in the order of the records, and as bytes that can be kept."""

from __future__ import annotations

import io
import json
import zlib
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from thresholdout.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Reading"]

_FORMAT: Final = b"thresholdout-reading-1\n"
_WRONG: Final = "bytes that are no reading of this guard's"


@dataclass(frozen=True, eq=False)
class Reading:
    """What a table of predictions says, checked and put in the order of the records; made by `PredictionGuard.read`.

    Attributes
    ----------
    guard : str
        Identity of the guard that has read it.
    metric : str
        Name of the metric that it was read for.
    output : ndarray
        Of the holdout's records, behind those of the training part where the table has these.
    classes : ndarray or None
        What its columns stand for, where a metric needs probabilities.
    train : ndarray or None
        The metric's values on the training part, where the table has rows for it.
    """

    guard: str
    metric: str
    output: NDArray[Any]
    classes: NDArray[Any] | None
    train: NDArray[Any] | None

    def __post_init__(self) -> None:
        for piece in (self.output, self.classes, self.train):
            if piece is not None:
                piece.flags.writeable = False

    @cached_property
    def digest(self) -> str:
        """What the predictions say, for this metric: 64 hexadecimal digits, the same for the same predictions."""
        output = np.ascontiguousarray(self.output)
        about = f"{self.metric}\n{output.dtype.str}{output.shape}{self.train is not None}\n"
        digest = sha256(about.encode())
        digest.update(output.view(np.uint8).data)
        return digest.hexdigest()

    @cached_property
    def encoded(self) -> bytes:
        """All of it as bytes, from which `PredictionGuard.decoded` makes it again."""
        pieces = {"output": self.output, "classes": self.classes, "train": self.train}
        there = {name: piece for name, piece in pieces.items() if piece is not None}
        packed = io.BytesIO()
        packed.write(json.dumps({"guard": self.guard, "metric": self.metric, "pieces": list(there)}).encode() + b"\n")
        for piece in there.values():
            np.lib.format.write_array(packed, np.ascontiguousarray(piece), allow_pickle=False)
        return _FORMAT + zlib.compress(packed.getbuffer(), 1)

    @classmethod
    def decoded(cls, encoded: bytes, guard: str) -> Reading:
        """Return what `encoded` was made of.

        Parameters
        ----------
        encoded : bytes
            The bytes.
        guard : str
            Identity of the guard that must have read it.

        Raises
        ------
        InputError
            When they are something else, or another guard's.
        """
        try:
            if not encoded.startswith(_FORMAT):
                raise ValueError
            packed = io.BytesIO(zlib.decompress(encoded[len(_FORMAT) :]))
            head = json.loads(packed.readline())
            there = {name: np.lib.format.read_array(packed, allow_pickle=False) for name in head["pieces"]}
            found = cls(head["guard"], head["metric"], there["output"], there.get("classes"), there.get("train"))
        except (EOFError, KeyError, TypeError, ValueError, zlib.error):
            found = None
        if found is None or found.guard != guard:
            raise InputError("encoded", _WRONG, "what `Reading.encoded` gave for this guard")
        return found
