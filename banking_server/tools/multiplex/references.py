"""Arguments that are taken from earlier results, with no model.

`{"jmespath": "[0].structuredContent.accounts[?isLocked].accountId | [0]"}` stands for what this
expression gives of the list of earlier results, and
`{"text": "{[1].structuredContent.accountName}-dup"}` for a text with such values in it.

JMESPath is widely known (the AWS and Azure command lines use it), has a written grammar, and is one
small package. Whoever calls the tool writes the expression, so its cost must have a bound. The
whole language has none: each `[@, @][]` doubles a list. So only a part is read, in which no value
is larger than what it was made from: paths, `[*]`, `[]`, filters, `|`, comparisons, `&&`, `||`,
`!`, literals and seven functions. The separator of `join` is a literal, since one from the results
would be repeated between texts. In this part each node of an expression looks at each value at most
once: the cost is at most the length of the expression times the size of the results. This product
is counted for one call, before anything is evaluated (`Results`). A process that is ended at a
deadline would allow the whole language, but costs a process and a copy of the results for each
call, and a slow machine would refuse what a fast one answers.
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
from banking_server.chaining.values import canonical
from banking_server.tools.prompts import is_nearly_prompt

MAX_EXPRESSION: Final = 500
"""Characters of one expression."""

MAX_WORK: Final = 100_000_000
"""Characters of expressions times characters of results, for one call: some 0.3 s at most."""

_FUNCTIONS: Final = {
    **dict.fromkeys(("contains", "join"), 2),
    **dict.fromkeys(("length", "max", "min", "sum", "to_string"), 1),
}
"""The functions that are read, and how many arguments each takes."""

_SIDE_BY_SIDE: Final = frozenset(
    {"or_expression", "and_expression", "not_expression", "comparator", "function_expression"}
)
"""The nodes that are read whose children all look at the same value, as `jmespath` calls them."""

_KINDS: Final = _SIDE_BY_SIDE | {
    *("current", "identity", "field", "index", "subexpression", "index_expression", "literal"),
    *("projection", "value_projection", "filter_projection", "flatten", "pipe"),
}
"""All nodes that are read."""


class ArgumentNotFound(Exception):
    """A value could not be found; the message says for people which and why."""


class ExpressionError(ArgumentNotFound):
    """An expression cannot be read; the message says why, in half a sentence."""


class Results:
    """The results so far, and how much the expressions of the call may still cost."""

    def __init__(self, results: list[dict[str, Any]]) -> None:
        self.list = results
        self._left = MAX_WORK

    def look(self, expression: str) -> Any:
        """Return what an expression gives; None if nothing: in this language null is nothing.

        Raises `ArgumentNotFound` if it cannot be worked out, or would cost too much.
        """
        self._left -= len(expression) * len(json.dumps(self.list))
        why = "the expressions of this call take too much work. Make several calls"
        try:
            if self._left >= 0:
                value = _parsed(expression).search(self.list, options=_DECIMAL)
                json.dumps(value, allow_nan=False)  # Raises ValueError for infinity.
                return value
        except JMESPathTypeError as error:
            why = f"{error.function_name}() takes {' or '.join(error.expected_types)} only"
        except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError):
            why = "it cannot be worked out"
        raise ArgumentNotFound(f"{shown(expression)} gives nothing: {why}")


def shown(expression: str) -> str:
    """Return an expression as it is repeated to people."""
    return repr(excerpt(expression, 200))


def steps_named(expression: str, *, needed: bool = False) -> set[int]:
    """Return the numbers of the results that an expression names: 1 of `[1].status`.

    They count from the end where they are below zero. What a filter finds is not among them; with
    `needed`, neither is what a side of `||` names. Raises `ExpressionError` if it cannot be read.
    """

    def named(node: Mapping[str, Any]) -> set[int]:
        kind, children = node["type"], node["children"]
        if kind == "index_expression" and children[0]["type"] in ("identity", "current"):
            return {children[1]["value"]}
        if needed and kind == "or_expression":
            return set()
        if kind not in _SIDE_BY_SIDE:
            children = children[:1]  # The others start from what the first one gives.
        return set().union(*map(named, children))

    return named(_parsed(expression).parsed)


def _parsed(expression: str) -> ParsedResult:
    """Return the parsed expression. Raises `ExpressionError` if it is none that is read here."""
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
    """Raise `ExpressionError` if a tree has what is not read here."""
    kind, children = node["type"], node["children"]
    if kind not in _KINDS:
        raise ExpressionError(
            f"{kind.replace('_', ' ')} is not read here, only paths, filters, comparisons, &&, ||, "
            f"!, | and the functions {', '.join(_FUNCTIONS)}"
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
    """Those of the package, with a sum as it is written in decimal: 0.1 and 0.2 make 0.3."""

    @signature({"types": ["array-number"]})
    def _func_sum(self, numbers: list[int | float]) -> float:
        return float(sum(Decimal(repr(number)) for number in numbers))


_DECIMAL: Final = Options(custom_functions=_DecimalFunctions())

_PIECE: Final = re.compile(r"(?P<brace>\{\{|\}\})|\{(?P<place>[^{}]+)\}|(?P<plain>[^{}]+)")


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Say of a value that is not found what it was for."""
    try:
        yield
    except ArgumentNotFound as problem:
        raise ArgumentNotFound(f"{place}: {str(problem).rstrip('.')}.") from None


