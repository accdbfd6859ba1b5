"""Arguments that are taken from earlier results, without a model.

`{"jmespath": "[0].structuredContent.accounts[?isLocked].accountId | [0]"}` means the value of this
expression for the list of earlier results. `{"text": "{[1].structuredContent.accountName}-dup"}`
means a text with such values in it.

JMESPath is widely known (the AWS and Azure command lines use it), has a written grammar, and is one
small package. The caller writes the expression, so its cost must be limited. The cost of the whole
language is not: each `[@, @][]` doubles a list. So only a part is supported, which makes no list of
more values than its source: paths, `[*]`, `[]`, filters, `|`, comparisons, `&&`, `||`, `!`,
literals and seven functions. A text grows only by the literal of `join`, and by what `to_string`
escapes. The separator of `join` must be a literal, since a long one from the results would be
repeated. In this part each node of an expression visits each value at most once. So the cost is
about the length of the expression times the size of the results. `Results` adds up these products
for one call, before it evaluates an expression. A process with a deadline would allow the whole
language. But each call would cost a process and a copy of the results.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError, ParseError
from jmespath.functions import Functions, signature
from jmespath.parser import ParsedResult
from jmespath.visitor import Options

from banking_server.bank.rules import excerpt
from banking_server.tools.prompts import is_nearly_prompt
from tool_chaining.values import canonical

MAX_EXPRESSION: Final = 500
"""The most characters of one expression."""

MAX_WORK: Final = 5_000_000
"""The most work of one call: the length of each expression plus 10, times that of the results."""

_FUNCTIONS: Final = {
    **dict.fromkeys(("contains", "join"), 2),
    **dict.fromkeys(("length", "max", "min", "sum", "to_string"), 1),
}
"""The supported functions, with their number of arguments."""

_SIDE_BY_SIDE: Final = frozenset(
    {"or_expression", "and_expression", "not_expression", "comparator", "function_expression"}
)
"""The supported nodes whose children all get the same value, by their names in `jmespath`."""

_KINDS: Final = _SIDE_BY_SIDE | {
    *("current", "identity", "field", "index", "subexpression", "index_expression", "literal"),
    *("projection", "value_projection", "filter_projection", "flatten", "pipe"),
}
"""All supported nodes."""


class ArgumentNotFound(Exception):
    """A value could not be found; the message tells people which value and why."""


class ExpressionError(ArgumentNotFound):
    """An expression is not supported; the message is a clause that says why."""


class Results:
    """The results so far, and the work that the expressions of the call may still take."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self.list = results
        self._left = MAX_WORK

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression; None if it has none, as JMESPath has it.

        Raises `ArgumentNotFound` if it cannot be evaluated, or would take too much work.
        """
        self._left -= (10 + len(expression)) * len(json.dumps(self.list))
        why = "the expressions of this call take too much work. Make several calls"
        try:
            if self._left >= 0:
                value = _parsed(expression).search(self.list, options=_DECIMAL)
                json.dumps(value, allow_nan=False)  # Raises ValueError for infinity.
                return value
        except JMESPathTypeError as error:
            why = f"{error.function_name}() takes {' or '.join(error.expected_types)} only"
        except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError):
            why = "it cannot be evaluated"
        raise ArgumentNotFound(f"{quoted(expression)} gives nothing: {why}")


def quoted(expression: str) -> str:
    """Return an expression in quotes, for a message."""
    return repr(excerpt(expression, 200))


def steps_named(expression: str, *, needed: bool = False) -> set[int]:
    """Return the numbers of the results that an expression names: 1 for `[1].status`.

    Negative numbers count from the end. Results that a filter finds are not included; with
    `needed`, results in a side of `||` are not included either. Raises `ExpressionError`.
    """

    def named(node: Mapping[str, Any]) -> set[int]:
        kind, children = node["type"], node["children"]
        if kind == "index_expression" and children[0]["type"] in ("identity", "current"):
            return {children[1]["value"]}
        if needed and kind == "or_expression":
            return set()
        if kind not in _SIDE_BY_SIDE:
            children = children[:1]  # The other children start from the value of the first.
        return set().union(*map(named, children))

    return named(_parsed(expression).parsed)


def _parsed(expression: str) -> ParsedResult:
    """Return the parsed expression. Raises `ExpressionError` if it is not supported."""
    if len(expression) > MAX_EXPRESSION:
        raise ExpressionError(
            f"it has {len(expression)} characters, and at most {MAX_EXPRESSION} are allowed"
        )
    try:
        parsed = jmespath.compile(expression)
        _check(parsed.parsed)
    except ParseError as error:
        raise ExpressionError(f"it is wrong at character {error.lex_position + 1}") from None
    except (JMESPathError, ValueError, RecursionError):
        raise ExpressionError("it is empty or nested too deeply") from None
    return parsed


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
                f"there is no function {excerpt(name)!r} here, only {', '.join(_FUNCTIONS)}"
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


@contextmanager
def error_prefix(place: str) -> Iterator[None]:
    """Put the place of a value before the message of an `ArgumentNotFound`."""
    try:
        yield
    except ArgumentNotFound as problem:
        raise ArgumentNotFound(f"{place}: {str(problem).rstrip('.')}.") from None


@dataclass(frozen=True)
class Reference:
    """An argument that is taken from earlier results."""

    kind: str | None
    """`jmespath`: the value of the expression. `text`: a text with expressions in `{…}`; `{{` and
    `}}` mean braces. None: it is not a valid reference."""
    written: str

    def expressions(self) -> list[str]:
        """Return the expressions in it."""
        if self.kind == "jmespath":
            return [self.written]
        return [piece["place"] for piece in _PIECE.finditer(self.written) if piece["place"]]

    def problem(self, index: int) -> str | None:
        """Return why it cannot work in the step with this index; None if it can."""
        if self.kind is None:
            return (
                'a reference is {"jmespath": "…"} or {"text": "…"}: a text, and no member beside it'
            )
        if not self.expressions() or (self.kind == "text" and _PIECE.sub("", self.written)):
            return (
                'a text has expressions like "{[0].structuredContent.…}", and other braces must be '
                "written twice"
            )
        if self.kind == "text" and is_nearly_prompt(self.written):
            return "a text is made without a model, so it cannot be a prompt"
        for expression in self.expressions():
            try:
                named = steps_named(expression)
            except ExpressionError as error:
                return f"{quoted(expression)} cannot be used: {error}"
            if index == 0 or any(not -index <= step < index for step in named):
                return f"{quoted(expression)} must look at earlier results, like [0].status"
        return None

    def value(self, results: Results) -> Any:
        """Return its value from the earlier results. Raises `ArgumentNotFound`."""
        values = []
        for expression in self.expressions():
            values.append(results.evaluate(expression))
            if values[-1] is None:
                raise ArgumentNotFound(f"{quoted(expression)} gives nothing")
            if self.kind == "text" and isinstance(values[-1], dict | list):
                raise ArgumentNotFound(f"{quoted(expression)} gives a list or an object, no text")
        if self.kind == "jmespath":
            return values[0]
        texts = map(_as_text, values)
        return _PIECE.sub(
            lambda piece: next(texts) if piece["place"] else piece["plain"] or piece[0][0],
            self.written,
        )


def _as_text(value: Any) -> str:
    """Return a value as part of a text; a whole number without `.0`."""
    if isinstance(value, str):
        return value
    return canonical(value) if isinstance(value, float) else json.dumps(value)


def references(arguments: Mapping[str, Any]) -> dict[str, Reference]:
    """Return the references among a step's arguments, by the arguments' names.

    No tool of the bank has an argument that is an object with a member `jmespath` or `text`. So any
    such object is a reference, or a mistake in one.
    """
    found = {}
    for name, value in arguments.items():
        if isinstance(value, Mapping) and ("jmespath" in value or "text" in value):
            ((kind, written), *more) = value.items()
            is_one = isinstance(written, str) and not more
            found[name] = Reference(kind, written) if is_one else Reference(None, "")
    return found
