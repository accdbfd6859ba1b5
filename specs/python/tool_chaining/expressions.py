"""Values from parsed JSON, by a subset of JMESPath with a limited cost.

`structuredContent.accounts[?isLocked].id | [0]` is a path with a filter. JMESPath is widely known
(the AWS and Azure command lines use it), has a written grammar, and is one small package. Whoever
writes an expression may be a stranger, and so may whoever sends the data. The cost of the whole
language has no limit: each `[@, @][]` doubles a list. So only a part is supported, which makes no
list of more values than its source: paths, `[*]`, `[]`, filters, `|`, comparisons, `&&`, `||`, `!`,
literals and seven functions. A text grows only by the literal of `join`, and by what `to_string`
escapes. The separator of `join` must be a literal, since a long one from the data would be
repeated. In this part each node of an expression visits each value at most once. So the cost is
about the length of the expression times the size of the data. `Data` adds up these products before
it evaluates an expression. A process with a deadline would allow the whole language. But each
expression would cost a process and a copy of the data.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

try:
    import jmespath
    from jmespath.exceptions import JMESPathError, JMESPathTypeError, ParseError
    from jmespath.functions import Functions, signature
    from jmespath.parser import ParsedResult
    from jmespath.visitor import Options
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


class NoValue(Exception):
    """A value could not be found; the message tells people which value and why."""


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
        self._measured = value if measured is None else measured
        self._left = max_work
        self._too_much = too_much

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression; None if it has none, as in JMESPath.

        Raises `NoValue` if it cannot be evaluated, or would take too much work.
        """
        self._left -= (10 + len(expression)) * len(json.dumps(self._measured))
        why = self._too_much
        try:
            if self._left >= 0:
                value = parsed(expression).search(self.value, options=_DECIMAL)
                json.dumps(value, allow_nan=False)  # Raises ValueError for infinity.
                return value
        except JMESPathTypeError as error:
            why = f"{error.function_name}() takes {' or '.join(error.expected_types)} only"
        except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError):
            why = "it cannot be evaluated"
        raise NoValue(f"{quoted(expression)} gives nothing: {why}")

    def needed(self, expression: str) -> Any:
        """Return the value of an expression. Raises `NoValue` if it has none."""
        if (value := self.evaluate(expression)) is None:
            raise NoValue(f"{quoted(expression)} gives nothing")
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


def quoted(expression: str) -> str:
    """Return an expression in quotes, for a message."""
    return repr(one_line(expression, 200))


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


def parsed(expression: str) -> ParsedResult:
    """Return the parsed expression. Raises `ExpressionError` if it is not supported."""
    if len(expression) > MAX_EXPRESSION:
        raise ExpressionError(
            f"it has {len(expression)} characters, and at most {MAX_EXPRESSION} are allowed"
        )
    try:
        tree = jmespath.compile(expression)
        _check(tree.parsed)
    except ParseError as error:
        number = re.search(r"[<>=!]=?\s*(-?\d+)", expression)
        hint = f"; a number in a comparison is written `{number[1]}`" if number else ""
        raise ExpressionError(f"it is wrong at character {error.lex_position + 1}{hint}") from None
    except (JMESPathError, ValueError, RecursionError):
        raise ExpressionError("it is empty or nested too deeply") from None
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
