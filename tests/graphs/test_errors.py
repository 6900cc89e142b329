"""Messages of errors about arguments are sentences."""

import pickle

from graphs.errors import ArgumentError
from tests.cases import for_each


@for_each(
    ("seen", "advice", "message"),
    [
        (1.5, "", "share must be a number in (0, 1]; got 1.5."),
        ("a int", "", "share must be a number in (0, 1]; got an int."),
        ("a ndarray", "", "share must be a number in (0, 1]; got an ndarray."),
        ("a uint8 array", "", "share must be a number in (0, 1]; got a uint8 array."),
        ("nothing", "", "share is missing: pass a number in (0, 1]."),
        (80, "Divide a percentage by 100.", "share must be a number in (0, 1]; got 80. Divide a percentage by 100."),
        ("nothing", "It has no default.", "share is missing: pass a number in (0, 1]. It has no default."),
    ],
)
def test_a_message_is_a_sentence(seen: object, advice: str, message: str) -> None:
    error = ArgumentError("share", seen, "a number in (0, 1]", advice)
    assert str(error) == message
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.seen, again.advice) == (message, seen, advice)
