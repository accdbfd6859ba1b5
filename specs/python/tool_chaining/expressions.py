"""Values from parsed JSON, by a subset of JMESPath with a limited cost.

`structuredContent.accounts[?isLocked].id | [0]` is a path with a filter. JMESPath is widely known
(the AWS and Azure command lines use it), has a written grammar, and is one small package. Whoever
writes an expression may be a stranger, and so may whoever sends the data. The cost of the whole
language has no limit: each `[@, @][]` doubles a list. So only a part is supported, which makes no
list of more values than its source: paths, `[*]`, `[]`, filters, `|`, comparisons, `&&`, `||`, `!`,
literals and seven functions. In this part each node of an expression visits each value at most
once. So the cost is about the length of the expression times the size of the data. `Data` adds up
these products before it evaluates an expression.

A value out of plain text is found by a regular expression instead, `match = 'hash ([0-9a-f]+)'`
and `in = "content[0].text"`, which RE2 matches in linear time.

A guard that a payment waits for must not fail open. So a value of a wrong type is an error here,
where JMESPath gives null: `<` and `>` compare numbers only. A missing value stays null.
"""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from difflib import get_close_matches
from functools import cache, cached_property
from typing import Any, Final

try:
    import jmespath
    from jmespath.exceptions import JMESPathError, JMESPathTypeError, ParseError
    from jmespath.functions import Functions, signature
    from jmespath.visitor import Options, TreeInterpreter
except ImportError as error:
    needs = "needs JMESPath: install the extra [rules], or pip install jmespath"
    raise ImportError(f"{__name__} {needs} ({error})") from None

from tool_chaining.text import one_line
from tool_chaining.values import canonical

MAX_EXPRESSION: Final = 500
"""The most characters of one expression."""

_FUNCTIONS: Final = {
    **dict.fromkeys(("contains", "join"), 2),
    **dict.fromkeys(("length", "max", "min", "sum", "to_string"), 1),
}
"""The supported functions, with their number of arguments."""

SIDE_BY_SIDE: Final = frozenset(
    {"or_expression", "and_expression", "not_expression", "comparator", "function_expression"}
)
"""The supported nodes whose children all get the same value, by their names in `jmespath`."""

_KINDS: Final = SIDE_BY_SIDE | {
    *("current", "identity", "field", "index", "subexpression", "index_expression", "literal"),
    *("projection", "value_projection", "filter_projection", "flatten", "pipe"),
}
"""All supported nodes."""


Expression = str | Mapping[str, Any]
"""JMESPath, or a table with `match` and `in`: a regular expression, and where the text is."""


Shape = Mapping[str, Any] | Sequence[Any] | None
"""What is known of data: an object's members, a list with the shape of its items, or nothing."""

NO_MEMBERS: Final[Shape] = {}
"""The shape of a text, a number, true and false."""


class NoValue(Exception):
    """A value could not be found; the message tells people which value and why."""


class CannotEvaluate(NoValue):
    """An expression cannot be evaluated on this data, which is not the same as a missing value."""


class ExpressionError(NoValue):
    """An expression is not supported; the message is a clause that says why."""


class Data:
    """Parsed JSON, and the work that expressions may still take on it."""

    def __init__(
        self,
        value: Any,
        max_work: int,
        too_much: str = "it takes too much work",
        *,
        measured: Any = None,
    ) -> None:
        """`max_work` limits the sum, over all expressions, of length plus 10 times the data's size.

        `too_much` is the message for an expression that would take more. If `value` repeats the
        same parts, `measured` is what counts as its size.
        """
        self.value = value
        self.missing: set[str] = set()
        """The compared values that were missing, outside of filters, as they are written."""
        self._measured = value if measured is None else measured
        self._left = max_work
        self._too_much = too_much

    @cached_property
    def _size(self) -> int:
        return len(json.dumps(self._measured))

    def evaluate(self, expression: Expression) -> Any:
        """Return the value of an expression; None if it has none, as in JMESPath.

        Raises `CannotEvaluate`, also if it would take too much work.
        """
        if not isinstance(expression, str):
            return self._found(expression)
        self._left -= (10 + len(expression)) * self._size
        why = self._too_much
        try:
            if self._left >= 0:
                value = _Interpreter(self).visit(parsed(expression), self.value)
                json.dumps(value, allow_nan=False)  # Raises ValueError for infinity.
                return value
        except JMESPathTypeError as error:
            why = f"{error.function_name}() takes {' or '.join(error.expected_types)} only"
        except CannotEvaluate as error:
            why = str(error)
        except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError):
            why = "its functions and operators do not fit these values"
        raise CannotEvaluate(f"{quoted(expression)} cannot be evaluated: {why}")

    def _found(self, expression: Mapping[str, Any]) -> str | None:
        """Return the first match of a pattern, or of its group; None if there is none."""
        pattern, text = expression["match"], self.evaluate(expression["in"])
        if text is None:
            self.missing.add(expression["in"])
            return None
        if not isinstance(text, str):
            raise CannotEvaluate(
                f"{quoted(expression)} cannot be evaluated: only a text can be searched"
            )
        try:
            found = pattern_of(pattern).search(text)
        except UnicodeEncodeError:
            why = "the text has half of a surrogate pair"
            raise CannotEvaluate(f"{quoted(expression)} cannot be evaluated: {why}") from None
        return None if found is None else found[found.re.groups]

    def needed(self, expression: Expression) -> Any:
        """Return the value of an expression. Raises `NoValue` if it has none."""
        if (value := self.evaluate(expression)) is None:
            raise NoValue(f"{quoted(expression)} has no value")
        return value

    def text(self, written: str) -> str:
        """Return a text with each expression in braces replaced by its value.

        Raises `NoValue` if one has no value, or a list or an object.
        """
        values: list[str] = []
        for expression in expressions_in(written):
            value = self.needed(expression)
            if isinstance(value, dict | list):
                raise NoValue(f"{quoted(expression)} gives a list or an object, no text")
            values.append(_as_text(value))
        texts = iter(values)
        return _PIECE.sub(
            lambda piece: next(texts) if piece["place"] else piece["plain"] or piece[0][0], written
        )


