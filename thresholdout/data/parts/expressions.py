"""Queries about columns: expressions with the same meaning in every engine, which no value can make fail.

A narwhals expression is read, checked against the types of the columns, and rebuilt from few operations. If a column
that it reads has a missing value or NaN for a record, the record's value is missing, independently of the rest of the
expression. So no engine's three-valued logic and no engine's order of NaN has an effect. Arithmetic uses 64-bit
floats. A comparison with a result that is NaN, such as ``inf - inf``, is false, and true for "differs", as in numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from thresholdout.errors import InputError, InputTypeError

if TYPE_CHECKING:
    import narwhals as nw
    from narwhals.dtypes import DType

__all__ = ["Compiled", "Schema", "compiled", "divided", "present"]

Kind: TypeAlias = Literal["boolean", "integer", "real", "text", "time"]
Schema: TypeAlias = "dict[str, DType]"

_EXACT: Final = 1 << 53
"""Integers up to this are exact as 64-bit floats."""
_MOST: Final = 200
"""Maximum number of operations in an expression, which bounds the depth of the engine's plan."""
_HELD: Final = 127
"""Largest integer of the narrowest type, 8 bits with a sign."""
_LISTED: Final = 100
"""Maximum number of entries of a list; each becomes a comparison."""

_COMPARISONS: Final = {"__eq__": "==", "__ne__": "!=", "__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
_LOGIC: Final = {"__and__": "&", "__or__": "|", "__xor__": "^"}
_REVERSED_LOGIC: Final = {"__rand__": "__and__", "__ror__": "__or__", "__rxor__": "__xor__"}
_ARITHMETIC: Final = {"__add__": "+", "__sub__": "-", "__mul__": "*"}
_REVERSED: Final = {"__radd__": "__add__", "__rsub__": "__sub__", "__rmul__": "__mul__"}
_ALLOWED: Final = (
    "columns and literals, comparisons, & | ^ ~, + - *, division by a number, abs, **2, clip, is_in, is_between, "
    "is_null and fill_null(number or text) of a column, when/then/otherwise, cast to Float64"
)
_PERMITTED: Final = f"an expression of {_ALLOWED}"
_ADVICE: Final = f"An expression has {_ALLOWED}."


@dataclass(frozen=True, slots=True)
class Compiled:
    """A checked expression.

    ``expression`` is missing exactly if a column in ``needed`` is missing. ``text`` is its content, equal for equal
    operations. ``columns`` are those that it reads, ``bare`` is the name of a single column, ``number`` the value of a
    literal, and ``type_of_time`` the type of a time. ``strict`` is whether engines with missing values return missing
    for missing inputs, and only for these. A ``definite`` boolean is true in them for no record with a missing input.
    ``computed`` values come from arithmetic and may be NaN. ``positive`` values
    were clipped above 0. A ``logarithm`` differs between engines in the last digits.
    """

    expression: nw.Expr = field(repr=False, compare=False)
    kind: Kind
    text: str
    needed: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()
    type_of_time: str = ""
    number: float | None = None
    bare: str = ""
    strict: bool = False
    definite: bool = False
    computed: bool = False
    positive: bool = False
    logarithm: bool = False

    def as_real(self) -> Compiled:
        """Return the number as a 64-bit float."""
        import narwhals as nw

        if self.kind == "real":
            return self
        if self.number is not None:
            return replace(self, kind="real", expression=nw.lit(float(self.number)))
        source = nw.col(self.bare) if self.bare else self.expression
        return replace(self, kind="real", expression=source.cast(nw.Float64))


def compiled(value: object, schema: Schema, argument: str, *, whole: bool = True) -> Compiled:
    """Check an expression against the types of the columns and rebuild it; no data are read.

    Examples
    --------
    >>> import narwhals as nw
    >>> found = compiled(nw.col("pred") == nw.col("y"), {"pred": nw.Int8(), "y": nw.Int64()}, "query")
    >>> found.kind, found.text, sorted(found.needed)
    ('boolean', "(col('pred') == col('y'))", ['pred', 'y'])
    """
    return _Reader(schema, argument, whole).read(value, str_as_lit=False)


def present(columns: Sequence[str], schema: Schema) -> nw.Expr:
    """Return whether a record has a value, other than NaN, in each of some columns."""
    import narwhals as nw

    return reduce(lambda a, b: a & b, [~_absent(nw.col(name), schema[name]) for name in columns])


def divided(value: nw.Expr, number: float, columns: Iterable[str]) -> nw.Expr:
    """Divide a value, which is made of some columns, by a number other than 0, rounded once as in IEEE 754.

    Polars multiplies by the rounded reciprocal of a literal, for some records and not for others. So the divisor is a
    column with this number in each record, unless it is a power of two, whose reciprocal is exact.

    Examples
    --------
    >>> import narwhals as nw, polars as pl
    >>> frame = nw.from_native(pl.DataFrame({"p": [0.625] * 3}))
    >>> set(frame.select(divided(nw.col("p"), 49.0, ["p"]))["p"]) == {0.625 / 49.0}
    True
    """
    import narwhals as nw

    exact = abs(math.frexp(number)[0]) == 0.5 and 2.0**-1022 <= abs(number) <= 2.0**1022
    names = sorted(columns)
    if exact or not names:
        return value / number
    absent = reduce(lambda a, b: a | b, [nw.col(name).is_null() for name in names])
    return value / (absent.cast(nw.Float64) * 0.0 + number)


def _absent(column: nw.Expr, dtype: DType) -> nw.Expr:
    return column.is_null() | column.is_nan() if dtype.is_float() else column.is_null()


class _Reader:
    """Reads one expression."""

    def __init__(self, schema: Schema, argument: str, whole: bool) -> None:
        self._schema = schema
        self._argument = argument
        self._whole = whole
        self._operations = 0

    def read(self, value: object, *, str_as_lit: bool) -> Compiled:
        """Read an expression, a name or a literal."""
        import narwhals as nw

        if isinstance(value, nw.Expr):
            first, *others = self._nodes(value)
            return reduce(self._applied, others, self._start(first))
        if isinstance(value, str) and not str_as_lit:
            return self._column(value)
        return self._literal(value)

    def _nodes(self, value: Any) -> Any:
        """Return the operations of an expression, for which narwhals has no public name."""
        try:
            return value._nodes
        except AttributeError:
            import narwhals as nw

            raise self._refused(
                f"an expression of narwhals {nw.__version__}", "narwhals 2.29 (pip install 'narwhals<2.30')"
            ) from None

    def _refused(self, seen: str, expected: str = _PERMITTED, advice: str = "") -> InputError:
        return InputError(self._argument, seen, expected, advice)

    def _start(self, node: Any) -> Compiled:
        self._count()
        if node.name == "col" and len(node.kwargs["names"]) == 1:
            return self._column(node.kwargs["names"][0])
        if node.name == "lit" and node.kwargs["dtype"] is None:
            return self._literal(node.kwargs["value"])
        if node.name == "when_then":
            return self._choice([self.read(one, str_as_lit=False) for one in node.exprs])
        if node.name in ("all_horizontal", "any_horizontal"):
            operation = "__and__" if node.name == "all_horizontal" else "__or__"
            parts = [self.read(one, str_as_lit=False) for one in node.exprs]
            return reduce(lambda a, b: self._logic(operation, a, b), parts)
        raise self._refused(f"an expression that starts with {node.name!r}")

    def _count(self) -> None:
        self._operations += 1
        if self._operations > _MOST:
            raise self._refused(f"an expression of more than {_MOST} operations", "a column that holds its values")

    def _column(self, name: str) -> Compiled:
        import narwhals as nw

        if name not in self._schema:
            raise self._refused(f"no column {name!r}", f"one of {', '.join(sorted(self._schema)[:20])}")
        dtype, column = self._schema[name], nw.col(name)
        own = frozenset([name])
        text = f"col({name!r})"
        if isinstance(dtype, (nw.Int8, nw.Int16, nw.Int32, nw.Int64, nw.UInt8, nw.UInt16, nw.UInt32)):
            column = column.cast(nw.Int64) if self._whole else column
            return Compiled(column, "integer", text, own, own, bare=name, strict=True)
        if isinstance(dtype, (nw.Float32, nw.Float64)):
            column = column if isinstance(dtype, nw.Float64) else column.cast(nw.Float64)
            return Compiled(column, "real", text, own, own, bare=name, strict=True)
        if isinstance(dtype, nw.Boolean):
            column = column if self._whole else column == nw.lit(True)
            return Compiled(column, "boolean", text, own, own, bare=name, strict=True)
        if isinstance(dtype, nw.String):
            return Compiled(column, "text", text, own, own, bare=name, strict=True)
        if isinstance(dtype, (nw.Categorical, nw.Enum)):
            return Compiled(column.cast(nw.String), "text", text, own, own, bare=name, strict=True)
        if dtype.is_temporal():
            return Compiled(column, "time", text, own, own, bare=name, strict=True, type_of_time=str(dtype))
        known = "booleans, integers of at most 64 bits with a sign, floats, texts, categories or times"
        raise self._refused(f"column {name!r} of type {dtype}", known, "Cast it where the frame is made.")

    def _literal(self, value: object) -> Compiled:
        import narwhals as nw

        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, bool):
            return Compiled(nw.lit(value), "boolean", repr(value), strict=True)
        if isinstance(value, int) and abs(value) <= _EXACT:
            return Compiled(nw.lit(value), "integer", repr(value), number=value, strict=True)
        if isinstance(value, float) and math.isfinite(value):
            return Compiled(nw.lit(value), "real", repr(value), number=value, strict=True)
        if isinstance(value, str):
            return Compiled(nw.lit(value), "text", repr(value), strict=True)
        expected = "an expression of narwhals, such as nw.col('pred') == nw.col('y'), or the name of a column"
        if isinstance(value, (int, float)):
            raise self._refused(f"the number {value!r}", "a finite number, or an integer up to 2**53")
        raise InputTypeError(self._argument, f"a {type(value).__name__}", expected, _ADVICE)

    def _applied(self, left: Compiled, node: Any) -> Compiled:
        """Apply the next operation of a chain."""
        self._count()
        name = node.name
        if name == "alias":
            return left
        if name in ("is_null", "fill_null"):
            return self._filled(left, node)
        others = [self.read(one, str_as_lit=node.str_as_lit) for one in node.exprs]
        if name in _COMPARISONS:
            return self._comparison(name, left, others[0])
        if name in _REVERSED_LOGIC:
            return self._logic(_REVERSED_LOGIC[name], others[0], left)
        if name in _LOGIC:
            return self._logic(name, left, others[0])
        if name in _REVERSED:
            return self._arithmetic(_REVERSED[name], others[0], left)
        if name in _ARITHMETIC:
            return self._arithmetic(name, left, others[0])
        if name in ("__truediv__", "__pow__"):
            return self._by_number(name, left, others[0])
        if name == "__invert__":
            self._check_kind(left, "boolean", "~")
            return replace(left, expression=~left.expression, text=f"~{left.text}", bare="", definite=False)
        if name in ("__neg__", "abs"):
            return self._of_number(name, left)
        if name == "cast":
            return self._cast(left, node.kwargs["dtype"])
        if name in ("clip", "clip_lower", "clip_upper"):
            return self._clipped(name, left, others)
        if name == "log":
            return self._logarithm(left, node.kwargs["base"])
        if name == "is_between":
            return self._between(left, others, node.kwargs["closed"])
        if name == "is_in":
            return self._among(left, node.kwargs["other"])
        raise self._refused(f"the operation {name!r}")

    def _check_kind(self, one: Compiled, kind: Kind, operation: str) -> None:
        if one.kind != kind:
            raise self._refused(
                f"{operation} of {one.text}, which is {_named(one.kind)}", f"{_named(kind)} there", _ADVICE
            )

    def _real(self, one: Compiled, operation: str) -> Compiled:
        """Return a number as a float."""
        if one.kind not in ("integer", "real"):
            expected = "a number there; a boolean becomes one by .cast(nw.Float64)"
            raise self._refused(f"{operation} of {one.text}, which is {_named(one.kind)}", expected)
        return one.as_real()

    def _alike(self, a: Compiled, b: Compiled, operation: str) -> tuple[Compiled, Compiled]:
        """Return two values of one kind; integers beside a float become floats."""
        if a.kind != b.kind and {a.kind, b.kind} == {"integer", "real"}:
            return a.as_real(), b.as_real()
        if a.kind != b.kind or a.type_of_time != b.type_of_time:
            kinds = [f"{one.text}, {one.type_of_time or _named(one.kind)}" for one in (a, b)]
            raise self._refused(
                f"{operation} of {' and '.join(kinds)}", "values of one type", "Cast one of the columns."
            )
        return a, b

    def _comparison(self, name: str, left: Compiled, right: Compiled) -> Compiled:
        import narwhals as nw

        sign = _COMPARISONS[name]
        a, b = self._alike(left, right, sign)
        if a.kind == "boolean" and sign not in ("==", "!="):
            raise self._refused(f"{sign} of booleans", "== or != of booleans, or numbers")
        if a.kind == "text" and sign not in ("==", "!=") and not self._whole:
            raise self._refused(f"{sign} of texts in Dask", "== or != of texts")
        first, second = a.expression, b.expression
        if a.kind == "integer" and self._of_one_type(a, b):
            first, second = (nw.col(one.bare) if one.bare else one.expression for one in (a, b))  # without a cast
        found = getattr(first, name)(second)
        for one in (a, b):
            if one.computed:
                found = found | one.expression.is_nan() if sign == "!=" else found & ~one.expression.is_nan()
        # Columns of floats have missing values and NaN, and a comparison with NaN is not missing.
        strict = a.strict and b.strict and not (a.kind == "real" and a.needed | b.needed)
        return replace(_joined(found, "boolean", f"({left.text} {sign} {right.text})", a, b), strict=strict)

    def _of_one_type(self, a: Compiled, b: Compiled) -> bool:
        """Whether two integers are columns of one type, or one of them is a number that all types can hold."""
        if a.bare and b.bare:
            return self._schema[a.bare] == self._schema[b.bare]
        number = a.number if a.number is not None else b.number
        return bool(a.bare or b.bare) and number is not None and 0 <= number <= _HELD

    def _logic(self, name: str, left: Compiled, right: Compiled) -> Compiled:
        sign = _LOGIC[name]
        for one in (left, right):
            self._check_kind(one, "boolean", sign)
        found = left.expression != right.expression if sign == "^" else getattr(left.expression, name)(right.expression)
        made = _joined(found, "boolean", f"({left.text} {sign} {right.text})", left, right)
        return replace(made, definite=sign == "&" and all(one.strict or one.definite for one in (left, right)))

    def _arithmetic(self, name: str, left: Compiled, right: Compiled) -> Compiled:
        sign = _ARITHMETIC[name]
        a, b = self._real(left, sign), self._real(right, sign)
        found = getattr(a.expression, name)(b.expression)
        return replace(
            _joined(found, "real", f"({left.text} {sign} {right.text})", a, b),
            computed=True,
            strict=a.strict and b.strict,
        )

    def _by_number(self, name: str, left: Compiled, right: Compiled) -> Compiled:
        sign = "/" if name == "__truediv__" else "**"
        one = self._real(left, sign)
        if right.number is None or (sign == "/" and not right.number) or (sign == "**" and right.number != 2):
            expected = "division by a number that is not 0, and ** 2; a column that holds the values otherwise"
            raise self._refused(f"{left.text} {sign} {right.text}", expected)
        own = one.expression
        found = divided(own, float(right.number), one.columns) if sign == "/" else own * own
        return replace(
            _joined(found, "real", f"({left.text} {sign} {right.text})", one), computed=True, strict=one.strict
        )

    def _of_number(self, name: str, left: Compiled) -> Compiled:
        one = self._real(left, name)
        found = one.expression.abs() if name == "abs" else one.expression * -1.0
        return replace(
            _joined(found, "real", f"{'abs' if name == 'abs' else '-'}({left.text})", one),
            computed=True,
            strict=one.strict,
        )

    def _cast(self, left: Compiled, dtype: object) -> Compiled:
        import narwhals as nw

        if dtype not in (nw.Float64, nw.Float64()):
            raise self._refused(f"a cast to {dtype}", "a cast to Float64", "Make other casts where the frame is made.")
        if left.kind != "boolean":
            text = f"real({left.text})" if left.kind == "integer" and left.number is None else left.text
            return replace(self._real(left, "cast"), bare="", text=text)
        found = nw.when(left.expression).then(nw.lit(1.0)).otherwise(nw.lit(0.0))
        return _joined(found, "real", f"real({left.text})", left)

    def _clipped(self, name: str, left: Compiled, others: Sequence[Compiled]) -> Compiled:
        import narwhals as nw

        if any(one.number is None for one in others):
            raise self._refused(f"{name} of {left.text} by a column", "clip by numbers")
        one, limits = self._real(left, name), [float(one.number or 0.0) for one in others]
        found = one.expression
        if name != "clip_upper":
            found = nw.when(found < limits[0]).then(nw.lit(limits[0])).otherwise(found)
        if name != "clip_lower":  # some engines order NaN above all numbers
            above = (found > limits[-1]) & ~found.is_nan()
            found = nw.when(above).then(nw.lit(limits[-1])).otherwise(found)
        text = f"{name}({', '.join([left.text, *(other.text for other in others)])})"
        positive = name != "clip_upper" and limits[0] > 0.0
        return replace(_joined(found, "real", text, one), computed=one.computed, strict=one.strict, positive=positive)

    def _logarithm(self, left: Compiled, base: float) -> Compiled:
        """Return the natural logarithm of a value that was clipped above 0: some engines fail for others."""
        if not left.positive or base != math.e:
            raise self._refused(
                f"the logarithm of {left.text}", "without logarithms outside metrics.log_loss(clip=...)", _ADVICE
            )
        made = _joined(left.expression.log(), "real", f"log({left.text})", left)
        return replace(made, computed=left.computed, strict=left.strict, logarithm=True)

    def _between(self, left: Compiled, others: Sequence[Compiled], closed: str) -> Compiled:
        lower = "__ge__" if closed in ("both", "left") else "__gt__"
        upper = "__le__" if closed in ("both", "right") else "__lt__"
        found = [self._comparison(name, left, one) for name, one in zip((lower, upper), others, strict=True)]
        return self._logic("__and__", *found)

    def _among(self, left: Compiled, others: object) -> Compiled:
        if not isinstance(others, (list, tuple)) or not 1 <= len(others) <= _LISTED:
            raise self._refused("is_in of something else", f"is_in of a list of 1 to {_LISTED} values")
        found = [self._comparison("__eq__", left, self._literal(one)) for one in others]
        return reduce(lambda a, b: self._logic("__or__", a, b), found)

    def _filled(self, left: Compiled, node: Any) -> Compiled:
        import narwhals as nw

        if not left.bare:
            raise self._refused(
                f"{node.name} of {left.text}", f"{node.name} of a column; every other value is there if these are"
            )
        absent = _absent(nw.col(left.bare), self._schema[left.bare])
        if node.name == "is_null":
            return Compiled(absent, "boolean", f"is_null({left.text})", columns=left.columns, strict=True)
        if len(node.exprs) != 1 or any(node.kwargs.get(one) is not None for one in ("strategy", "limit")):
            raise self._refused(
                "fill_null by neighbours", "fill_null(value): a record's value may not depend on others"
            )
        other = self.read(node.exprs[0], str_as_lit=True)
        if other.columns:
            raise self._refused("fill_null by a column", "fill_null by a number, a text or a boolean")
        a, b = self._alike(left, other, "fill_null")
        found = nw.when(absent).then(b.expression).otherwise(a.expression)
        return Compiled(found, a.kind, f"fill_null({left.text}, {other.text})", columns=left.columns, strict=True)

    def _choice(self, parts: Sequence[Compiled]) -> Compiled:
        import narwhals as nw

        if len(parts) != 3:
            raise self._refused("when/then without otherwise", "nw.when(...).then(...).otherwise(...)")
        condition = parts[0]
        self._check_kind(condition, "boolean", "when")
        a, b = self._alike(parts[1], parts[2], "then and otherwise")
        found = nw.when(condition.expression).then(a.expression).otherwise(b.expression)
        text = f"when({condition.text}, {parts[1].text}, {parts[2].text})"
        made = _joined(found, a.kind, text, condition, a, b)
        return replace(made, computed=a.computed or b.computed, type_of_time=a.type_of_time)


def _joined(expression: nw.Expr, kind: Kind, text: str, *parts: Compiled) -> Compiled:
    """Return an expression that was made of some parts."""
    needed = frozenset[str]().union(*(one.needed for one in parts))
    columns = frozenset[str]().union(*(one.columns for one in parts))
    return Compiled(expression, kind, text, needed, columns, logarithm=any(one.logarithm for one in parts))


def _named(kind: Kind) -> str:
    return {"boolean": "a boolean", "integer": "an integer", "real": "a float", "text": "a text", "time": "a time"}[
        kind
    ]