@dataclass(frozen=True)
class Reference:
    """An argument that is taken from earlier results."""

    kind: str | None
    """`jmespath`: the value that the expression gives. `text`: a text with `{…}` places, in each
    an expression; `{{` and `}}` stand for braces. None: neither, by mistake."""
    written: str

    def expressions(self) -> list[str]:
        """Return the expressions in it."""
        if self.kind == "jmespath":
            return [self.written]
        return [piece["place"] for piece in _PIECE.finditer(self.written) if piece["place"]]

    def problem(self, index: int) -> str | None:
        """Say why it cannot work in the step of this index; None if it can."""
        if self.kind is None:
            return (
                'a reference is {"jmespath": "…"} or {"text": "…"}: a text, and no member beside it'
            )
        if not self.expressions() or (self.kind == "text" and _PIECE.sub("", self.written)):
            return (
                'a text has places like "{[0].structuredContent.…}", and braces of its own are '
                "written twice"
            )
        if self.kind == "text" and is_nearly_prompt(self.written):
            return "a text is made without a model, and so cannot be a prompt"
        for expression in self.expressions():
            try:
                named = steps_named(expression)
            except ExpressionError as error:
                return f"{shown(expression)} cannot be used: {error}"
            if index == 0 or any(not -index <= step < index for step in named):
                return f"{shown(expression)} must look at earlier results, like [0].status"
        return None

    def value(self, results: Results) -> Any:
        """Return what it gives of the earlier results. Raises `ArgumentNotFound`."""
        values = []
        for expression in self.expressions():
            values.append(results.look(expression))
            if values[-1] is None:
                raise ArgumentNotFound(f"{shown(expression)} gives nothing")
            if self.kind == "text" and isinstance(values[-1], dict | list):
                raise ArgumentNotFound(f"{shown(expression)} gives a list or an object, no text")
        if self.kind == "jmespath":
            return values[0]
        texts = map(_as_text, values)
        return _PIECE.sub(
            lambda piece: next(texts) if piece["place"] else piece["plain"] or piece[0][0],
            self.written,
        )


def _as_text(value: Any) -> str:
    """Return a value within a text; a number as JSON has it, without the `.0` of a whole one."""
    if isinstance(value, str):
        return value
    return canonical(value) if isinstance(value, float) else json.dumps(value)


def references(arguments: Mapping[str, Any]) -> dict[str, Reference]:
    """Return the references among a step's arguments, by the arguments' names.

    No tool here takes an object with a member `jmespath` or `text`: any such is meant as one.
    """
    found = {}
    for name, value in arguments.items():
        if isinstance(value, Mapping) and ("jmespath" in value or "text" in value):
            ((kind, written), *more) = value.items()
            is_one = isinstance(written, str) and not more
            found[name] = Reference(kind, written) if is_one else Reference(None, "")
    return found