def quoted(expression: Expression) -> str:
    """Return an expression in quotes, for a message."""
    if isinstance(expression, str):
        return repr(one_line(expression, 200)).replace(r"\\", "\\")  # As it is in the file.
    return f"match {quoted(str(expression['match']))} in {quoted(str(expression['in']))}"


@cache
def pattern_of(pattern: str) -> Any:
    """Return a compiled regular expression of RE2. Raises `ExpressionError`."""
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        raise ExpressionError(
            "match needs RE2: install the extra [match], or pip install google-re2"
        ) from None
    options = re2.Options()
    options.log_errors = False  # The log would repeat the pattern.
    try:
        compiled = re2.compile(pattern, options=options)
    except re2.error as error:
        why = error.args[0]
        why = why.decode("utf-8", "replace") if isinstance(why, bytes) else str(why)
        raise ExpressionError(f"RE2 says: {one_line(why, 100)}") from None
    if compiled.groups > 1:
        raise ExpressionError("it has more than one group: write the others as (?:…)")
    return compiled


def check(expression: Expression, root: Shape = None) -> None:
    """Raise `ExpressionError` if an expression of either kind cannot be used."""
    if isinstance(expression, str):
        parsed(expression, root)
    else:
        pattern_of(expression["match"])
        parsed(expression["in"], root)


def expressions_in(written: str) -> list[str]:
    """Return the expressions in braces in a text; `{{` and `}}` mean literal braces.

    Raises `ExpressionError` if it has none, or other braces.
    """
    found = [piece["place"] for piece in _PIECE.finditer(written) if piece["place"]]
    if not found or _PIECE.sub("", written):
        raise ExpressionError(
            'a text has expressions like "{[0].structuredContent.…}", and other braces must be '
            "written twice"
        )
    return found


def parsed(expression: str, root: Shape = None) -> Any:
    """Return the syntax tree of an expression.

    `root` is the shape of the data, if it is known: an expression that asks for a member which the
    data never has would always get null. Raises `ExpressionError` if the expression cannot be used.
    """
    if len(expression) > MAX_EXPRESSION:
        raise ExpressionError(
            f"it has {len(expression)} characters, and at most {MAX_EXPRESSION} are allowed"
        )
    try:
        tree = jmespath.compile(expression).parsed
        _check(tree)
    except ParseError as error:
        number = re.search(r"[<>=!]=?\s*(-?\d+)", expression)
        hint = f"a number in a comparison is written `{number[1]}`" if number else ""
        if re.search(r"[^<>=!]=[^=]", expression):
            hint = "values are compared with =="
        hint = hint or "a text is written 'approved', and a name with other characters \"a-b\""
        raise ExpressionError(
            f"it is wrong at character {error.lex_position + 1}; {hint}"
        ) from None
    except (JMESPathError, ValueError, RecursionError):
        raise ExpressionError("it is empty or nested too deeply") from None
    _shape(tree, root)
    return tree


def _check(node: Mapping[str, Any]) -> None:
    """Raise `ExpressionError` if a tree has a node that is not supported."""
    kind, children = node["type"], node["children"]
    if kind not in _KINDS:
        raise ExpressionError(
            f"{kind.replace('_', ' ')} is not supported, only paths, filters, comparisons, &&, "
            f"||, !, | and the functions {', '.join(_FUNCTIONS)}"
        )
    if kind == "function_expression":
        name = node["value"]
        if name not in _FUNCTIONS:
            raise ExpressionError(
                f"there is no function {one_line(name, 60)!r} here, only {', '.join(_FUNCTIONS)}"
            )
        if len(children) != _FUNCTIONS[name]:
            raise ExpressionError(f"{name}() takes {_FUNCTIONS[name]} arguments")
        if name == "join" and children[0]["type"] != "literal":
            raise ExpressionError("the separator of join() is a text in quotation marks")
    for child in children:
        _check(child)


def _shape(node: Mapping[str, Any], shape: Shape) -> Shape:
    """Return the shape of what an expression gives for data of a shape.

    Raises `ExpressionError` if it asks for a member that such data never has.
    """
    kind, children = node["type"], node["children"]
    if kind in ("field", "index"):
        return _member(node["value"], shape)
    if kind in ("current", "identity"):
        return shape
    if kind in ("subexpression", "index_expression", "pipe"):
        for child in children:
            shape = _shape(child, shape)
        return shape
    if kind in SIDE_BY_SIDE:
        for child in children:
            _shape(child, shape)
        if kind in ("not_expression", "comparator"):
            return NO_MEMBERS
    elif kind == "flatten":
        return (_member(0, _shape(children[0], shape)),)
    elif children:  # A projection, whose further children see each item.
        found = _shape(children[0], shape)
        item = None if kind == "value_projection" else _member(0, found)
        for child in children[1:]:
            _shape(child, item)
        return ()
    return None


def _member(name: str | int, shape: Shape) -> Shape:
    """Return the shape of a member or an item. Raises `ExpressionError` if there is none."""
    if shape is None:
        return None
    if isinstance(name, int) and not isinstance(shape, Mapping):
        return shape[0] if shape else None
    if isinstance(name, str) and isinstance(shape, Mapping) and name in shape:
        found: Shape = shape[name]
        return found
    if shape is NO_MEMBERS:
        raise ExpressionError(
            "a text, a number, true and false have no members; write !(a.b), not !a.b"
        )
    if not isinstance(shape, Mapping):
        here = "the value is a list"
    elif near := get_close_matches(str(name), shape, n=1):
        here = f"did you mean {near[0]}?"
    else:
        here = f"there are {', '.join(shape)}" if shape else "the object has no members"
    shown = "list" if isinstance(name, int) else one_line(name, 60)
    # A word without quotes is the commonest mistake where all that an expression sees is named.
    quotes = "a text is written 'approved', false is `false`; " if "isError" in shape else ""
    raise ExpressionError(f"there is no {shown} here; {quotes}{here}")


class _Interpreter(TreeInterpreter):
    """The interpreter of `jmespath`, where only numbers are less or greater than others."""

    def __init__(self, data: Data) -> None:
        super().__init__(_DECIMAL)
        self._data = data
        self._filters = 0

    def visit_filter_projection(self, node: Any, value: Any) -> Any:
        self._filters += 1
        try:
            return super().visit_filter_projection(node, value)
        finally:
            self._filters -= 1

    def visit_comparator(self, node: Any, value: Any) -> Any:
        children = node["children"]
        sides = [self.visit(child, value) for child in children]
        asks_for_null = any(
            child["type"] == "literal" and child["value"] is None for child in children
        )
        if None in sides and not asks_for_null and not self._filters:
            pairs = zip(children, sides, strict=True)
            self._data.missing |= {_path(child) for child, side in pairs if side is None}
            return None  # No match, also for `!=`: a condition that fails open would be a guard.
        is_order = node["value"] not in ("eq", "ne") and None not in sides
        if is_order and not all(type(side) in (int, float) for side in sides):
            raise CannotEvaluate("< and > compare numbers only")
        return super().visit_comparator(node, value)


def _path(node: Mapping[str, Any]) -> str:
    """Return a path as it is written; "a value" for any other expression."""
    kind, children = node["type"], node["children"]
    if kind == "field":
        return str(node["value"])
    if kind == "index":
        return f"[{node['value']}]"
    if kind == "current":
        return "@"
    if kind in ("subexpression", "index_expression"):
        return ("." if kind == "subexpression" else "").join(map(_path, children))
    return "a value"


class _DecimalFunctions(Functions):
    """The functions of `jmespath`, with decimal sums: 0.1 and 0.2 make 0.3."""

    @signature({"types": ["array-number"]})
    def _func_sum(self, numbers: list[int | float]) -> float:
        return float(sum(Decimal(repr(number)) for number in numbers))


_DECIMAL: Final = Options(custom_functions=_DecimalFunctions())

_PIECE: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<place>[^{}]+)\}|(?P<plain>[^{}]+)")


def _as_text(value: Any) -> str:
    """Return a value as part of a text; a whole number without `.0`."""
    if isinstance(value, str):
        return value
    return canonical(value) if isinstance(value, float) else json.dumps(value)
